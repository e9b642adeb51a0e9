"""Makes layers_of_keras.safetensors: what Keras's layers compute in float64, and where 20 steps of descent lead them.

For each case its inputs "x", "x1", ..., a "mask" where there is one, the Variables by tapedeck's paths before
("w/PATH") and after ("after/PATH") 20 steps of w -= 0.05 * gradient of mean(y**2), and the outputs, joined as one row,
at first ("y") and at last ("y20").
tests/language/decks/library/layers_of_keras.deck compares.
Run: python3 layers_of_keras.py layers_of_keras.safetensors (Keras, PyTorch, safetensors).
"""
import os
import sys

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from keras import layers as L  # noqa: E402
from keras.src.backend.common import dtypes  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
keras.backend.set_floatx("float64")
keras.config.set_dtype_policy("float64")
dtypes.BIT64_TO_BIT32_DTYPE.clear()   # else many layers compute in float32 all the same
tensors = {}
random = np.random.default_rng(7)


def joined(y):
    if isinstance(y, (list, tuple)):
        return torch.cat([joined(part) for part in y])
    return y.reshape(-1)


def case(name, layer, shapes, paths=(), mask=None, call=None, train=True, **options):
    """paths: (tapedeck's path, Keras's Variable of the built layer, tapedeck's layout of it), made from the layer."""
    inputs = [torch.tensor(random.normal(size=s) * 0.7) if isinstance(s, tuple) else torch.tensor(s) for s in shapes]
    call = call if call is not None else lambda layer, *inputs: layer(inputs[0] if len(inputs) == 1 else list(inputs),
                                                                          **options)
    if mask is not None:
        tensors[f"{name}/mask"] = np.array(mask).astype(np.uint8)
        options["mask"] = torch.tensor(mask)
    call(layer, *inputs)
    paths = paths(layer) if callable(paths) else paths
    for i, x in enumerate(inputs):
        tensors[f"{name}/{'x' if i == 0 else f'x{i}'}"] = x.numpy()
    for _, variable, _ in paths:
        variable.assign(variable.numpy() + 0.2 * random.normal(size=variable.shape))

    def keep(kind):
        for path, variable, layout in paths:
            value = layout(variable.value.detach().numpy())
            for part, array in (value.items() if isinstance(value, dict) else {path: value}.items()):
                tensors[f"{name}/{kind}/{part}"] = np.array(array, order="C")
    keep("w")
    trained = [variable.value for _, variable, _ in paths]
    for step in range(20):
        y = joined(call(layer, *inputs))
        if step == 0:
            tensors[f"{name}/y"] = y.detach().numpy()
        if not trained or not train:
            return
        for value, gradient in zip(trained, torch.autograd.grad((y ** 2).mean(), trained)):
            value.data -= 0.05 * gradient
    tensors[f"{name}/y20"] = joined(call(layer, *inputs)).detach().numpy()
    keep("after")


def same(w):
    return w


def kernel(w):   # [..., inputs, outputs] as [outputs, inputs, ...]
    return np.moveaxis(w, (-1, -2), (0, 1))


def depthwise(w):   # [..., inputs, multiplier] as [inputs * multiplier, 1, ...]
    turned = np.moveaxis(w, (-2, -1), (0, 1))
    return turned.reshape((-1, 1) + turned.shape[2:])


def convolution(layer):
    return [("kernel", layer.kernel, kernel), ("bias", layer.bias, same)]


def separable(layer):
    return [("depthwise_kernel", layer.depthwise_kernel, depthwise),
            ("pointwise_kernel", layer.pointwise_kernel, kernel),
            ("bias", layer.bias, same)]


def gates(path, gru):   # Keras's gates z r h are tapedeck's r z n
    def order(w):
        w = np.moveaxis(w, -1, 0)
        if not gru:
            return w
        n = len(w) // 3
        return np.concatenate([w[n:2 * n], w[:n], w[2 * n:]])

    def bias(w):
        if not gru:
            return w
        return {f"{path}bias": order(w[0]), f"{path}recurrent_bias": order(w[1])}
    return order, bias


def cell_paths(cell, path, gru):
    order, bias = gates(path, gru)
    return [(f"{path}kernel", cell.kernel, order), (f"{path}recurrent_kernel", cell.recurrent_kernel, order),
            (f"{path}bias", cell.bias, bias)]


