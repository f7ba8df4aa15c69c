"""Message-passing kernels, forward and backward: Tessera beside current PyTorch and PyG, torch-scatter, DGL and PyTorch 1.13.1.

    bench/peers/setup torch scatter dgl torch113
    ./dev build
    python3 bench/peers/kernels.py --json kernels.json                 # all rows and every peer that is there
    python3 bench/peers/kernels.py --rows 'b/spmm-sum.*' --peers torch
    python3 bench/peers/kernels.py --list

Rows are GRAPH/ROUTE-REDUCE-WIDTH[-grad]; the graphs come from datasets/synthetic, the same edges on every side:

    a   10 000 nodes, 200 000 random edges: in cache (the shape of PyG's test/utils/test_spmm.py)
    b   Reddit-like: 233 000 nodes, 23 M edges, power law with communities, node ids shuffled
    c   products-like: 2.4 M nodes, 62 M edges
    d   128 small graphs in one batch, 39 nodes and 146 edges each (the means of PROTEINS)
    g   b with 8 M edges, for attention

Routes: spmm, a sparse matrix made once times x; coo, what a user of edge_index writes: rows of x by the edges' sources,
reduced to their destinations; gat, a graph attention layer of 8 heads x 8 channels on 64 features; bf16, spmm on 16-bit
rows beside our own 32-bit one; reorder, spmm on the graph in community order beside our own on the shuffled one. Without
`-grad` a row times the forward pass with nothing to differentiate, with it forward and backward.

Every side keeps what its user would make once: ours the graph and its transpose, or one plan for the sources and one for
the destinations; PyTorch the CSR tensor or the int64 index; DGL the graph in the formats it wants. Where a peer has two
ways for the same (`A @ x` and `torch.sparse.mm` with a reduction), both are timed in the same rounds, and the faster is
the peer. Before timing, 64 values of the result and of the gradient must agree with ours to 1e-3 of the largest.
"""
import argparse
import fnmatch
import os
import sys
import tempfile
import time
from pathlib import Path

import measure

GRAPHS = {
    "a": dict(nodes=10_000, edges=200_000, exponent=1e6, communities=1, symmetric=False),
    "b": dict(nodes=233_000, edges=23_000_000),
    "c": dict(nodes=2_400_000, edges=62_000_000, exponent=2.5, communities=1000, max_degree=20_000),
    "d": dict(nodes=128 * 39, edges=128 * 146, exponent=1e6, communities=128, inside=1.0, shuffle=False),
    "g": dict(nodes=233_000, edges=8_000_000),
}
PEERS = ["torch", "torch-scatter", "dgl", "torch-1.13.1"]
ENVIRONMENT = {"torch": "torch", "torch-scatter": "torch", "dgl": "dgl", "torch-1.13.1": "torch113"}
TUNED = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000", "THP_MEM_ALLOC_ENABLE": "1",
         "DGLBACKEND": "pytorch"}
ROUND_S = 0.5  # of calls in a round, one at least
ROW_S = 60.0   # after which a row gets fewer than --rounds rounds


def all_rows():
    rows = []

    def add(graph, route, reduces, width, grads=(False, True), **more):
        for reduce in reduces:
            for grad in grads:
                name = f"{graph}/{route}-{reduce}-{width}{'-grad' if grad else ''}"
                rows.append(dict(name=name, graph=graph, route=route, reduce=reduce, width=width, grad=grad, **more))

    every = ["sum", "mean", "max", "min"]
    add("a", "spmm", every, 64)
    add("a", "coo", every[:3], 64)
    add("d", "spmm", every, 32)
    add("d", "coo", every[:3], 32)
    add("b", "spmm", every, 64)
    add("b", "spmm", every[:3], 256)
    add("b", "coo", every[:3], 64)
    add("c", "spmm", every[:3], 100)
    add("g", "gat", ["sum"], 64)
    for graph, widths in (("b", (64, 256)), ("c", (100,))):
        for width in widths:
            add(graph, "bf16", ["sum"], width, grads=(False,))
    for width in (64, 256):
        add("b", "reorder", ["sum"], width, grads=(False,))
    return rows


