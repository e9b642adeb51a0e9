"""Makes layers_agree.safetensors: what PyTorch's layers compute in float64, and where 20 steps of descent lead them.

For each case: its input "x" (several: "x", "x1"), the Variables by tapedeck's paths before ("w/PATH") and after
("after/PATH") 20 steps of w -= 0.05 * gradient of mean(y**2), the first output "y" and the last "y20".
tests/language/decks/library/layers_agree.deck compares.
Run: python3 library_layers.py layers_agree.safetensors (PyTorch, safetensors).
"""
import sys
import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
tensors = {}
front = lambda x: x.movedim(-1, 1)
back = lambda x: x.movedim(1, -1)
same = lambda w: w
turned = lambda w: w.T


def case(name, function, weights, *inputs):
    """weights: {path: (tensor, to tapedeck's layout, trained)}; function(*inputs) reads the tensors."""
    def keep(key, value):
        tensors[f"{name}/{key}"] = np.array(value.detach().numpy(), order="C")
    for i, x in enumerate(inputs):
        keep("x" if i == 0 else f"x{i}", x)
    for path, (w, layout, trained) in weights.items():
        keep(f"w/{path}", layout(w))
    trained = [w for w, _, train in weights.values() if train]
    for w in trained:
        w.requires_grad_(True)
    optimizer = torch.optim.SGD(trained, lr=0.05) if trained else None
    for step in range(20):
        y = function(*inputs)
        if step == 0:
            keep("y", y)
        if optimizer is None:
            return
        optimizer.zero_grad()
        (y ** 2).mean().backward()
        optimizer.step()
    keep("y20", function(*inputs))
    for path, (w, layout, _) in weights.items():
        keep(f"after/{path}", layout(w))


def seeded(index):
    torch.manual_seed(index)


def make(*shape):
    return torch.randn(*shape) * 0.5


seeded(1)
k, b = make(3, 4), make(4)
case("dense", lambda x: torch.tanh(x @ k + b), {"kernel": (k, same, True), "bias": (b, same, True)}, make(5, 2, 3))

for index, (name, x_shape, k_shape, options) in enumerate([
        ("conv1d", (2, 9, 3), (4, 3, 3), {"stride": 2}),
        ("conv2d", (2, 7, 6, 4), (6, 2, 3, 2), {"groups": 2, "dilation": (1, 2)}),
        ("conv2d_same", (2, 6, 6, 2), (3, 2, 3, 3), {"padding": "same"}),
        ("conv3d", (1, 4, 5, 4, 2), (3, 2, 2, 2, 2), {})]):
    seeded(10 + index)
    k, b = make(*k_shape), make(k_shape[0])
    op = {5: F.conv3d, 4: F.conv2d, 3: F.conv1d}[len(k_shape)]
    case(name, lambda x: back(op(front(x), k, b, **options)), {"kernel": (k, same, True), "bias": (b, same, True)},
         make(*x_shape))

seeded(20)
k, b = make(2, 3, 3, 3), make(3)
case("conv2d_transpose", lambda x: back(F.conv_transpose2d(front(x), k, b, stride=2)),
     {"kernel": (k, same, True), "bias": (b, same, True)}, make(1, 4, 4, 2))
k, b = make(4, 1, 3, 3), make(4)
case("depthwise", lambda x: back(F.conv2d(front(x), k, b, groups=2)),
     {"kernel": (k, same, True), "bias": (b, same, True)},
     make(2, 5, 5, 2))
d, p, b = make(4, 1, 3, 3), make(3, 4, 1, 1), make(3)
case("separable", lambda x: back(F.conv2d(F.conv2d(front(x), d, groups=2), p, b)),
     {"depthwise_kernel": (d, same, True), "pointwise_kernel": (p, same, True), "bias": (b, same, True)},
     make(2, 5, 5, 2))

case("max_pool", lambda x: back(F.max_pool2d(front(x), 3, 2)), {}, make(2, 7, 7, 3))
case("average_pool", lambda x: back(F.avg_pool2d(front(x), 2)), {}, make(2, 6, 6, 3))
case("average_pool_same", lambda x: back(F.avg_pool2d(front(x), 3, 1, padding=1, count_include_pad=False)), {},
     make(2, 5, 5, 1))