def reset_before(layer):   # the paper's GRU: one bias
    order, _ = gates("", True)
    return cell_paths(layer.cell, "cell/", True)[:2] + [("cell/bias", layer.cell.bias, order)]


def recurrent(layer):
    return cell_paths(layer.cell, "cell/", isinstance(layer, L.GRU))


def both_ways(layer):
    gru = isinstance(layer.forward_layer, L.GRU)
    return (cell_paths(layer.forward_layer.cell, "forward_layer/cell/", gru)
            + cell_paths(layer.backward_layer.cell, "backward_layer/cell/", gru))


def scaled(*names):
    return lambda layer: [(name, getattr(layer, name), same) for name in names]


case("conv1d_causal", L.Conv1D(3, 3, padding="causal", dilation_rate=2), [(2, 7, 2)], convolution)
case("conv2d_same_strides", L.Conv2D(3, (3, 2), strides=2, padding="same"), [(2, 7, 6, 2)], convolution)
case("conv3d_same", L.Conv3D(2, 2, padding="same"), [(1, 3, 4, 3, 2)], convolution)
case("conv1d_transpose", L.Conv1DTranspose(3, 3, strides=2), [(2, 5, 2)], convolution)
case("conv1d_transpose_same", L.Conv1DTranspose(3, 4, strides=3, padding="same"), [(2, 5, 2)], convolution)
case("conv1d_transpose_wide", L.Conv1DTranspose(2, 2, strides=3), [(2, 4, 2)], convolution)
case("conv2d_transpose_same", L.Conv2DTranspose(3, 3, strides=2, padding="same"), [(1, 4, 5, 2)], convolution)
case("conv2d_transpose_even", L.Conv2DTranspose(2, 4, strides=2, padding="same"), [(1, 4, 3, 2)], convolution)
case("conv2d_transpose_output", L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=1), [(1, 3, 4, 2)],
     convolution)
case("conv2d_transpose_valid_output", L.Conv2DTranspose(2, 3, strides=(2, 3), output_padding=1), [(1, 3, 4, 2)],
     convolution)
case("conv3d_transpose", L.Conv3DTranspose(2, 3, strides=2, padding="same"), [(1, 2, 3, 2, 2)], convolution)
case("depthwise_conv1d", L.DepthwiseConv1D(3, depth_multiplier=2, padding="same"), [(2, 6, 2)],
     lambda layer: [("kernel", layer.kernel, depthwise), ("bias", layer.bias, same)])
case("depthwise_conv2d_same", L.DepthwiseConv2D(3, strides=2, padding="same"), [(2, 5, 6, 3)],
     lambda layer: [("kernel", layer.kernel, depthwise), ("bias", layer.bias, same)])
case("separable_conv1d", L.SeparableConv1D(3, 3, padding="same", depth_multiplier=2), [(2, 6, 2)], separable)
case("separable_conv2d_same", L.SeparableConv2D(3, 3, strides=2, padding="same"), [(2, 6, 5, 2)], separable)
case("max_pool1d_same", L.MaxPooling1D(3, 2, "same"), [(2, 6, 2)])
case("max_pool2d_same", L.MaxPooling2D(2, 2, "same"), [(2, 5, 5, 2)])
case("max_pool3d", L.MaxPooling3D(2), [(1, 4, 5, 4, 2)])
# Keras's PyTorch backend repeats the edge where the frame is uneven; TensorFlow and JAX average what is there, as here.
case("average_pool1d_same", None, [(2, 6, 2)], call=lambda layer, x: torch.stack(
    [x[:, 2 * i:2 * i + 3].mean(1) for i in range(3)], 1))
case("average_pool2d_same_strides", None, [(2, 5, 5, 2)], call=lambda layer, x: torch.stack([torch.stack(
    [x[:, max(2 * i - 1, 0):2 * i + 2, 2 * j:2 * j + 2].mean((1, 2)) for j in range(3)], 1) for i in range(3)], 1))
case("average_pool3d", L.AveragePooling3D(2), [(1, 4, 5, 4, 2)])
case("global_max_pool1d", L.GlobalMaxPooling1D(), [(2, 5, 3)])
case("global_max_pool2d", L.GlobalMaxPooling2D(keepdims=True), [(2, 4, 5, 3)])
case("global_average_masked", L.GlobalAveragePooling1D(), [(2, 4, 3)],
     mask=[[True, True, False, True], [True, False, False, False]])