# ---- the peers' side: runs in their environments ----------------------------------------------------------------------

class Peer:
    """Answers graph, prepare, check and time, as kernels_bench does."""

    def __init__(self, name):
        import warnings
        warnings.filterwarnings("ignore")
        self.name = name
        self.kept = {}
        self.calls = {}

    def handle(self, do, **request):
        return getattr(self, do)(**request)

    def graph(self, folder, nodes, **_):
        import numpy as np
        import torch
        self.torch = torch
        self.nodes = nodes
        self.kept = {}
        self.src = torch.from_numpy(np.load(folder + "/src.npy").astype(np.int64))
        self.dst = torch.from_numpy(np.load(folder + "/dst.npy").astype(np.int64))
        version = torch.__version__
        if self.name == "dgl":
            import dgl
            version = dgl.__version__
        elif self.name == "torch-scatter":
            import torch_scatter
            version = torch_scatter.__version__
        return {"version": version}

    def keep(self, what, make):
        if what not in self.kept:
            self.kept[what] = make()
        return self.kept[what]

    def rows(self):
        """Offsets and sources of the edges by destination, in the order of the edges."""
        torch = self.torch

        def make():
            order = torch.argsort(self.dst * self.nodes + self.src)
            offsets = torch.zeros(self.nodes + 1, dtype=torch.int64)
            torch.cumsum(torch.bincount(self.dst, minlength=self.nodes), 0, out=offsets[1:])
            return offsets, self.src[order]
        return self.keep("rows", make)

    def csr(self):
        torch = self.torch

        def make():
            if self.name == "torch-1.13.1":  # refuses parallel edges: their number is the value
                coo = torch.sparse_coo_tensor(torch.stack([self.dst, self.src]), torch.ones(len(self.src)), (self.nodes, self.nodes))
                return coo.coalesce().to_sparse_csr()
            offsets, col = self.rows()
            return torch.sparse_csr_tensor(offsets, col, torch.ones(len(col)), (self.nodes, self.nodes))
        return self.keep("csr", make)

    def forwards(self, route, reduce, width, grad):
        """The ways this peer has for a row: name -> x -> out. Empty when it has none."""
        torch = self.torch
        F = torch.nn.functional
        if route == "gat":
            if self.name != "torch":
                return {}
            from torch_geometric.nn import GATConv
            torch.manual_seed(0)
            conv = GATConv(width, 8, heads=8, add_self_loops=False)
            parameter_values(conv)
            index = self.keep("edge_index", lambda: torch.stack([self.src, self.dst]))
            return {"GATConv": lambda x: conv(x, index)}
        if route == "coo":
            index = self.dst[:, None].expand(-1, width)
            if self.name == "torch-scatter":
                from torch_scatter import scatter
                return {"scatter": lambda x: scatter(x.index_select(0, self.src), self.dst, 0, dim_size=self.nodes,
                                                     reduce=reduce)}
            if self.name == "dgl":
                return {}
            if self.name == "torch-1.13.1":
                if reduce == "sum":
                    return {"scatter_add": lambda x: x.new_zeros(self.nodes, width).scatter_add(
                        0, index, x.index_select(0, self.src))}
                amax = {"mean": "mean", "max": "amax"}[reduce]
                return {"scatter_reduce": lambda x: x.new_zeros(self.nodes, width).scatter_reduce(
                    0, index, x.index_select(0, self.src), amax, include_self=False)}
            name = {"sum": "sum", "mean": "mean", "max": "amax"}[reduce]
            ways = {"scatter_reduce": lambda x: x.new_zeros(self.nodes, width).scatter_reduce(
                0, index, x.index_select(0, self.src), name, include_self=False)}
            if reduce == "sum":
                ways["scatter_add"] = lambda x: x.new_zeros(self.nodes, width).scatter_add(
                    0, index, x.index_select(0, self.src))
            return ways
        # spmm
        if self.name == "dgl":
            import dgl
            import dgl.function as fn

            def make():
                return dgl.graph((self.src.int(), self.dst.int()), num_nodes=self.nodes).formats(["csc", "csr"])
            graph = self.keep("dgl", make)
            reducer = getattr(fn, reduce)

            def forward(x):
                with graph.local_scope():
                    graph.srcdata["x"] = x
                    graph.update_all(fn.copy_u("x", "m"), reducer("m", "out"))
                    return graph.dstdata["out"]
            return {"update_all": forward}
        if self.name == "torch-scatter":
            from torch_scatter import segment_csr
            offsets, col = self.rows()
            if len(col) * width * 4 > 4e9:  # it makes all messages
                return {}
            return {"segment_csr": lambda x: segment_csr(x.index_select(0, col), offsets, reduce=reduce)}
        csr = self.csr()
        if self.name == "torch-1.13.1":
            return {"A @ x": lambda x: torch.sparse.mm(csr, x)} if reduce == "sum" else {}
        name = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}[reduce]
        ways = {"sparse.mm": lambda x: torch.sparse.mm(csr, x, name)}
        if reduce == "sum":
            ways["A @ x"] = lambda x: csr @ x
        return ways

    def prepare(self, route, reduce, width, grad, threads, **_):
        torch = self.torch
        torch.set_num_threads(threads)
        self.calls = {}
        x = torch.from_numpy(measure.inputs(self.nodes, width, 1))
        seed = torch.from_numpy(measure.inputs(self.nodes, width, 2))
        for way, forward in self.forwards(route, reduce, width, grad).items():
            def call(forward=forward):
                if not grad:
                    with torch.no_grad():
                        return [forward(x)]
                x.grad = None
                out = forward(x)
                out.backward(seed)
                return [out.detach(), x.grad]
            self.calls[way] = call
        if grad:
            x.requires_grad_()
        return {"ways": list(self.calls)}

    def check(self, way):
        return {"samples": [[float(r.reshape(-1)[(r.numel() - 1) * i // 63]) for i in range(64)]
                            for r in self.calls[way]()]}

    def time(self, way, budget_s, clock):
        self.calls[way]()
        measure.reset_peak_bytes()
        return measure.time_calls(self.calls[way], 1000, budget_s, least=1,
                                  clock=time.process_time if clock == "cpu" else time.perf_counter)


def parameter_values(module):
    """The same parameters on every side: element (i, j) of the k-th, scaled to a tenth."""
    import torch
    with torch.no_grad():
        for k, (name, p) in enumerate(sorted(module.named_parameters())):
            flat = p.reshape(-1, p.shape[-1])
            flat.copy_(torch.from_numpy(measure.inputs(flat.shape[0], flat.shape[1], 10 + k)) * 0.1)


# ---- the script --------------------------------------------------------------------------------------------------------

def agree(ours, theirs):
    """Why the samples of the results differ, or None."""
    for what, a, b in zip(("the result", "the gradient"), ours, theirs):
        largest = max(abs(v) for v in a + b) or 1
        for i, (p, q) in enumerate(zip(a, b)):
            if not abs(p - q) <= 1e-3 * largest:
                return f"{what} differs: sample {i} is {p} here and {q} there"
    return None


def compare(row, side, peers, versions, args):
    """The result rows of one row: one for each peer that has it."""
    request = {k: row[k] for k in ("route", "reduce", "width", "grad")} | {"threads": args.threads}
    tasks = {}
    if row["route"] in ("bf16", "reorder"):  # ours beside ours
        plain = dict(request, route="spmm")
        tuned = plain | ({"dtype": "bf16"} if row["route"] == "bf16" else {"order": "community"})

        def timed(wanted):
            side.ask(do="prepare", **wanted)
            return side.ask(do="time", budget_s=ROUND_S, clock=args.clock)
        tasks["ours"] = lambda i: timed(tuned)
        own = {"bf16": "tessera f32", "reorder": "tessera shuffled"}[row["route"]]
        tasks[own, "spmm"] = lambda i: timed(plain)
        versions = versions | {own: versions["ours"]}
    else:
        side.ask(do="prepare", **request)
        ours = side.ask(do="check")["samples"]
        tasks["ours"] = lambda i: side.ask(do="time", budget_s=ROUND_S, clock=args.clock)
        for name, worker in peers.items():
            try:
                for way in worker.ask(do="prepare", **request)["ways"]:
                    reason = agree(ours, worker.ask(do="check", way=way)["samples"])
                    if reason:
                        print(f"  {row['name']}: {name} {way} left out: {reason}", file=sys.stderr)
                        continue
                    tasks[name, way] = lambda i, w=worker, way=way: w.ask(
                        do="time", way=way, budget_s=ROUND_S, clock=args.clock)
            except measure.WorkerFailed as e:
                print(f"  {row['name']}: {name} left out: {e}", file=sys.stderr)
    sides, load = measure.interleave(tasks, args.rounds, enough_s=ROW_S)
    results = []
    for name in dict.fromkeys(key[0] for key in tasks if key != "ours"):
        ways = [key for key in tasks if key[0] == name and "median_s" in sides[key]]
        failed = [key for key in tasks if key[0] == name and "median_s" not in sides[key]]
        if not ways and not failed:
            continue
        best = min(ways, key=lambda key: sides[key]["median_s"]) if ways else failed[0]
        results.append(measure.row(row["name"], f"{best[1]}, {'forward + backward' if row['grad'] else 'forward'}"
                                   + (", processor time" if args.clock == "cpu" else ""), name,
                                   versions[name], sides["ours"], sides[best], args.threads, load))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=["*"], help="names of rows, * and ? allowed")
    parser.add_argument("--peers", nargs="+", choices=PEERS, help="default: those that setup has made")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall",
                        help="cpu: processor time of all threads, for a busy machine; use it with --threads 1")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds, fewer where a row takes a minute")
    parser.add_argument("--binary", type=Path, default=measure.BIN / "kernels_bench")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return measure.serve(Peer(args.worker).handle)
    rows = [r for r in all_rows() if any(fnmatch.fnmatch(r["name"], p) for p in args.rows)]
    if not rows:
        sys.exit(f"no row is named {' or '.join(args.rows)}: see --list")
    if args.list:
        return print("\n".join(r["name"] for r in rows))
    if not args.binary.exists():
        sys.exit("kernels_bench is not built: ./dev build")
    measure.print_environment()
    results = []
    for graph, options in GRAPHS.items():
        chosen = [r for r in rows if r["graph"] == graph]
        if not chosen:
            continue
        side = measure.Worker([args.binary])
        peers, versions = {}, {}
        with tempfile.TemporaryDirectory() as folder:
            versions["ours"] = side.ask(do="graph", folder=folder, **options)["version"]
            for name in args.peers or PEERS:
                if all(r["route"] in ("bf16", "reorder") for r in chosen):
                    continue
                try:
                    python = measure.peer_python(ENVIRONMENT[name])
                    worker = measure.Worker([python, __file__, "--worker", name], TUNED)
                    versions[name] = worker.ask(do="graph", folder=folder, **options)["version"]
                    peers[name] = worker
                except (SystemExit, measure.WorkerFailed) as e:
                    print(f"{name} left out: {e}", file=sys.stderr)
        for row in chosen:
            got = compare(row, side, peers, versions, args)
            results += got
            print(f"{row['name']}: " + ", ".join(
                f"{r['peer']} {r['ratio']:.2f}" if r["ratio"] else f"{r['peer']} {r['theirs']['error']}" for r in got), flush=True)
            if args.json:
                measure.write_json(args.json, results)
        for worker in [side, *peers.values()]:
            worker.close()
    print()
    measure.print_rows(results)


if __name__ == "__main__":
    main()