case("global_average", lambda x: x.mean(dim=(1, 2)), {}, make(2, 5, 5, 3))

seeded(30)
table = make(7, 3)
case("embedding", lambda x: F.embedding(x, table), {"embeddings": (table, same, True)},
     torch.tensor([[0, 3, 6], [3, 3, 1]]))

seeded(31)
g, b, mean, var = 1 + make(3), make(3), torch.zeros(3), torch.ones(3)
case("batch_norm", lambda x: back(F.batch_norm(front(x), mean, var, g, b, training=True, momentum=0.01, eps=1e-3)),
     {"gamma": (g, same, True), "beta": (b, same, True)}, make(4, 5, 3))
case("batch_norm_inference",
     lambda x: F.batch_norm(x, torch.tensor([.1, .2, .3]), torch.tensor([1., 2., 3.]), eps=1e-3), {},
     make(4, 3))
g, b = 1 + make(4), make(4)
case("layer_norm", lambda x: F.layer_norm(x, (4,), g, b, 1e-3), {"gamma": (g, same, True), "beta": (b, same, True)},
     make(3, 2, 4))
g, b = 1 + make(4), make(4)
case("group_norm", lambda x: back(F.group_norm(front(x), 2, g, b, 1e-3)),
     {"gamma": (g, same, True), "beta": (b, same, True)}, make(2, 3, 3, 4))
s = 1 + make(4)
case("rms_norm", lambda x: F.rms_norm(x, (4,), s, 1e-6), {"scale": (s, same, True)}, make(3, 4))


def recurrent(name, module, reverse=False, sequences=True, gru=False):
    w = dict(module.named_parameters())
    one = not gru
    weights = {}
    for suffix, part in (("", ""), ("_reverse", "")) if module.bidirectional else (("", ""),):
        place = "" if not module.bidirectional else ("forward_layer/" if suffix == "" else "backward_layer/")
        weights[f"{place}cell/kernel"] = (w[f"weight_ih_l0{suffix}"].data, same, True)
        weights[f"{place}cell/recurrent_kernel"] = (w[f"weight_hh_l0{suffix}"].data, same, True)
        weights[f"{place}cell/bias"] = (w[f"bias_ih_l0{suffix}"].data, same, True)
        if one:
            w[f"bias_hh_l0{suffix}"].data.zero_()
        else:
            weights[f"{place}cell/recurrent_bias"] = (w[f"bias_hh_l0{suffix}"].data, same, True)

    def run(x):
        names = {}
        for suffix in ("", "_reverse") if module.bidirectional else ("",):
            place = "" if not module.bidirectional else ("forward_layer/" if suffix == "" else "backward_layer/")
            names[f"weight_ih_l0{suffix}"] = weights[f"{place}cell/kernel"][0]
            names[f"weight_hh_l0{suffix}"] = weights[f"{place}cell/recurrent_kernel"][0]
            names[f"bias_ih_l0{suffix}"] = weights[f"{place}cell/bias"][0]
            names[f"bias_hh_l0{suffix}"] = (torch.zeros_like(weights[f"{place}cell/bias"][0]) if one
                                            else weights[f"{place}cell/recurrent_bias"][0])
        y, _ = torch.func.functional_call(module, names, (x.flip(1) if reverse else x,))
        return y if sequences else y[:, -1]
    case(name, run, weights, make(3, 5, 2))


seeded(40)
recurrent("simple_rnn", nn.RNN(2, 4, batch_first=True), sequences=False)
recurrent("lstm", nn.LSTM(2, 4, batch_first=True))
recurrent("lstm_backwards", nn.LSTM(2, 4, batch_first=True), reverse=True)
recurrent("gru", nn.GRU(2, 4, batch_first=True), sequences=False, gru=True)
recurrent("bidirectional", nn.LSTM(2, 3, batch_first=True, bidirectional=True))

seeded(50)
mha = nn.MultiheadAttention(6, 2, batch_first=True)
mha.in_proj_bias.data.normal_(0, .3)
mha.out_proj.bias.data.normal_(0, .3)
parts = {"query": 0, "key": 1, "value": 2}
w, b = mha.in_proj_weight.data, mha.in_proj_bias.data
held = {}
for path, i in parts.items():
    held[f"{path}/kernel"] = (w[6 * i:6 * i + 6].clone(), turned, True)
    held[f"{path}/bias"] = (b[6 * i:6 * i + 6].clone(), same, True)