case("time_distributed", L.TimeDistributed(L.Dense(4, "tanh")), [(2, 3, 5)],
     lambda layer: [("layer/kernel", layer.layer.kernel, same), ("layer/bias", layer.layer.bias, same)])
case("time_distributed_conv", L.TimeDistributed(L.Conv2D(2, 2)), [(2, 3, 4, 4, 1)],
     lambda layer: [("layer/kernel", layer.layer.kernel, kernel), ("layer/bias", layer.layer.bias, same)])
case("dot", L.Dot(axes=(2, 1)), [(2, 3, 4), (2, 4, 5)])
case("dot_last", L.Dot(axes=2), [(2, 3, 4), (2, 5, 4)])
case("dot_normal", L.Dot(axes=1, normalize=True), [(3, 4), (3, 4)])
case("minimum", L.Minimum(), [(2, 3), (2, 3), (2, 3)])
case("average", L.Average(), [(2, 3), (2, 3), (2, 3)])
case("concatenate", L.Concatenate(axis=1), [(2, 3, 2), (2, 1, 2)])

tail = [[True, True, True, True], [True, True, False, False], [True, False, True, False]]
for name, layer in (("gru", L.GRU), ("lstm", L.LSTM), ("simple_rnn", L.SimpleRNN)):
    case(f"{name}_masked", layer(3), [(3, 4, 2)], recurrent, mask=tail)
    case(f"{name}_masked_sequence", layer(3, return_sequences=True, return_state=True), [(3, 4, 2)], recurrent,
         mask=tail)
    case(f"{name}_backwards", layer(3, return_sequences=True, go_backwards=True, return_state=True), [(3, 4, 2)],
         recurrent)
    case(f"{name}_backwards_masked", layer(3, go_backwards=True), [(3, 4, 2)], recurrent, mask=tail)
case("lstm_from_states", L.LSTM(3, return_state=True), [(2, 4, 2), (2, 3), (2, 3)], recurrent,
     call=lambda layer, x, h, c: layer(x, initial_state=[h, c]))
case("gru_activations", L.GRU(3, activation="relu", recurrent_activation="softsign", return_sequences=True),
     [(2, 4, 2)],
     recurrent)


case("gru_reset_before", L.GRU(3, reset_after=False, return_sequences=True), [(3, 4, 2)], reset_before)
case("gru_reset_before_masked", L.GRU(3, reset_after=False, go_backwards=True), [(3, 4, 2)], reset_before, mask=tail)


def twice(layer, x):
    layer.reset_state()
    return [layer(x), layer(x)]


case("lstm_stateful", L.LSTM(3, stateful=True), [(2, 4, 2)], recurrent, call=twice, train=False)
case("stacked_cells", L.RNN([L.LSTMCell(3), L.GRUCell(2)], return_state=True), [(2, 4, 2)],
     lambda layer: cell_paths(layer.cell.cells[0], "cell/cells/0/", False) + cell_paths(layer.cell.cells[1],
                                                                                        "cell/cells/1/", True))
for mode in ("sum", "mul", "ave", "concat"):
    case(f"bidirectional_{mode}", L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode=mode), [(3, 4, 2)],
         both_ways)
case("bidirectional_both", L.Bidirectional(L.LSTM(3), merge_mode=None), [(3, 4, 2)], both_ways)
case("bidirectional_states", L.Bidirectional(L.LSTM(3, return_state=True)), [(3, 4, 2)], both_ways)
case("bidirectional_masked", L.Bidirectional(L.LSTM(3, return_sequences=True)), [(3, 4, 2)], both_ways, mask=tail)

case("attention_scaled", L.Attention(use_scale=True), [(2, 3, 4), (2, 5, 4)], scaled("scale"))
case("attention_key", L.Attention(), [(2, 3, 4), (2, 5, 2), (2, 5, 4)])
case("attention_causal", L.Attention(), [(2, 4, 3), (2, 4, 3)], use_causal_mask=True)
case("additive_attention", L.AdditiveAttention(), [(2, 3, 4), (2, 5, 4)], scaled("scale"))


