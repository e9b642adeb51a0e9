"""The models of training.deck in PyTorch, eager, with fused Adam. Arguments: the model's name, the seconds to run."""
import sys
from time import perf_counter

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(2)


def dense(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(28, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda: nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True)
        self.layers = nn.Sequential(nn.Embedding(100, 64), block(), block(), nn.Linear(64, 100))

    def forward(self, x):
        return self.layers(x).reshape(-1, 100)


def cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


models = {
    "mlp": lambda: (dense(784, 64, 64, 10), torch.randn(32, 784), torch.randint(0, 10, (32,))),
    "mlp_512": lambda: (dense(784, 512, 512, 10), torch.randn(256, 784), torch.randint(0, 10, (256,))),
    "cnn": lambda: (cnn(), torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))),
    "lstm": lambda: (Lstm(), torch.randn(32, 28, 28), torch.randint(0, 10, (32,))),
    "transformer": lambda: (Transformer(), torch.randint(0, 100, (16, 32)), torch.randint(0, 100, (512,))),
}
model, x, y = models[sys.argv[1]]()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)


def step():
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in range(5):
    step()
count, start, end = 0, perf_counter(), perf_counter() + float(sys.argv[2])
while perf_counter() < end:
    step()
    count += 1
print("steps", count / (perf_counter() - start))
