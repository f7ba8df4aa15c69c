"""Writes the small torch files of tests/core/io/torch, for the reader of torch.save's files (core/io/torch_file.h).

python bench/peers/torch_files.py tests/core/io/torch
"""

import collections
import os
import sys

import torch


def everything():
    """Dtypes, strides, shared storage, a parameter, buffers of no size, and a module's _metadata."""
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    state = collections.OrderedDict()
    state["f32"] = base
    state["transposed"] = base.t()
    state["column"] = base[:, 1]
    state["rows"] = base[1:]
    state["f64"] = torch.tensor([0.1, -0.2], dtype=torch.float64)
    state["f16"] = torch.tensor([1.5, -2.0], dtype=torch.float16)
    state["bf16"] = torch.tensor([1.5, -3.0], dtype=torch.bfloat16)
    state["i64"] = torch.tensor([1 << 40, -1])
    state["i32"] = torch.tensor([[7], [-8]], dtype=torch.int32)
    state["i16"] = torch.tensor([-300, 300], dtype=torch.int16)
    state["i8"] = torch.tensor([-1, 127], dtype=torch.int8)
    state["u8"] = torch.tensor([0, 255], dtype=torch.uint8)
    state["bool"] = torch.tensor([True, False, True])
    state["scalar"] = torch.tensor(7, dtype=torch.int64)
    state["nothing"] = torch.empty(0, 5)
    state["parameter"] = torch.nn.Parameter(torch.tensor([2.5]))
    state._metadata = collections.OrderedDict([("", {"version": 1})])
    return state


def checkpoint():
    """What training scripts save: a wrapped model's state among an optimiser's and plain numbers."""
    model = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model.module(torch.ones(1, 2)).sum().backward()
    optimiser.step()
    with torch.no_grad():
        model.module.weight.copy_(torch.tensor([[1.0, 2.0]]))
        model.module.bias.copy_(torch.tensor([3.0]))
    return {"epoch": 3, "best": 0.5, "state_dict": model.state_dict(), "optimizer": optimiser.state_dict()}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name, value in (("everything", everything()), ("checkpoint", checkpoint())):
        torch.save(value, f"{folder}/{name}.pt")
        torch.save(value, f"{folder}/{name}_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(torch.tensor([1.0, 2.0]), f"{folder}/tensor.pt")
    torch.save(torch.nn.Linear(1, 1), f"{folder}/module.pt")


if __name__ == "__main__":
    torch.manual_seed(0)
    main(sys.argv[1])
