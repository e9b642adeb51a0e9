"""Reference functions of make.py for recurrent layers and Fourier transforms."""

import torch
from torch.nn import functional

OPS = {}


def op(function):
    OPS[function.__name__.rstrip("_")] = function
    return function


def simple(**functions):
    OPS.update(functions)


# ---- recurrent layers: one cell of PyTorch's a step ----


def over_time(cell, x, state, mask, reverse):
    outs, kept = [None] * len(x), [None] * len(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        new, now = cell(x[t], state)
        counts = torch.ones(x.shape[1], dtype=torch.bool) if mask is None else mask[t]
        state = [torch.where(counts[:, None], a, b) for a, b in zip(new, state)]
        now = torch.where(counts[:, None], now, torch.zeros_like(now))
        if len(state) == 2:  # the lstm's c is carried in what is kept
            now = torch.cat([now, state[1]], 1)
        outs[t], kept[t] = state[0], now
    units = state[0].shape[1]
    width = {1: units, 2: 5 * units}[len(state)]
    if not len(x):
        return [x.new_zeros(0, x.shape[1], units), *state, x.new_zeros(0, x.shape[1], width)]
    return [torch.stack(outs), *state, torch.stack(kept)]


def first_state(x, w_hh, state):
    return x.new_zeros(x.shape[1], w_hh.shape[1]) if state is None else state


def pre(x, h, w_ih, w_hh, b_ih, b_hh):
    return functional.linear(x, w_ih, b_ih), functional.linear(h, w_hh, b_hh)


def no_bias(w, b):
    return w.new_zeros(w.shape[0]) if b is None else b


def gate(x):
    return torch.where(x < 0, torch.sigmoid(x), -torch.sigmoid(-x))


@op
def rnn_layer(x, w_ih, w_hh, b_ih=None, b_hh=None, h0=None, mask=None, reverse=False, nonlinearity="tanh"):
    run = torch.rnn_tanh_cell if nonlinearity == "tanh" else torch.rnn_relu_cell

    def cell(x, state):
        a, b = pre(x, state[0], w_ih, w_hh, b_ih, b_hh)
        return [run(x, state[0], w_ih, w_hh, no_bias(w_ih, b_ih), no_bias(w_hh, b_hh))], a + b

    return over_time(cell, x, [first_state(x, w_hh, h0)], mask, reverse)


@op
def lstm_layer(x, w_ih, w_hh, b_ih=None, b_hh=None, h0=None, c0=None, mask=None, reverse=False):
    def cell(x, state):
        a, b = pre(x, state[0], w_ih, w_hh, b_ih, b_hh)
        i, f, g, o = (a + b).chunk(4, 1)
        kept = torch.cat([gate(i), gate(f), g, gate(o)], 1)
        return torch.lstm_cell(x, state, w_ih, w_hh, no_bias(w_ih, b_ih), no_bias(w_hh, b_hh)), kept

    state = [first_state(x, w_hh, h0), first_state(x, w_hh, c0)]
    return over_time(cell, x, state, mask, reverse)


@op
def gru_layer(x, w_ih, w_hh, b_ih=None, b_hh=None, h0=None, mask=None, reverse=False):
    def cell(x, state):
        a, b = pre(x, state[0], w_ih, w_hh, b_ih, b_hh)
        (ar, az, an), (br, bz, q) = a.chunk(3, 1), b.chunk(3, 1)
        kept = torch.cat([gate(ar + br), gate(az + bz), an + torch.sigmoid(ar + br) * q, q], 1)
        return [torch.gru_cell(x, state[0], w_ih, w_hh, no_bias(w_ih, b_ih), no_bias(w_hh, b_hh))], kept

    outs = over_time(cell, x, [first_state(x, w_hh, h0)], mask, reverse)
    return outs if len(x) else outs[:2] + [x.new_zeros(0, x.shape[1], 4 * w_hh.shape[1])]


# ---- Fourier transforms; complex numbers are pairs ----


def of_pairs(transform):
    return lambda x, n=None, axis=-1, norm="backward": transform(torch.view_as_complex(x.contiguous()), n, axis, norm)


def to_pairs(transform):
    return lambda *inputs, **args: torch.view_as_real(transform(*inputs, **args)).contiguous()


simple(
    fft=to_pairs(of_pairs(torch.fft.fft)),
    ifft=to_pairs(of_pairs(torch.fft.ifft)),
    rfft=to_pairs(lambda x, n=None, axis=-1,
                  norm="backward": torch.fft.rfft(x if x.is_floating_point() else x.float(), n, axis, norm)),
    irfft=of_pairs(torch.fft.irfft),
)