held["output/kernel"] = (mha.out_proj.weight.data, turned, True)
held["output/bias"] = (mha.out_proj.bias.data, same, True)


def attend(query, value):
    names = {"in_proj_weight": torch.cat([held[f"{p}/kernel"][0] for p in parts]),
             "in_proj_bias": torch.cat([held[f"{p}/bias"][0] for p in parts]),
             "out_proj.weight": held["output/kernel"][0], "out_proj.bias": held["output/bias"][0]}
    return torch.func.functional_call(mha, names, (query, value, value), {"need_weights": False})[0]


case("attention", attend, held, make(2, 3, 6), make(2, 4, 6))

seeded(51)
block = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True, layer_norm_eps=1e-6)
block.self_attn.in_proj_bias.data.normal_(0, .3)
w, b = block.self_attn.in_proj_weight.data, block.self_attn.in_proj_bias.data
inner = {}
for path, i in parts.items():
    inner[f"attention/{path}/kernel"] = (w[6 * i:6 * i + 6].clone(), turned, True)
    inner[f"attention/{path}/bias"] = (b[6 * i:6 * i + 6].clone(), same, True)
for path, name in (("attention/output", "self_attn.out_proj"), ("wide", "linear1"), ("narrow", "linear2")):
    module = block.get_submodule(name)
    inner[f"{path}/kernel"] = (module.weight.data, turned, True)
    inner[f"{path}/bias"] = (module.bias.data, same, True)
for path, name in (("norm_1", "norm1"), ("norm_2", "norm2")):
    module = block.get_submodule(name)
    inner[f"{path}/gamma"] = (module.weight.data, same, True)
    inner[f"{path}/beta"] = (module.bias.data, same, True)


def encode(x):
    names = {"self_attn.in_proj_weight": torch.cat([inner[f"attention/{p}/kernel"][0] for p in parts]),
             "self_attn.in_proj_bias": torch.cat([inner[f"attention/{p}/bias"][0] for p in parts])}
    for path, name in (("attention/output", "self_attn.out_proj"), ("wide", "linear1"), ("narrow", "linear2")):
        names[f"{name}.weight"], names[f"{name}.bias"] = inner[f"{path}/kernel"][0], inner[f"{path}/bias"][0]
    for path, name in (("norm_1", "norm1"), ("norm_2", "norm2")):
        names[f"{name}.weight"], names[f"{name}.bias"] = inner[f"{path}/gamma"][0], inner[f"{path}/beta"][0]
    return torch.func.functional_call(block, names, (x,))


case("transformer", encode, inner, make(2, 3, 6))
seeded(60)
k, b = make(4, 3, 5), make(4)
case("bilinear", lambda x, z: torch.tanh(F.bilinear(x, z, k, b)), {"kernel": (k, same, True), "bias": (b, same, True)},
     make(2, 3), make(2, 5))
for mode in ("mean", "sum", "max"):
    table = make(7, 3)
    case(f"embedding_bag_{mode}", lambda x: F.embedding_bag(x, table, mode=mode), {"embeddings": (table, same, True)},
         torch.tensor([[0, 3, 6], [3, 3, 1]]))
    table = make(7, 3)
    case(f"embedding_bag_{mode}_masked", lambda x: F.embedding_bag(x, table, mode=mode, padding_idx=0),
         {"embeddings": (table, same, True)}, torch.tensor([[0, 3, 6], [5, 0, 0]]))
case("pixel_shuffle", lambda x: back(F.pixel_shuffle(front(x), 2)), {}, make(2, 3, 2, 8))
case("pixel_unshuffle", lambda x: back(F.pixel_unshuffle(front(x), 2)), {}, make(2, 4, 6, 2))
case("channel_shuffle", lambda x: back(F.channel_shuffle(front(x), 3)), {}, make(2, 2, 3, 6))
case("local_response_norm", lambda x: back(F.local_response_norm(front(x), 3, 0.5, 0.6, 2.)), {}, make(2, 3, 2, 5))
save_file(tensors, sys.argv[1])
