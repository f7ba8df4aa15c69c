"""Time of one training epoch of whole models: Tessera beside current PyTorch + PyG.

    bench/peers/setup torch
    ./dev build
    python3 bench/peers/models.py --json models.json
    python3 bench/peers/models.py --rows 'nci1*' --threads 1 --clock cpu

    cora-gcn, cora-gat   one graph, full batch: Kipf's GCN of 16 hidden, GAT of 8 heads x 8 channels and dropout 0.6
    proteins-gcn, reddit-gcn (REDDIT-BINARY), nci1-gin
                         sets of graphs: benchmark/kernel's classifiers, 3 layers of 32, mean readout, dropout 0.5,
                         Adam 0.01, batches of 128 in an order drawn anew, all graphs of the set

An epoch is everything that a training does once its data is in memory: drawing the order, putting batches together,
zero_grad, forward, loss and its value, backward, optimiser step. Nothing is evaluated inside it.

The peer's variants:

    pyg           as a user writes it: layers on edge_index, DataLoader over a list of Data, every setting as it comes
    pyg-tuned     fused Adam, the readout told the number of graphs, a malloc that keeps its pages, huge pages
    pyg-csr       pyg-tuned on torch.sparse CSR adjacencies, on Cora normalised once; not for GAT, which needs the edges
    pyg-compile   pyg-tuned under torch.compile, with dynamic sizes on sets of graphs (there only where it is asked for)

Before timing, five steps without dropout from the same parameters must give our losses, so the data are the same too. Two
result rows for each: plain-pyg, and fastest-pyg against the fastest of all variants. SparseTensor is torch-sparse's,
without wheels for current PyTorch; in PyG torch.sparse CSR takes its place.
"""
import argparse
import fnmatch
import io
import os
import sys
import zipfile
from pathlib import Path

import measure

ROWS = {
    "cora-gcn": dict(set="cora", model="gcn"),
    "cora-gat": dict(set="cora", model="gat"),
    "proteins-gcn": dict(set="PROTEINS", model="gcn"),
    "reddit-gcn": dict(set="REDDIT-BINARY", model="gcn"),
    "nci1-gin": dict(set="NCI1", model="gin"),
}
VARIANTS = ["pyg", "pyg-tuned", "pyg-csr", "pyg-compile"]
TUNED = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000", "THP_MEM_ALLOC_ENABLE": "1",
         "TORCHINDUCTOR_COMPILE_THREADS": "1"}
BATCH = 128
HIDDEN = 32
ROUND_S = 1.0   # of epochs in a round, one at least
ROW_S = 120.0   # after which a row gets fewer than --rounds rounds


# ---- the peer's side: runs in the torch environment -------------------------------------------------------------------

def read_tu(folder):
    """TU raw text: (edges (2, E), graph of each node, label of each graph, label of each node), each from 0."""
    import numpy as np

    def column(what):
        return np.loadtxt(folder / f"{folder.name}_{what}.txt", dtype=np.int64, delimiter=",")

    labels = column("node_labels")
    return column("A").T - 1, column("graph_indicator") - 1, column("graph_labels"), labels - labels.min()


def read_gin_text(data, name):
    """The same of the text form of the GIN paper, in its zip; the nodes' labels are left out."""
    import numpy as np
    archive = zipfile.ZipFile(data / "tu-gin" / "zip" / f"{name}.zip")
    lines = io.TextIOWrapper(archive.open(f"{name}/{name}.txt"))
    edges, graph, labels, nodes = [], [], [], 0
    for g in range(int(next(lines))):
        size, label = map(int, next(lines).split())
        labels.append(label)
        for i in range(size):
            _, count, *neighbours = map(int, next(lines).split())
            edges += [(nodes + i, nodes + j) for j in neighbours[:count]]
        graph += [g] * size
        nodes += size
    return np.asarray(edges).T, np.asarray(graph), np.asarray(labels), None


