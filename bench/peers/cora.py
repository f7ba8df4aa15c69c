"""Time of one training epoch of the Kipf GCN on Cora and CiteSeer: tessera-train-node beside current PyTorch + PyG.

    bench/peers/setup torch
    python3 bench/peers/cora.py --json cora.json            # both sides
    python3 bench/peers/cora.py --theirs-only               # the peer alone

The model: 2 layers, 16 hidden, ReLU, dropout 0.5 before each layer, Glorot weights, row-normalised features, Adam 0.01
with weight decay 5e-4 on the first layer, 200 epochs, full batch, no early stopping. An epoch is zero_grad, forward,
loss, backward, optimiser step; nothing is evaluated inside it, on either side.

The peer runs in several variants, from what a user writes to what can be got out of PyTorch by hand:

    pyg           PyG's GCNConv(cached=True), dense features, edge_index, every setting as it comes
    pyg-csr       the same with the normalised adjacency as torch.sparse CSR
    pyg-compile   pyg under torch.compile
    csr           no PyG: features and adjacency as torch.sparse CSR, dropout on the feature entries, autograd's backward
    bag           no PyG: both products as embedding_bag with per-sample weights, autograd's backward
    hand          own backward functions over transposes made once, embedding_bag as the kernel, dropout by one random bit
    hand-compile  hand under torch.compile

All but pyg use the fused Adam, a malloc that keeps its pages, and huge pages. Before timing, every variant must follow
pyg's loss over five steps without dropout. Rows, for each thread count T: plain-pyg (ours against pyg), fastest-pyg
(against the fastest of the pyg variants), fastest-any (against the fastest of all), variant/NAME. Ours always runs with
T threads; the peer of the first three rows with the best of its thread counts up to T.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import measure

PYG = ["pyg", "pyg-csr", "pyg-compile"]
VARIANTS = PYG + ["csr", "bag", "hand", "hand-compile"]
TUNED = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000", "THP_MEM_ALLOC_ENABLE": "1",
         "TORCHINDUCTOR_COMPILE_THREADS": "1"}
EPOCHS = 200
WARM_UP = 20
HIDDEN = 16


# ---- the peer's side: runs in the torch environment -------------------------------------------------------------------

def model(variant, data):
    """Returns (first, second, forward): the parameters of both layers, [weight (in, out), bias] each, and
    forward(dropout) -> logits. dropout is the probability, 0 when not training."""
    import numpy as np
    import torch
    import torch.nn.functional as F

    def int32(a):
        return torch.from_numpy(np.ascontiguousarray(a, np.int32))

    rowptr, col, val = data.normalised_adjacency()
    a_rowptr, a_col, a_val = int32(rowptr), int32(col), torch.from_numpy(val.astype(np.float32))
    adjacency = torch.sparse_csr_tensor(a_rowptr.clone(), a_col.clone(), a_val.clone(), (data.nodes, data.nodes))

    if variant in PYG:
        from torch_geometric.nn import GCNConv

        class GCN(torch.nn.Module):
            def __init__(self, **kwargs):
                super().__init__()
                self.conv1 = GCNConv(data.features, HIDDEN, **kwargs)
                self.conv2 = GCNConv(HIDDEN, data.classes, **kwargs)

            def forward(self, x, edges, dropout):
                x = F.dropout(x, dropout, self.training)
                x = self.conv1(x, edges).relu()
                x = F.dropout(x, dropout, self.training)
                return self.conv2(x, edges)

        x = torch.from_numpy(data.dense())
        csr = variant == "pyg-csr"
        edges = adjacency if csr else torch.from_numpy(data.edge_index)
        net = GCN(normalize=False) if csr else GCN(cached=True)
        net(x, edges, 0.0)  # fills the cache
        layers = [[conv.lin.weight, conv.bias] for conv in (net.conv1, net.conv2)]
        call = torch.compile(net) if variant == "pyg-compile" else net
        return *layers, lambda dropout: call(x, edges, dropout)

    def glorot(fan_in, fan_out):
        bound = (6 / (fan_in + fan_out)) ** 0.5
        return torch.nn.Parameter(torch.empty(fan_in, fan_out).uniform_(-bound, bound))

    w1, b1 = glorot(data.features, HIDDEN), torch.nn.Parameter(torch.zeros(HIDDEN))
    w2, b2 = glorot(HIDDEN, data.classes), torch.nn.Parameter(torch.zeros(data.classes))
    x_rowptr, x_col, x_val = int32(data.rowptr), int32(data.col), torch.from_numpy(data.val)

    def bag(rowptr, col, val, dense):
        return F.embedding_bag(col, dense, rowptr, mode="sum", per_sample_weights=val, include_last_offset=True)

    if variant == "csr":
        def times_x(val, w):
            return torch.sparse_csr_tensor(x_rowptr, x_col, val, (data.nodes, data.features)) @ w

        def times_a(h):
            return adjacency @ h
        drop = F.dropout
    elif variant == "bag":
        def times_x(val, w):
            return bag(x_rowptr, x_col, val, w)

        def times_a(h):
            return bag(a_rowptr, a_col, a_val, h)
        drop = F.dropout
    else:
        node = np.repeat(np.arange(data.nodes), np.diff(data.rowptr))
        order = np.lexsort((node, data.col))
        t_rowptr = int32(np.concatenate([[0], np.cumsum(np.bincount(data.col, minlength=data.features))]))
        t_col, t_order = int32(node[order]), torch.from_numpy(order)
        bits = torch.arange(32, dtype=torch.int32)

        class TimesX(torch.autograd.Function):
            @staticmethod
            def forward(ctx, val, w):
                ctx.save_for_backward(val)
                return bag(x_rowptr, x_col, val, w)

            @staticmethod
            def backward(ctx, grad):
                val, = ctx.saved_tensors
                return None, bag(t_rowptr, t_col, val[t_order], grad.contiguous())

        class TimesA(torch.autograd.Function):  # the adjacency is its own transpose
            @staticmethod
            def forward(ctx, h):
                return bag(a_rowptr, a_col, a_val, h)

            @staticmethod
            def backward(ctx, grad):
                return bag(a_rowptr, a_col, a_val, grad.contiguous())

        def drop(t, dropout):
            if dropout == 0:
                return t
            assert dropout == 0.5
            n = t.numel()
            random = torch.randint(-2**31, 2**31, ((n + 31) // 32, 1), dtype=torch.int32)
            return t * (random >> bits).bitwise_and_(1).view(-1)[:n].view_as(t) * 2
        times_x, times_a = TimesX.apply, TimesA.apply

    def forward(dropout):
        h = (times_a(times_x(drop(x_val, dropout), w1)) + b1).relu()
        return times_a(drop(h, dropout) @ w2) + b2
    return [w1, b1], [w2, b2], torch.compile(forward) if variant == "hand-compile" else forward


def work(variant, dataset, folder):
    """Serves one variant: versions, losses of the check, timed rounds, accuracies."""
    import warnings
    warnings.filterwarnings("ignore")
    import numpy as np
    import planetoid
    import torch
    import torch.nn.functional as F

    data = planetoid.load(folder, dataset)
    first, second, forward = model(variant, data)
    y, train, test = (torch.from_numpy(a) for a in (data.y, data.train, data.test))
    y_train = y[train]

    def start(seed):
        """Fresh parameters, the same for every variant, and a fresh optimiser: returns step(dropout)."""
        torch.manual_seed(seed)
        random = np.random.default_rng(seed)
        with torch.no_grad():
            for (w, b), fan_in, fan_out in ((first, data.features, HIDDEN), (second, HIDDEN, data.classes)):
                bound = (6 / (fan_in + fan_out)) ** 0.5
                new = torch.from_numpy(random.uniform(-bound, bound, (fan_in, fan_out)).astype(np.float32))
                w.copy_(new if w.shape == new.shape else new.t())  # PyG keeps (out, in)
                b.zero_()
        adam = torch.optim.Adam([{"params": first, "weight_decay": 5e-4}, {"params": second}], lr=0.01,
                                fused=None if variant == "pyg" else True)

        def step(dropout=0.5):
            adam.zero_grad()
            loss = F.cross_entropy(forward(dropout)[train], y_train)
            loss.backward()
            adam.step()
            return loss
        return step

    def handle(what, threads, seed=0):
        torch.set_num_threads(threads)
        if what == "check":
            step = start(seed)
            return {"losses": [step(0.0).item() for _ in range(5)]}
        step = start(seed)
        if what == "time":
            for _ in range(WARM_UP):
                step()
            return measure.time_calls(step, EPOCHS, budget_s=2)
        if what == "accuracy":
            for _ in range(EPOCHS):
                step()
            with torch.no_grad():
                return {"accuracy": (forward(0.0)[test].argmax(1) == y[test]).float().mean().item()}
        version = f"torch {torch.__version__}"
        if variant in PYG:
            import torch_geometric
            version += f", torch_geometric {torch_geometric.__version__}"
        return {"version": version}
    measure.serve(handle)


# ---- the script --------------------------------------------------------------------------------------------------------

def ours(binary, dataset, data, threads, seed):
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [binary, "--dataset", dataset, "--data", data, "--model", "gcn", "--recipe", "kipf", "--runs", "1",
                   "--seed", str(seed), "--threads", str(threads), "--json", result]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 3):  # 3: one run's accuracy lies outside the band of the mean
            raise SystemExit(f"{' '.join(map(str, command))} failed with code {done.returncode}: {done.stderr.strip()}")
        report = json.loads(result.read_text())
    if report["manifest"]["threads"] != threads:
        raise SystemExit(f"tessera-train-node ran {report['manifest']['threads']} threads, {threads} were asked for")
    epoch = report["result"]["epoch_seconds"]
    return {"median_s": epoch["median"], "min_s": epoch["min"], "peak_bytes": report["manifest"]["peak_rss_bytes"],
            "accuracy": report["result"]["test"]["mean"]}


def mean_accuracy(label, ask, seeds):
    got = [ask(seed) for seed in range(seeds)]
    std = statistics.stdev(got) if len(got) > 1 else 0
    print(f"  test accuracy, {label}: {100 * statistics.mean(got):.2f} +- {100 * std:.2f} %, seeds {seeds}")


def compare(dataset, args):
    python = measure.peer_python("torch")
    workers = {}
    for v in args.variants:
        command = [python, __file__, "--worker", v, "--datasets", dataset, "--data", args.data]
        workers[v] = measure.Worker(command, {} if v == "pyg" else TUNED)
    versions, failed, losses = {}, {}, {}
    for v, w in workers.items():
        try:
            versions[v] = w.ask(what="version", threads=max(args.threads))["version"]
            losses[v] = w.ask(what="check", threads=max(args.threads))["losses"]
            off = max(abs(a - b) for a, b in zip(losses[v], losses["pyg"]))
            if off > 1e-4:
                failed[v] = f"not the same model: losses {losses[v]}, pyg has {losses['pyg']}"
        except measure.WorkerFailed as e:
            failed[v] = str(e)
    for v, reason in failed.items():
        print(f"  {v} left out: {reason}")
    alive = [v for v in args.variants if v not in failed]

    tasks = {}
    for t in args.threads:
        if not args.theirs_only:
            tasks["ours", t] = lambda i, t=t: ours(args.binary, dataset, args.data, t, i)
        for v in alive:
            tasks[v, t] = lambda i, v=v, t=t: workers[v].ask(what="time", threads=t, seed=i)
    sides, load = measure.interleave(tasks, args.rounds, dataset)

    rows = []

    def add(name, note, v, t, at):
        rows.append(measure.row(f"{dataset}-epoch/{name}", f"kipf, full batch, {note}", "torch", versions[v],
                                sides.get(("ours", t)), sides[v, at], t, load))
    for t in args.threads:
        measured = [(v, at) for v in alive for at in args.threads if at <= t and "median_s" in sides[v, at]]
        for name, among in (("plain-pyg", ["pyg"]), ("fastest-pyg", PYG), ("fastest-any", VARIANTS)):
            candidates = [key for key in measured if key[0] in among]
            if candidates:
                v, at = min(candidates, key=lambda key: sides[key]["median_s"])
                add(name, f"peer {v}, {at} thread{'s' * (at > 1)}", v, t, at)
        for v in alive:
            add(f"variant/{v}", f"peer {v}, {t} thread{'s' * (t > 1)}", v, t, t)
    print()
    measure.print_rows(rows)
    if load > os.cpu_count():
        print(f"  load average {load} on {os.cpu_count()} CPUs: long epochs "
              "suffer most, so these ratios flatter ours; repeat on a quiet machine")

    if args.seeds:
        t = max(args.threads)
        done = [key for key in sides if key[0] != "ours" and "median_s" in sides[key]]
        best = {name: min(keys, key=lambda key: sides[key]["median_s"])
                for name, keys in (("pyg", [key for key in done if key[0] == "pyg"]), ("any", done)) if keys}
        for v, at in dict.fromkeys(best.values()):
            seeds = max(1, min(args.seeds, int(60 / (EPOCHS * sides[v, at]["median_s"]))))  # a minute each is enough
            mean_accuracy(v, lambda seed: workers[v].ask(what="accuracy", threads=at, seed=seed)["accuracy"], seeds)
        if not args.theirs_only:
            mean_accuracy("ours", lambda seed: ours(args.binary, dataset, args.data, t, seed)["accuracy"], args.seeds)
    for w in workers.values():
        w.close()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=str(measure.DATA), help="default: ../shared/data beside the repository")
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer"])
    parser.add_argument("--variants", nargs="+", default=VARIANTS, choices=VARIANTS, help="pyg always takes part")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seeds", type=int, default=10, help="trainings for the accuracy check, 0 for none")
    parser.add_argument("--binary", type=Path, default=measure.BIN / "tessera-train-node")
    parser.add_argument("--theirs-only", action="store_true", help="measure the peer alone")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return work(args.worker, args.datasets[0], args.data)
    if not args.theirs_only and not args.binary.exists():
        sys.exit("tessera-train-node is not built: ./dev build (or measure the peer alone with --theirs-only)")
    args.variants = list(dict.fromkeys(["pyg", *args.variants]))
    measure.print_environment()
    rows = [r for dataset in args.datasets for r in compare(dataset, args)]
    if args.json:
        measure.write_json(args.json, rows)


if __name__ == "__main__":
    main()
