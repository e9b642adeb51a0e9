#!/usr/bin/env python3
"""Makes samples/: small files as other programs write them, and samples/expected.txt, what they hold.

    python3 tests/files/make_samples.py     needs NumPy, safetensors, ml_dtypes and TensorBoard

A line of expected.txt: file, member (- in formats of one tensor), dtype, sizes (x between them; - for none), elements.
Pictures are written by the encoder below, in every colour type, depth, interlacing and with transparency; PIL reads
them to check it.
"""

import gzip
import io
import json
import os
import struct
import zipfile
import zlib

import ml_dtypes
import numpy as np
import safetensors.numpy

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples")
HELD = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}
lines = []


def expect(name, member, array):
    kind = array.dtype.newbyteorder("=").name
    shape = "x".join(map(str, array.shape)) or "-"
    values = [repr(float(v)) if kind.startswith(("float", "bfloat")) else str(int(v)) for v in array.flatten()]
    lines.append(" ".join([name, member, HELD.get(kind, kind), shape] + values))


def path(name):
    return os.path.join(FOLDER, name)


def numbers(dtype, shape):
    count = int(np.prod(shape))
    if dtype == "bool":
        return (np.arange(count) % 2 == 1).reshape(shape)
    values = np.array([1, 2, 250, 3, 100, 7, 0, 5, 4, 6, 9, 8], dtype="i8")[:count]
    if np.dtype(dtype).kind == "i" or np.dtype(dtype).kind == "f":
        values[1::3] *= -1
    if np.dtype(dtype).kind == "f":
        return (values / 8).astype(dtype).reshape(shape)
    return values.clip(np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype).reshape(shape)


def npy():
    types = ["?", "u1", "i1"] + [
        order + t for order in "<>" for t in ("u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")
    ]
    for t in types:
        name = "npy_" + t.replace("<", "little_").replace(">", "big_").replace("?", "bool") + ".npy"
        array = numbers(np.dtype(t).newbyteorder("=").name, (3, 2)).astype(t)
        np.save(path(name), array)
        expect(name, "-", array)
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308])
    for name, array in {
        "npy_columns.npy": np.asfortranarray(numbers("float32", (2, 3, 2))),
        "npy_0d.npy": np.float64(2.5),
        "npy_empty.npy": np.zeros((2, 0, 3)),
        "npy_special.npy": special,
        "npy_bfloat16.npy": numbers("float32", (4,)).astype(ml_dtypes.bfloat16),
    }.items():
        np.save(path(name), array)
        expect(name, "-", np.asarray(array))
    for version in (1, 2, 3):
        with open(path(f"npy_version_{version}.npy"), "wb") as f:
            np.lib.format.write_array(f, numbers("int32", (2, 2)), version=(version, 0))
        expect(f"npy_version_{version}.npy", "-", numbers("int32", (2, 2)))
    np.save(path("bad_objects.npy"), np.array([{}], dtype=object), allow_pickle=True)
    np.save(path("bad_complex.npy"), np.array([1j]))
    np.save(path("bad_texts.npy"), np.array(["a"]))
    np.save(path("bad_records.npy"), np.zeros(1, dtype=[("a", "f4")]))


def npz():
    arrays = {"x": numbers("float32", (2, 3)), "y": numbers("uint16", (4,)), "é": np.float64(0.5)}
    np.savez(path("npz_stored.npz"), **arrays)
    np.savez_compressed(path("npz_deflated.npz"), **arrays)
    with zipfile.ZipFile(path("npz_zip64.npz"), "w") as archive:
        for i, (name, array) in enumerate(arrays.items()):
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array))
    stream = io.BytesIO()
    with zipfile.ZipFile(Unseekable(stream), "w", zipfile.ZIP_DEFLATED) as archive:  # sizes behind the bytes
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array)
            archive.writestr(zipfile.ZipInfo(name + ".npy"), member.getvalue(), zipfile.ZIP_DEFLATED)
    with open(path("npz_streamed.npz"), "wb") as f:
        f.write(stream.getvalue())
    for kind in ("stored", "deflated", "zip64", "streamed"):
        for name, array in arrays.items():
            expect(f"npz_{kind}.npz", name, np.asanyarray(array))


