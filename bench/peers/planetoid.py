"""Reads the original Planetoid files (ind.NAME.x, .tx, .allx, .y, .ty, .ally, .graph, .test.index) into numpy arrays.

Measures nothing; the scripts beside it share it. Run alone it checks Cora and CiteSeer against their published counts
and golden sums and prints one line for each:

    ~/.cache/tessera-peers/torch/bin/python bench/peers/planetoid.py [--data ../shared/data]

Needs numpy only, 1 or 2. The pickles are read by an unpickler that knows the six globals these files use and refuses any other.
"""
import argparse
import pickle
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from measure import DATA

try:
    from numpy._core import multiarray
except ImportError:  # numpy 1
    from numpy.core import multiarray

# name: nodes, edge_index entries, features, feature entries, classes, training nodes, isolated nodes,
#       sum of D^-1/2 (A+I) D^-1/2, its trace, Frobenius norm of its product with the row-normalised features
KNOWN = {
    "cora": (2708, 10556, 1433, 49216, 7, 140, 0, 2505.339271, 745.558974, 8.067309),
    "citeseer": (3327, 9104, 3703, 105165, 6, 120, 48, 3187.478256, 1195.965090, 6.973074),
}


class CSR:
    """Stands in for scipy's csr_matrix: unpickling fills data, indices, indptr and _shape."""


class Unpickler(pickle.Unpickler):
    ALLOWED = {
        ("scipy.sparse.csr", "csr_matrix"): CSR,
        ("numpy.core.multiarray", "_reconstruct"): multiarray._reconstruct,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("collections", "defaultdict"): defaultdict,
        ("__builtin__", "list"): list,
    }

    def find_class(self, module, name):
        try:
            return self.ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"global {module}.{name} is not allowed in a Planetoid file") from None


@dataclass
class Dataset:
    name: str
    classes: int
    rowptr: np.ndarray  # features as CSR: int64 offsets, int64 columns, float32 values that sum to 1 in each row
    col: np.ndarray
    val: np.ndarray
    features: int
    edge_index: np.ndarray  # (2, E) int64, both directions, sorted by (source, destination), no duplicates, no loops
    y: np.ndarray  # (N,) int64
    train: np.ndarray  # node ids
    valid: np.ndarray
    test: np.ndarray

    @property
    def nodes(self):
        return len(self.y)

    def dense(self):
        """The row-normalised features as an (N, F) float32 array."""
        x = np.zeros((self.nodes, self.features), np.float32)
        x[np.repeat(np.arange(self.nodes), np.diff(self.rowptr)), self.col] = self.val
        return x

    def mask(self, which):
        m = np.zeros(self.nodes, bool)
        m[getattr(self, which)] = True
        return m

    def normalised_adjacency(self):
        """D^-1/2 (A+I) D^-1/2 as CSR (rowptr, col, val); symmetric, columns ascending."""
        n = self.nodes
        key = np.sort(np.concatenate([self.edge_index[0] * n + self.edge_index[1], np.arange(n) * (n + 1)]))
        src, dst = key // n, key % n
        degree = np.bincount(src, minlength=n).astype(np.float64)
        rowptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
        return rowptr, dst, (degree[src] * degree[dst]) ** -0.5


def find(data, name):
    """The folder that holds ind.NAME.*: DATA/planetoid/NAME, DATA/planetoid, DATA/NAME or DATA itself."""
    data = Path(data)
    places = [data / "planetoid" / name, data / "planetoid", data / name, data]
    for place in places:
        if (place / f"ind.{name}.graph").exists():
            return place
    raise SystemExit(f"no ind.{name}.graph under {data}: looked in " + ", ".join(str(p) for p in places))


def load(data, name):
    folder = find(data, name)

    def part(suffix):
        with open(folder / f"ind.{name}.{suffix}", "rb") as f:
            return Unpickler(f, encoding="latin1").load()

    x, allx, tx = part("x"), part("allx"), part("tx")
    labels, all_labels, test_labels = part("y"), part("ally"), part("ty")
    graph = part("graph")
    test = np.loadtxt(folder / f"ind.{name}.test.index", dtype=np.int64)
    known, features = allx._shape
    n = max(len(graph), int(test.max()) + 1)

    # Rows 0..known-1 come from allx, row k of tx belongs to node test[k], the rest (CiteSeer's 15) stay empty.
    row = np.concatenate([np.repeat(np.arange(known), np.diff(allx.indptr)), np.repeat(test, np.diff(tx.indptr))])
    col = np.concatenate([allx.indices, tx.indices]).astype(np.int64)
    val = np.concatenate([allx.data, tx.data]).astype(np.float64)
    order = np.lexsort((col, row))
    row, col, val = row[order], col[order], val[order]
    total = np.bincount(row, weights=val, minlength=n)
    rowptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int64)

    one_hot = np.zeros((n, labels.shape[1]), np.int64)
    one_hot[:known] = all_labels
    one_hot[test] = test_labels

    a = np.repeat(np.fromiter(graph, np.int64), [len(v) for v in graph.values()])
    b = np.concatenate([np.asarray(v, np.int64) for v in graph.values() if v])
    a, b = np.concatenate([a, b]), np.concatenate([b, a])
    key = np.unique((a * n + b)[a != b])

    train = np.arange(x._shape[0])
    return Dataset(
        name=name, classes=one_hot.shape[1], rowptr=rowptr, col=col, val=(val / total[row]).astype(np.float32),
        features=features, edge_index=np.stack([key // n, key % n]), y=one_hot.argmax(1),
        train=train, valid=np.arange(len(train), len(train) + 500), test=test)


def check(d):
    """Raises AssertionError when the set is not the one that KNOWN describes; returns the line that says so."""
    rowptr, col, val = d.normalised_adjacency()
    row = np.repeat(np.arange(d.nodes), np.diff(rowptr))
    product = np.zeros((d.nodes, d.features), np.float32)
    np.add.at(product, row, (val[:, None] * d.dense()[col]).astype(np.float32))
    isolated = d.nodes - len(np.unique(d.edge_index[0]))
    counts = (d.nodes, d.edge_index.shape[1], d.features, len(d.col), d.classes, len(d.train), isolated)
    sums = (val.sum(), val[row == col].sum(), np.sqrt((product.astype(np.float64) ** 2).sum()))
    known = KNOWN[d.name]
    assert counts == known[:7], f"{d.name}: counts {counts}, expected {known[:7]}"
    assert np.allclose(sums, known[7:], rtol=0, atol=2e-6), f"{d.name}: sums {sums}, expected {known[7:]}"
    assert len(d.test) == 1000 and len(d.valid) == 500
    return (f"{d.name}: {counts[0]} nodes, {counts[1]} edge entries, {counts[2]} features ({counts[3]} entries), "
            f"{counts[4]} classes, {counts[5]}/500/1000 split, golden sums agree")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    args = parser.parse_args()
    for name in KNOWN:
        print(check(load(args.data, name)))