def heads(layer):
    inner = {"query": layer._query_dense, "key": layer._key_dense, "value": layer._value_dense,
             "output": layer._output_dense}
    flat = {"query": lambda w: w.reshape(w.shape[0], -1), "output": lambda w: w.reshape(-1, w.shape[-1])}
    found = []
    for name, dense in inner.items():
        found.append((f"{name}/kernel", dense.kernel, flat.get(name, flat["query"])))
        found.append((f"{name}/bias", dense.bias, lambda w: w.reshape(-1)))
    return found


case("heads_of_sizes", L.MultiHeadAttention(2, 3, value_dim=5, output_shape=4), [(2, 3, 6), (2, 4, 5)], heads,
     call=lambda layer, q, v: layer(q, v))
case("heads_causal", L.MultiHeadAttention(2, 3), [(2, 4, 6)], heads,
     call=lambda layer, x: layer(x, x, use_causal_mask=True, return_attention_scores=True))

case("layer_norm_axes", L.LayerNormalization(axis=(1, 2)), [(2, 3, 4)], scaled("gamma", "beta"))
# Keras's PyTorch backend takes the last axes only: others are moved there and back.
case("layer_norm_first", L.LayerNormalization(), [(2, 3, 4)], scaled("gamma", "beta"),
     call=lambda layer, x: layer(x.movedim(1, -1)).movedim(-1, 1))
case("layer_norm_apart", L.LayerNormalization(axis=(-2, -1)), [(2, 3, 2, 4)], scaled("gamma", "beta"),
     call=lambda layer, x: layer(x.movedim((1, 3), (2, 3))).movedim((2, 3), (1, 3)))
case("group_norm_each", L.GroupNormalization(groups=-1), [(2, 3, 3, 4)], scaled("gamma", "beta"))
case("group_norm_one", L.GroupNormalization(groups=1, axis=1), [(2, 4, 3)], scaled("gamma", "beta"))
case("unit_norm", L.UnitNormalization(axis=(1, 2)), [(2, 3, 4)])
case("prelu", L.PReLU(shared_axes=[1, 2]), [(2, 3, 3, 4)], scaled("alpha"))
case("relu", L.ReLU(max_value=0.8, negative_slope=0.1, threshold=0.2), [(3, 5)])
case("leaky_relu", L.LeakyReLU(), [(3, 5)])
case("elu", L.ELU(0.7), [(3, 5)])
case("softmax", L.Softmax(axis=1), [(2, 3, 4)])
case("up1d", L.UpSampling1D(3), [(2, 3, 2)])
case("up2d", L.UpSampling2D((2, 3)), [(2, 3, 2, 2)])
case("up2d_bilinear", L.UpSampling2D(2, interpolation="bilinear"), [(1, 3, 4, 2)])
case("up3d", L.UpSampling3D((1, 2, 3)), [(1, 2, 3, 2, 2)])
case("pad1d", L.ZeroPadding1D((1, 2)), [(2, 3, 2)])
case("pad2d", L.ZeroPadding2D(((1, 2), (0, 3))), [(1, 3, 2, 2)])
case("pad3d", L.ZeroPadding3D((1, 2, 0)), [(1, 2, 2, 2, 1)])
case("crop1d", L.Cropping1D((1, 2)), [(2, 5, 2)])
case("crop2d", L.Cropping2D(((1, 2), (0, 1))), [(1, 5, 4, 2)])
case("crop3d", L.Cropping3D(1), [(1, 4, 3, 5, 1)])
case("repeat", L.RepeatVector(3), [(2, 4)])
case("permute", L.Permute((3, 1, 2)), [(2, 3, 4, 5)])
case("reshape", L.Reshape((2, -1)), [(3, 4, 5)])
case("rescaling", L.Rescaling(0.5, -1), [(2, 3)])
case("multi_hot", L.CategoryEncoding(5), [[[0, 3, 3], [1, 0, 4]]])
case("count", L.CategoryEncoding(5, output_mode="count"), [[[0, 3, 3], [1, 0, 4]]])
case("one_hot", L.CategoryEncoding(5, output_mode="one_hot"), [[[2], [4]]])

def convolution_lstm(layer):
    cell = layer.cell
    return [("cell/kernel", cell.kernel, kernel), ("cell/recurrent_kernel", cell.recurrent_kernel, kernel),
            ("cell/bias", cell.bias, same)]


case("conv_lstm1d", L.ConvLSTM1D(2, 3, return_sequences=True), [(2, 3, 6, 2)], convolution_lstm)
case("conv_lstm2d_same", L.ConvLSTM2D(2, (3, 2), padding="same", return_state=True), [(2, 3, 4, 3, 2)],
     convolution_lstm)
