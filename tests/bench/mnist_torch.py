"""The loop of samples/mnist.deck in PyTorch, eager: same network, batches, optimizer (fused Adam) and number of steps.
Prints the seconds of each epoch and the validation accuracy. Takes the folder of the four MNIST .gz files."""
import gzip
import sys
import time

import torch
import torch.nn.functional as F


def load(folder, part):
    with gzip.open(f"{folder}/{part}-images-idx3-ubyte.gz") as f:
        images = torch.frombuffer(bytearray(f.read()[16:]), dtype=torch.uint8).reshape(-1, 784)
    with gzip.open(f"{folder}/{part}-labels-idx1-ubyte.gz") as f:
        labels = torch.frombuffer(bytearray(f.read()[8:]), dtype=torch.uint8)
    return images.float() / 255, labels.long()


def main():
    folder, epochs = sys.argv[1], int(sys.argv[2])
    torch.manual_seed(1)
    torch.set_num_threads(2)
    x, y = load(folder, "train")
    x_train, y_train, x_val, y_val = x[:-10000], y[:-10000], x[-10000:], y[-10000:]
    sizes = [784, 64, 64, 10]
    weights = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        limit = (6 / (inputs + outputs)) ** 0.5
        weights.append(torch.empty(inputs, outputs).uniform_(-limit, limit).requires_grad_())
        weights.append(torch.zeros(outputs, requires_grad=True))
    w1, b1, w2, b2, w3, b3 = weights

    def model(x):
        h = torch.relu(x @ w1 + b1)
        h = torch.relu(h @ w2 + b2)
        return h @ w3 + b3

    optimizer = torch.optim.Adam(weights, lr=0.001, eps=1e-7, fused=True)
    for epoch in range(epochs):
        start = time.perf_counter()
        order = torch.randperm(len(x_train))
        seen = 0
        for step, at in enumerate(range(0, len(x_train), 32)):
            index = order[at:at + 32]
            loss = F.cross_entropy(model(x_train[index]), y_train[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(index)
            if step % 100 == 0:
                print(f"Training loss (for 1 batch) at step {step}: {loss:.4f}")
                print(f"Seen so far: {seen} samples")
        seconds = time.perf_counter() - start
        with torch.no_grad():
            right = sum((model(x_val[i:i + 1000]).argmax(1) == y_val[i:i + 1000]).sum().item()
                        for i in range(0, 10000, 1000))
        print(f"Validation accuracy: {right / 10000:.4f}")
        print(f"epoch seconds {seconds:.4f}", flush=True)


main()
