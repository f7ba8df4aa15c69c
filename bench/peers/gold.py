"""Gold data for the layers: inputs, state dict, output, gradients and one Adam step of PyG's layer, one file a case.

    bench/peers/setup torch
    python3 bench/peers/gold.py                  # writes tests/layers/gold/*.safetensors
    python3 bench/peers/gold.py gat_conv         # those whose names begin so

The files are committed, so that tests need no Python; run this when a case is added, and look at what changed. Everything is
computed in float64 from values that float32 holds and stored as float32, so the file is the truth and not one more rounding.
A case is one entry of CASES: a name, a PyG module, and the graph it sees. tests/layers/gold.h says what is in a file.

Entries: `x`, `edge_index` (2, E), `edge_attr` where the layer takes it, `seed` (the gradient of the output), `out`,
`state.NAME` (parameters and buffers before), `grad.NAME` (and `grad.x`, `grad.edge_attr`), `step.NAME` (parameters after
one step of Adam with lr 0.01 and eps 1e-3: a gradient that is zero but for rounding must not decide a step's sign).
"""
import json
import os
import struct
import sys
from pathlib import Path

import measure

OUT = measure.REPO / "tests" / "layers" / "gold"

# ---- graphs: (nodes, edges as (src, dst)) -----------------------------------------------------------------------------

GRAPHS = {
    # 5 and 9 are isolated; loops at 2 (twice) and 7; 0 -> 1 three times; 4 sends only, 8 receives only.
    "odd": (10, [(0, 1), (2, 2), (1, 0), (0, 1), (3, 1), (4, 3), (2, 2), (0, 1), (6, 8), (7, 7), (3, 6), (6, 3), (2, 0), (1, 2),
                 (7, 8), (4, 8), (0, 3)]),
    "one_node": (1, []),
    "one_loop": (1, [(0, 0)]),
    "no_edges": (4, []),
}


def cases():
    """name -> (make(torch_geometric.nn) -> module, graph, columns of x, columns of edge_attr or 0)."""
    found = {}

    def add(layer, option, make, graph="odd", x=5, edge=0):
        found[f"{layer}_{option}"] = (make, graph, x, edge)

    for conv, cls in (("gat_conv", "GATConv"), ("gatv2_conv", "GATv2Conv")):
        def make(cls=cls, **options):
            return lambda nn: getattr(nn, cls)(5, 3, **options)
        add(conv, "default", make())
        for graph in ("one_node", "one_loop", "no_edges"):
            add(conv, graph, make(heads=2), graph)
        add(conv, "heads", make(heads=4))
        add(conv, "mean", make(heads=3, concat=False))
        add(conv, "no_loops", make(heads=2, add_self_loops=False, negative_slope=0.1))
        add(conv, "edges", make(heads=2, edge_dim=4), edge=4)
        add(conv, "edges_filled", make(heads=2, edge_dim=4, fill_value=0.5), edge=4)
        add(conv, "edges_no_loops", make(heads=2, edge_dim=4, add_self_loops=False), edge=4)
        add(conv, "residual", make(heads=2, residual=True, bias=False))
        add(conv, "residual_mean", make(heads=2, residual=True, concat=False))
    add("gatv2_conv", "shared", lambda nn: nn.GATv2Conv(5, 3, heads=2, share_weights=True))

    def transformer(**options):
        return lambda nn: nn.TransformerConv(5, 3, **options)
    add("transformer_conv", "default", transformer())
    for graph in ("one_node", "one_loop", "no_edges"):
        add("transformer_conv", graph, transformer(heads=2), graph)
    add("transformer_conv", "heads", transformer(heads=4))
    add("transformer_conv", "mean", transformer(heads=3, concat=False))
    add("transformer_conv", "beta", transformer(heads=2, beta=True))
    add("transformer_conv", "beta_mean", transformer(heads=2, beta=True, concat=False))
    add("transformer_conv", "edges", transformer(heads=2, edge_dim=4), edge=4)
    add("transformer_conv", "no_root", transformer(heads=2, root_weight=False, beta=True, bias=False))

    def gat_model(nn):
        """PyG's examples/gat.py, its two layers in a list."""
        import torch

        class Gat(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.convs = torch.nn.ModuleList([nn.GATConv(5, 3, heads=4), nn.GATConv(12, 2, heads=2, concat=False)])

            def forward(self, x, edge_index):
                return self.convs[1](torch.nn.functional.elu(self.convs[0](x, edge_index)), edge_index)

        return Gat()
    add("gat_model", "citation", gat_model)
    return found


# ---- the peer's side: runs in the torch environment --------------------------------------------------------------------

def write_safetensors(path, arrays, metadata):
    """Arrays (name -> numpy) in the safetensors format, written here so that the environment needs no package for it."""
    header, blobs, at = {"__metadata__": metadata}, [], 0
    for name in sorted(arrays, key=lambda n: (-arrays[n].dtype.itemsize, n)):
        blob = arrays[name].tobytes()
        kind = {"float32": "F32", "int64": "I64"}[str(arrays[name].dtype)]
        header[name] = {"dtype": kind, "shape": list(arrays[name].shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write_case(name, make, graph, x_columns, edge_columns):
    import numpy as np
    import torch
    import torch_geometric

    def draw(*shape):
        return (torch.rand(*shape, dtype=torch.float64) * 2 - 1).float().double()

    torch.manual_seed(sum(name.encode()))
    nodes, edges = GRAPHS[graph]
    module = make(torch_geometric.nn).double().train()
    with torch.no_grad():
        for p in module.parameters():  # biases begin as zeros, which would hide them
            p.copy_(draw(*p.shape) if p.abs().sum() == 0 else p.float().double())
    inputs = {"x": draw(nodes, x_columns).requires_grad_()}
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t().contiguous()
    if edge_columns:
        inputs["edge_attr"] = draw(len(edges), edge_columns).requires_grad_()
    arrays = {"edge_index": edge_index}
    state = {f"state.{k}": v.detach().clone() for k, v in module.state_dict().items()}
    out = module(inputs["x"], edge_index, **({"edge_attr": inputs["edge_attr"]} if edge_columns else {}))
    seed = draw(*out.shape)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01, eps=1e-3)
    out.backward(seed)
    optimiser.step()
    arrays.update(inputs)
    arrays.update(state)
    arrays.update(out=out, seed=seed)
    for k, p in module.named_parameters(remove_duplicate=False):
        arrays[f"step.{k}"] = p
        arrays[f"grad.{k}"] = torch.zeros_like(p) if p.grad is None else p.grad
    for k, v in inputs.items():
        arrays[f"grad.{k}"] = torch.zeros_like(v) if v.grad is None else v.grad
    arrays = {k: v.detach().numpy().astype(np.int64 if v.dtype == torch.int64 else np.float32) for k, v in arrays.items()}
    OUT.mkdir(exist_ok=True)
    write_safetensors(OUT / f"{name}.safetensors", arrays,
                      {"module": repr(module), "torch_geometric": torch_geometric.__version__, "torch": torch.__version__})


def main(prefixes):
    if os.environ.get("TESSERA_GOLD_WORKER") != "1":
        os.environ["TESSERA_GOLD_WORKER"] = "1"
        python = measure.peer_python("torch")
        os.execv(python, [python, __file__, *prefixes])
    import torch
    torch.set_num_threads(1)
    for name, case in cases().items():
        if not prefixes or any(name.startswith(p) for p in prefixes):
            write_case(name, *case)
            print(f"{name}: {os.path.getsize(OUT / (name + '.safetensors'))} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
