"""Time and memory of a GAT layer, forward and backward: edge_attention_bench --layer beside PyG's GATConv.

    bench/peers/setup torch
    ./dev build
    python3 bench/peers/gat.py --json gat.json           # 233k nodes, 8M edges, 8 heads x 8: 8 GB for the peer
    python3 bench/peers/gat.py --nodes 20000 --edges 500000

Both sides get the same graph (the synthetic generator's, written by the bench), 64 columns of input, no added loops, no
dropout; a step is forward and backward with a given gradient, to the input and all parameters. One warm-up step, then the
sides take turns. peak_bytes is VmHWM of each process, libraries included (0.55 GB for PyTorch); `tensor_bytes` of ours is
what the layer itself held at most.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import measure


# ---- the peer's side: runs in the torch environment -------------------------------------------------------------------

def read_safetensors(path):
    import numpy as np
    blob = Path(path).read_bytes()
    length = struct.unpack("<Q", blob[:8])[0]
    header, at = json.loads(blob[8:8 + length]), 8 + length
    kinds = {"I32": np.int32, "I64": np.int64, "F32": np.float32}
    return {name: np.frombuffer(blob[at + e["data_offsets"][0]:at + e["data_offsets"][1]], kinds[e["dtype"]])
            for name, e in header.items() if name != "__metadata__"}


def peer(path, nodes, heads, channels, columns):
    import numpy as np
    import torch
    import torch_geometric
    edges = read_safetensors(path)
    edge_index = torch.from_numpy(np.stack([edges["src"], edges["dst"]]).astype(np.int64))
    torch.manual_seed(1)
    conv = torch_geometric.nn.GATConv(columns, channels, heads=heads, add_self_loops=False)
    x = torch.randn(nodes, columns, requires_grad=True)
    seed = torch.randn(nodes, heads * channels)

    def step():
        conv.zero_grad()
        x.grad = None
        conv(x, edge_index).backward(seed)

    def handle(threads, steps):
        torch.set_num_threads(threads)
        if steps == 0:
            step()
            return {"version": f"torch {torch.__version__}, PyG {torch_geometric.__version__}"}
        return measure.time_calls(step, steps, least=steps)

    measure.serve(handle)


# ---- this side --------------------------------------------------------------------------------------------------------

def ours(args, steps, json_file, edges_file=""):
    command = [str(measure.BIN / "edge_attention_bench"), "--layer", str(args.columns), "--heads", str(args.heads),
               "--channels", str(args.channels), "--nodes", str(args.nodes), "--edges", str(args.edges), "--threads",
               str(args.threads), "--rounds", str(steps), "--json", json_file]
    if edges_file:
        command += ["--write-edges", edges_file]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = os.wait4(process.pid, 0)
    if peak[1] != 0:
        raise measure.WorkerFailed(f"edge_attention_bench ended with status {peak[1]}")
    result = json.loads(Path(json_file).read_text())[0]
    return {"median_s": result["ours"]["median_s"], "min_s": result["ours"]["min_s"], "peak_bytes": peak[2].ru_maxrss * 1024,
            "tensor_bytes": result.get("tensor_bytes")}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("nodes", 233000), ("edges", 8000000), ("heads", 8), ("channels", 8), ("columns", 64), ("threads", 2),
                        ("rounds", 3), ("steps", 3)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--json", default="")
    p.add_argument("--peer", default="", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.peer:
        return peer(args.peer, args.nodes, args.heads, args.channels, args.columns)
    with tempfile.TemporaryDirectory() as folder:
        edges, out = os.path.join(folder, "edges.safetensors"), os.path.join(folder, "ours.json")
        ours(args, 1, out, edges)
        forward = [f"--{n}={getattr(args, n)}" for n in ("nodes", "heads", "channels", "columns")]
        worker = measure.Worker([measure.peer_python("torch"), __file__, "--peer", edges, *forward])
        version = worker.ask(threads=args.threads, steps=0)["version"]
        tensor_bytes = []

        def our_round(_):
            result = ours(args, args.steps, out)
            tensor_bytes.append(result["tensor_bytes"])
            return result

        sides, load = measure.interleave(
            {"ours": our_round, "theirs": lambda _: worker.ask(threads=args.threads, steps=args.steps)}, args.rounds, "gat")
        worker.close()
    name = f"GAT layer {args.heads} x {args.channels}, {args.nodes} nodes, {args.edges} edges"
    rows = [measure.row(name, "forward + backward", "torch", version, sides["ours"], sides["theirs"], args.threads, load)]
    rows[0]["ours"]["tensor_bytes"] = tensor_bytes[-1]
    measure.print_rows(rows)
    if "peak_bytes" in sides["theirs"]:
        print(f"peak memory: {sides['ours']['peak_bytes'] / sides['theirs']['peak_bytes']:.3f} of theirs")
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