case("conv_lstm2d_strides", L.ConvLSTM2D(2, 2, strides=2, activation="relu", recurrent_activation="softsign",
                                         go_backwards=True), [(2, 3, 5, 4, 1)], convolution_lstm)
case("conv_lstm2d_dilated", L.ConvLSTM2D(2, 2, dilation_rate=2, return_sequences=True), [(2, 3, 5, 4, 1)],
     convolution_lstm)
case("conv_lstm2d_masked", L.ConvLSTM2D(2, 2, return_sequences=True), [(3, 4, 3, 3, 1)], convolution_lstm, mask=tail)
case("conv_lstm3d", L.ConvLSTM3D(2, 2), [(1, 2, 3, 3, 3, 1)], convolution_lstm)
case("einsum_dense", L.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d", activation="tanh"), [(2, 3, 5)],
     scaled("kernel", "bias"))
case("einsum_dense_heads", L.EinsumDense("bqm,muh->bquh", (None, 2, 3), bias_axes="uh"), [(2, 3, 5)],
     scaled("kernel", "bias"))
case("einsum_dense_left", L.EinsumDense("...x,xy->...y", 4, bias_axes="y"), [(2, 3, 2, 5)], scaled("kernel", "bias"))
case("einsum_dense_right", L.EinsumDense("abc...,cd->abd...", (3, 4), bias_axes="bd"), [(2, 3, 5, 2)],
     scaled("kernel", "bias"))


def grouped(layer):
    found = heads(layer)
    if layer.use_gate:
        dense = layer._gate_dense
        found += [("gate/kernel", dense.kernel, lambda w: w.reshape(w.shape[0], -1)),
                  ("gate/bias", dense.bias, lambda w: w.reshape(-1))]
    return found


case("group_query", L.GroupQueryAttention(3, 4, 2), [(2, 3, 6), (2, 4, 6)], grouped,
     call=lambda layer, q, v: layer(q, v))
case("group_query_gate", L.GroupQueryAttention(3, 4, 1, sliding_window=2, use_gate=True), [(2, 4, 6)], grouped,
     call=lambda layer, x: layer(x, x, use_causal_mask=True))
case("adaptive_average1d", L.AdaptiveAveragePooling1D(3), [(2, 7, 2)])
case("adaptive_average2d", L.AdaptiveAveragePooling2D((3, 2)), [(2, 7, 5, 2)])
case("adaptive_average3d", L.AdaptiveAveragePooling3D(2), [(1, 3, 4, 5, 2)])
case("adaptive_max1d", L.AdaptiveMaxPooling1D(3), [(2, 7, 2)])
case("adaptive_max2d", L.AdaptiveMaxPooling2D(2), [(2, 7, 5, 2)])
case("adaptive_max3d", L.AdaptiveMaxPooling3D((2, 1, 2)), [(1, 3, 4, 5, 2)])
for name in ("squareplus", "sparse_plus", "sparse_sigmoid", "hard_shrink", "soft_shrink", "tanh_shrink", "hard_tanh"):
    case(f"activation_{name}", L.Dense(5, name), [(3, 4)], scaled("kernel", "bias"))
weights_of = L.MelSpectrogram.linear_to_mel_weight_matrix
weights_of.__defaults__ = weights_of.__defaults__[:-1] + ("float64",)   # else the triangles are float32's
case("mel_spectrogram", L.MelSpectrogram(fft_length=32, sequence_stride=16, num_mel_bins=5, sampling_rate=8000),
     [(2, 120)])
case("mel_spectrogram_plain", L.MelSpectrogram(fft_length=32, sequence_stride=10, sequence_length=20, num_mel_bins=4,
                                               min_freq=100., max_freq=3000., power_to_db=False, mag_exp=1.,
                                               window="hamming", sampling_rate=8000), [(3, 90)])
case("stft", None, [(2, 70)], call=lambda layer, x: list(keras.ops.stft(x, 12, 5, 16)))
case("stft_ends", None, [(2, 70)], call=lambda layer, x: list(keras.ops.stft(x, 16, 4, 16, "hann", center=False)))
save_file({key: np.array(value, order="C") for key, value in tensors.items()}, sys.argv[1])
