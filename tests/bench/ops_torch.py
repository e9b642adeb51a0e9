"""PyTorch's side of the op bench, on argv[2] threads. A line of input is a row, [setup, step] as JSON; ops_clock.deck,
whose path is argv[1], has the loop that then answers. Memory is printed as /proc tells it, before a row's inputs and at
its peak."""
import ctypes
import gc
import json
import sys

import torch

torch.set_num_threads(int(sys.argv[2]))
with open(sys.argv[1]) as file:
    CLOCK = {}
    exec(file.read(), CLOCK)


def gradients(f, inputs, cotangent):
    for x in inputs:
        x.requires_grad_()
    return torch.autograd.grad(f(*inputs), inputs, cotangent)


def names():
    """What a row sees: PyTorch's functions by their bare names, and the same helpers as in tapedeck."""
    scope = {}
    exec("import torch\nfrom torch import *\nfrom torch.nn.functional import *", scope)
    scope.update(range=range, serve=CLOCK["serve"], uniform=torch.rand, normal=torch.randn, gradients=gradients,
                 integers=lambda high, *shape: torch.randint(0, high, shape))
    return scope


def memory(afresh):
    gc.collect()
    try:
        if afresh:
            ctypes.CDLL(None).malloc_trim(0)
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")  # the peak starts at what is held now
        with open("/proc/self/status") as file:
            print([line for line in file if line.startswith("VmHWM")][0].strip())
    except (OSError, AttributeError):
        pass  # not on this system


for request in sys.stdin:
    setup, step = json.loads(request)
    scope = names()
    memory(True)
    try:
        exec(f"{setup}\n{step}\nserve(step)", scope)
    except Exception as error:
        print("skipped", str(error).split("\n")[0])
    memory(False)
    scope.clear()
    print("end")