def graphs(data, name):
    """List of Data with benchmark/kernel's features: one-hot labels, or the standardised degree. Edges ascend, each once."""
    import numpy as np
    import torch
    from torch_geometric.data import Data
    edges, graph, y, labels = read_gin_text(data, name) if name == "REDDIT-BINARY" else read_tu(data / "tu" / name)
    nodes = len(graph)
    key = np.unique((edges[0] * nodes + edges[1])[edges[0] != edges[1]])
    edges = np.stack([key // nodes, key % nodes])
    if labels is None:
        degree = torch.from_numpy(np.bincount(edges[0], minlength=nodes)).double()
        x = ((degree - degree.mean()) / degree.std()).float()[:, None]
    else:
        x = torch.nn.functional.one_hot(torch.from_numpy(labels)).float()
    y = torch.from_numpy(np.unique(y, return_inverse=True)[1])
    first = np.searchsorted(graph, np.arange(len(y) + 1))
    first_edge = np.searchsorted(edges[0], first)
    return [Data(x=x[first[g]:first[g + 1]].clone(), y=y[g:g + 1].clone(),
                 edge_index=torch.from_numpy(edges[:, first_edge[g]:first_edge[g + 1]] - first[g]).contiguous())
            for g in range(len(y))]


def nets():
    import torch
    from torch.nn import BatchNorm1d, Linear, ReLU, Sequential
    from torch.nn import functional as F
    from torch_geometric.nn import GATConv, GCNConv, GINConv, global_mean_pool

    class Nodes(torch.nn.Module):
        def __init__(self, convs, act, dropout):
            super().__init__()
            self.convs = torch.nn.ModuleList(convs)
            self.act, self.dropout = act, dropout

        def forward(self, x, edges):
            x = F.dropout(x, self.dropout, self.training)
            x = self.act(self.convs[0](x, edges))
            x = F.dropout(x, self.dropout, self.training)
            return self.convs[1](x, edges)

    def gat(features, classes, **_):
        return Nodes([GATConv(features, 8, heads=8, dropout=0.6), GATConv(64, classes, heads=1, concat=False, dropout=0.6)],
                     F.elu, 0.6)

    def gcn(features, classes, **options):
        return Nodes([GCNConv(features, 16, **options), GCNConv(16, classes, **options)], F.relu, 0.5)

    class Graphs(torch.nn.Module):
        def __init__(self, kind, features, classes):
            super().__init__()

            def conv(inputs):
                if kind == "gcn":
                    return GCNConv(inputs, HIDDEN)
                return GINConv(Sequential(Linear(inputs, HIDDEN), ReLU(), BatchNorm1d(HIDDEN),
                                          Linear(HIDDEN, HIDDEN), ReLU(), BatchNorm1d(HIDDEN)))
            self.conv1 = conv(features)
            self.convs = torch.nn.ModuleList([conv(HIDDEN), conv(HIDDEN)])
            self.lin1, self.lin2 = Linear(HIDDEN, HIDDEN), Linear(HIDDEN, classes)
            self.act = F.relu if kind == "gcn" else lambda x: x
            self.dropout = 0.5

        def forward(self, x, edges, batch, size=None):
            x = self.act(self.conv1(x, edges))
            for conv in self.convs:
                x = self.act(conv(x, edges))
            x = F.relu(self.lin1(global_mean_pool(x, batch, size)))
            return self.lin2(F.dropout(x, self.dropout, self.training))

    return gcn, gat, Graphs


def fill_parameters(net):
    """The same parameters on every side, in the order of their names."""
    import torch
    with torch.no_grad():
        for k, (_, p) in enumerate(sorted(net.named_parameters())):
            flat = p.reshape(-1, p.shape[-1])
            flat.copy_(torch.from_numpy(measure.inputs(flat.shape[0], flat.shape[1], 10 + k)) * 0.3)


class Peer:
    """Answers load, check and time, as models_bench does."""

    def __init__(self, variant):
        import warnings
        warnings.filterwarnings("ignore")
        self.variant = variant

    def handle(self, do, **request):
        return getattr(self, do)(**request)

    def load(self, data, set, model, threads):
        import torch
        import torch_geometric
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        self.fused = None if self.variant == "pyg" else True
        (self.load_nodes if set == "cora" else self.load_graphs)(Path(data), set, model)
        return {"version": f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__}"}

    def load_nodes(self, data, name, model):
        import numpy as np
        import torch
        from torch.nn import functional as F

        import planetoid
        d = planetoid.load(data, name)
        gcn, gat, _ = nets()
        x, y, train = torch.from_numpy(d.dense()), torch.from_numpy(d.y), torch.from_numpy(d.train)
        edges, options = torch.from_numpy(d.edge_index), dict(cached=True)
        if self.variant == "pyg-csr":
            if model == "gat":
                raise ValueError("GATConv works on the edges, whatever form they come in")
            rowptr, col, val = (torch.from_numpy(a) for a in d.normalised_adjacency())
            edges = torch.sparse_csr_tensor(rowptr, col, val.float(), (d.nodes, d.nodes))
            options = dict(normalize=False)
        net = (gcn if model == "gcn" else gat)(d.features, d.classes, **options)
        fill_parameters(net)
        if model == "gcn":
            net(x, edges)  # fills the cache
            groups = [{"params": net.convs[0].parameters(), "weight_decay": 5e-4}, {"params": net.convs[1].parameters()}]
            adam = torch.optim.Adam(groups, lr=0.01, fused=self.fused)
        else:
            adam = torch.optim.Adam(net.parameters(), lr=0.005, weight_decay=5e-4, fused=self.fused)
        call = torch.compile(net) if self.variant == "pyg-compile" else net

        def step():
            adam.zero_grad()
            loss = F.cross_entropy(call(x, edges)[train], y[train])
            loss.backward()
            adam.step()
            return loss.item()
        self.set_dropout = net.train
        self.check_step = self.epoch = step

    def load_graphs(self, data, name, model):
        import torch
        from torch.nn import functional as F
        from torch_geometric.loader import DataLoader
        items = graphs(data, name)
        csr = self.variant == "pyg-csr"
        if csr:
            from torch_geometric.transforms import ToSparseTensor
            form = ToSparseTensor(layout=torch.sparse_csr)
            items = [form(item) for item in items]
        net = nets()[2](model, items[0].num_features, 1 + max(int(item.y) for item in items))
        fill_parameters(net)
        adam = torch.optim.Adam(net.parameters(), lr=0.01, fused=self.fused)
        call = torch.compile(net, dynamic=True) if self.variant == "pyg-compile" else net

        def step(batch):
            adam.zero_grad()
            size = () if self.variant == "pyg" else (batch.num_graphs,)
            out = call(batch.x, batch.adj_t if csr else batch.edge_index, batch.batch, *size)
            loss = F.cross_entropy(out, batch.y)
            loss.backward()
            adam.step()
            return loss.item()

        first = next(iter(DataLoader(items, BATCH)))
        loader = DataLoader(items, BATCH, shuffle=True)

        def epoch():
            for batch in loader:
                step(batch)

        def set_dropout(on):
            net.dropout = 0.5 if on else 0.0  # batch norm goes on by the batch
        self.check_step, self.epoch, self.set_dropout = lambda: step(first), epoch, set_dropout

    def check(self):
        self.set_dropout(False)
        losses = [self.check_step() for _ in range(5)]
        self.set_dropout(True)
        return {"losses": losses}

    def time(self, budget_s, clock):
        import time
        self.epoch()
        measure.reset_peak_bytes()
        return measure.time_calls(self.epoch, 100_000, budget_s, least=1,
                                  clock=time.process_time if clock == "cpu" else time.perf_counter)


# ---- the script --------------------------------------------------------------------------------------------------------

def compare(name, args):
    """The result rows of one row, and a line for each variant."""
    row = ROWS[name]
    load = dict(do="load", data=args.data, threads=args.threads, **row)
    python = measure.peer_python("torch")
    side = measure.Worker([args.binary])
    variants = args.variants or [v for v in VARIANTS if v != "pyg-compile" or row["set"] == "cora"]
    workers = {v: measure.Worker([python, __file__, "--worker", v], {} if v == "pyg" else TUNED) for v in variants}
    versions, tasks = {}, {}

    def timed(worker):
        return lambda i: worker.ask(do="time", budget_s=ROUND_S, clock=args.clock)
    side.ask(**load)
    ours = side.ask(do="check")["losses"]
    tasks["ours"] = timed(side)
    for v, worker in workers.items():
        try:
            versions[v] = worker.ask(**load)["version"]
            theirs = worker.ask(do="check")["losses"]
            if max(abs(a - b) for a, b in zip(ours, theirs)) > 1e-3 * max(map(abs, ours)):
                raise measure.WorkerFailed(f"not the same model: losses {theirs}, ours are {ours}")
            tasks[v] = timed(worker)
        except measure.WorkerFailed as e:
            print(f"  {name}: {v} left out: {e}", file=sys.stderr)
    sides, load_average = measure.interleave(tasks, args.rounds, enough_s=ROW_S)
    for worker in [side, *workers.values()]:
        worker.close()
    clock = ", processor time" if args.clock == "cpu" else ""
    measured = [v for v in workers if "median_s" in sides.get(v, {})]
    results = [measure.row(f"{name}/variant/{v}", f"peer {v}{clock}", "torch", versions[v], sides["ours"], sides[v],
                           args.threads, load_average) for v in measured]
    for what, among in (("plain-pyg", ["pyg"]), ("fastest-pyg", VARIANTS)):
        candidates = [v for v in measured if v in among]
        if candidates:
            v = min(candidates, key=lambda v: sides[v]["median_s"])
            results.append(measure.row(f"{name}/{what}", f"an epoch, peer {v}{clock}", "torch", versions[v], sides["ours"],
                                       sides[v], args.threads, load_average))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("TESSERA_DATA") or str(measure.DATA),
                        help="default: $TESSERA_DATA, else ../shared/data beside the repository")
    parser.add_argument("--rows", nargs="+", default=["*"], help="of " + ", ".join(ROWS) + "; * and ? allowed")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS,
                        help="default: all, without pyg-compile on sets of graphs, where it compiles for many minutes")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall",
                        help="cpu: processor time of all threads, for a busy machine; use it with --threads 1")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds, fewer where a row takes two minutes")
    parser.add_argument("--binary", type=Path, default=measure.BIN / "models_bench")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return measure.serve(Peer(args.worker).handle)
    chosen = [name for name in ROWS if any(fnmatch.fnmatch(name, p) for p in args.rows)]
    if not chosen:
        sys.exit(f"no row is named {' or '.join(args.rows)}: there are {', '.join(ROWS)}")
    if not args.binary.exists():
        sys.exit("models_bench is not built: ./dev build")
    args.data = str(Path(args.data).resolve())
    measure.print_environment()
    results = []
    for name in chosen:
        got = compare(name, args)
        results += got
        print(f"{name}: " + ", ".join(f"{r['row'].split('/')[-1]} {r['ratio']:.2f}" for r in got) +
              "; peak memory " + ", ".join(f"{r['theirs']['peak_bytes'] / r['ours']['peak_bytes']:.1f}" for r in got[-1:]),
              flush=True)
        if args.json:
            measure.write_json(args.json, results)
    print()
    measure.print_rows(results)


if __name__ == "__main__":
    main()