class Unseekable(io.RawIOBase):
    def __init__(self, below):
        self.below = below

    def writable(self):
        return True

    def write(self, data):
        return self.below.write(data)


def tensors():
    arrays = {
        t: numbers(t, (2, 3))
        for t in (
            "bool",
            "uint8",
            "int8",
            "uint16",
            "int16",
            "uint32",
            "int32",
            "uint64",
            "int64",
            "float16",
            "float32",
            "float64",
        )
    }
    arrays["model/dense/kernel"] = numbers("float32", (4, 1))
    arrays["0d"] = np.array(2.5, dtype="float32")
    arrays["empty"] = np.zeros((0, 2), dtype="float32")
    arrays["bfloat16"] = numbers("float32", (3,)).astype(ml_dtypes.bfloat16)
    safetensors.numpy.save_file(arrays, path("tensors.safetensors"), metadata={"format": "np", "é": 'x\n"y"'})
    for name, array in arrays.items():
        expect("tensors.safetensors", name, array)
    codes = {"F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}  # all 256 of each
    header = {
        name: {"dtype": name, "shape": [256], "data_offsets": [256 * i, 256 * i + 256]} for i, name in enumerate(codes)
    }
    text = json.dumps(header).encode()
    with open(path("eighths.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + bytes(range(256)) * 2)
    for name, dtype in codes.items():
        expect("eighths.safetensors", name, np.arange(256, dtype="u1").view(dtype).astype("float16"))


def idx():
    for code, t in ((8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")):
        array = numbers(np.dtype(t).newbyteorder("=").name, (3, 2)).astype(t)
        data = struct.pack(">BBBBII", 0, 0, code, 2, 3, 2) + array.tobytes()
        with open(path(f"idx_{code}.idx"), "wb") as f:
            f.write(data)
        with open(path(f"idx_{code}.idx.gz"), "wb") as f:
            f.write(gzip.compress(data, mtime=0))
        expect(f"idx_{code}.idx", "-", array)
        expect(f"idx_{code}.idx.gz", "-", array)


# ---- PNG ----

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def packed_row(row, depth):  # samples of one row as bytes
    bits = "".join(format(int(v), f"0{depth}b") for v in row.flatten())
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big") if bits else b""


def filtered(rows, width):  # each row with one of the five filters in turn
    out, before = b"", bytes(len(rows[0]))
    for number, row in enumerate(rows):
        kind, done = number % 5, bytearray()
        for i, byte in enumerate(row):
            left, above, corner = row[i - width] if i >= width else 0, before[i], before[i - width] if i >= width else 0
            guess = left + above - corner
            paeth = min((abs(guess - v), order, v) for order, v in enumerate((left, above, corner)))[2]
            done.append((byte - (0, left, above, (left + above) // 2, paeth)[kind]) & 255)
        out += bytes([kind]) + bytes(done)
        before = row
    return out


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_bytes(samples, depth, colour, interlaced, extra=b""):
    height, width = samples.shape[:2]
    step = max(1, CHANNELS[colour] * depth // 8)
    data = b""
    for x, y, dx, dy in PASSES if interlaced else [(0, 0, 1, 1)]:
        part = samples[y::dy, x::dx]
        if part.size:
            data += filtered([packed_row(row, depth) for row in part], step)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + extra
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def as_loaded(samples, depth, colour, palette, alphas, clear):
    wide = "int32" if depth == 16 else "uint8"
    if colour == 3:
        picture = palette[samples[..., 0]]
        if alphas is not None:
            full = np.concatenate([alphas, np.full(len(palette) - len(alphas), 255)])
            picture = np.concatenate([picture, full[samples[..., 0]][..., None]], axis=-1)
        return picture.astype("uint8")
    picture = samples * (255 // (2**depth - 1)) if depth < 8 else samples
    if clear is not None:
        alpha = np.where((samples == clear).all(-1), 0, 65535 if depth == 16 else 255)
        picture = np.concatenate([picture, alpha[..., None]], axis=-1)
    return picture.astype(wide)[..., 0] if picture.shape[-1] == 1 else picture.astype(wide)


def picture(name, depth, colour, interlaced=False, transparent=False, size=(5, 7), extra=b""):
    random = np.random.default_rng(depth * 10 + colour)
    samples = random.integers(0, 2**depth, size=(*size, CHANNELS[colour]))
    palette = alphas = clear = None
    if colour == 3:
        palette = random.integers(0, 256, size=(2 ** min(depth, 5), 3))
        samples %= len(palette)
        extra += chunk(b"PLTE", bytes(palette.flatten().tolist()))
    if transparent and colour == 3:
        alphas = np.array([0, 100])
        extra += chunk(b"tRNS", bytes(alphas.tolist()))
    elif transparent:
        clear = samples[1, 2]
        extra += chunk(b"tRNS", b"".join(struct.pack(">H", int(v)) for v in clear))
    with open(path(name), "wb") as f:
        f.write(png_bytes(samples, depth, colour, interlaced, extra))
    expect(name, "-", as_loaded(samples, depth, colour, palette, alphas, clear))


def png():
    for colour, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            for interlaced in (False, True):
                picture(f"png_{colour}_{depth}{'_interlaced' if interlaced else ''}.png", depth, colour, interlaced)
            if colour in (0, 2, 3):
                picture(f"png_{colour}_{depth}_clear.png", depth, colour, False, True)
    for size in ((1, 1), (1, 9), (9, 1), (3, 3)):
        picture(f"png_size_{size[0]}_{size[1]}.png", 4, 3, True, False, size)
    picture("png_gamma.png", 8, 2, extra=chunk(b"gAMA", struct.pack(">I", 45455)))
    with open(path("png_258.png"), "wb") as f:
        f.write(png_bytes(np.array([[[258], [65535]]]), 16, 0, False))
    expect("png_258.png", "-", np.array([[258, 65535]], dtype="int32"))
    good = png_bytes(np.zeros((2, 2, 1), dtype=int), 8, 0, False)
    bad = {
        "crc": good[:45] + bytes([good[45] ^ 1]) + good[46:],
        "depth": good.replace(b"\0\0\0\2\0\0\0\2\x08", b"\0\0\0\2\0\0\0\2\x07"),
        "short": good[:-20],
        "huge": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2**24, 2**24, 8, 2, 0, 0, 0)) + good[33:],
        "side": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2**31 - 1, 1, 8, 0, 0, 0, 0)) + good[33:],
        "empty": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 1, 8, 0, 0, 0, 0)) + good[33:],
        "no_palette": good[:16]
        + struct.pack(">IIBBBBB", 2, 2, 8, 3, 0, 0, 0)
        + struct.pack(">I", zlib.crc32(b"IHDR" + struct.pack(">IIBBBBB", 2, 2, 8, 3, 0, 0, 0)))
        + good[33:],
        "no_data": good[:33] + chunk(b"IEND", b""),
        "too_few": png_bytes(np.zeros((2, 2, 1), dtype=int), 8, 0, False).replace(
            good[33:-12], chunk(b"IDAT", zlib.compress(b"\0\0"))
        ),
    }
    for name, data in bad.items():
        with open(path(f"bad_{name}.png"), "wb") as f:
            f.write(data)


def events():
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
    from tensorboard.plugins.scalar import metadata
    from tensorboard.util import tensor_util

    records = [event_pb2.Event(wall_time=1.5, file_version="brain.Event:2")]
    for step, value in enumerate([1.0, float("nan"), float("inf"), 2.0]):
        records.append(
            event_pb2.Event(
                wall_time=2.0,
                step=step,
                summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="old", simple_value=value)]),
            )
        )
        tensor = tensor_util.make_tensor_proto(np.float32(value))
        new = summary_pb2.Summary.Value(tag="new", tensor=tensor, metadata=metadata.create_summary_metadata("", ""))
        records.append(event_pb2.Event(wall_time=2.0, step=step, summary=summary_pb2.Summary(value=[new])))
    with open(path("events.out.tfevents.sample"), "wb") as f:
        for record in records:
            data = record.SerializeToString()
            length = struct.pack("<Q", len(data))
            f.write(length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data)))
    for name in ("old", "new"):
        expect("events.out.tfevents.sample", name, np.array([1, np.nan, np.inf, 2]))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for name in os.listdir(FOLDER):
        os.remove(path(name))
    for make in (npy, npz, tensors, idx, png, events):
        make()
    with open(path("expected.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


main()
