"""Makes tests/layers/gold: what PyG's layers give for small odd graphs, for the tests to compare with.

    bench/peers/setup torch
    python3 bench/peers/gold.py                # all
    python3 bench/peers/gold.py gat_conv       # those whose names begin so

The files are committed, so that tests need no Python; run this when a case is added, and look at what changed. Everything is
computed in float64 from values that float32 holds and stored as float32, so the file is the truth and not one more rounding.
One safetensors file for each layer and option set, NAME.safetensors. Its `__metadata__` says what made it. Its tensors:

    state/P          the parameters and buffers before anything ran, under PyG's names
    G/x, G/edge_index, G/edge_weight, G/edge_attr, G/batch, ...      what the layer was called with on graph G
    G/out, G/out.K   the result, or its parts
    G/seed           the gradient of the result that the backward pass started from
    G/grad/x, G/grad/edge_weight, ...        gradients of what the layer was called with
    G/grad.state/P   gradients of the parameters
    G/adam/P         parameters and buffers after one step of Adam (lr 0.01, eps 1e-3: a gradient that
                     is zero but for rounding must not decide a step's sign)

Graphs: `odd` has loops, parallel edges, a hub and isolated nodes; `single` one node without edges, `loop` one with a loop; `bare` three nodes
without edges; `batch` five graphs, of which one has a single node, one no edges, and the last no nodes. Values are drawn so
that no two messages tie. To add a layer, add an entry to `cases`.
"""
import json
import os
import sys

import measure

if "TESSERA_GOLD_WORKER" not in os.environ:  # started by any python3: go on in the peer's
    os.environ["TESSERA_GOLD_WORKER"] = "1"
    python = measure.peer_python("torch")
    os.execv(python, [python, *sys.argv])

import numpy as np
import torch
import torch_geometric
from torch_geometric import nn

FOLDER = measure.REPO / "tests" / "layers" / "gold"
CHANNELS = 6
ATOM_VALUES = (5, 3, 2)  # of molecules here; OGB's nine tables would make large files

GRAPHS = {
    "odd": dict(nodes=9, edges=[(0, 1), (1, 0), (2, 2), (3, 1), (4, 1), (5, 1), (6, 1), (1, 3), (1, 3), (0, 1), (5, 5), (2, 6),
                                (6, 4), (4, 6), (0, 6)]),
    "single": dict(nodes=1, edges=[]),
    "loop": dict(nodes=1, edges=[(0, 0)]),
    "bare": dict(nodes=3, edges=[]),
    "batch": dict(nodes=13, edges=[(0, 1), (1, 0), (1, 2), (2, 1), (4, 5), (5, 6), (6, 4), (7, 4), (4, 7), (5, 5)],
                  sizes=[3, 1, 4, 5, 0]),
}


def save(path, tensors, metadata):
    """The safetensors format, written here so that the environment needs no package for it: f32 and i64."""
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name, tensor in sorted(tensors.items(), key=lambda entry: (-4 if entry[1].is_floating_point() else -8, entry[0])):
        array = np.asarray(tensor.detach().numpy(), order="C")
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        kind = {"float32": "F32", "int64": "I64"}[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        blobs.append(array.tobytes())
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))


class Case:
    """A layer and how it is called. `make` builds it; `call(layer, t)` runs it on the dict of a graph's tensors and returns a
    tensor or a dict of tensors, of which floating ones get a gradient; `needs` names the inputs: edge_weight, edge_attr (D,)."""

    def __init__(self, make, call, needs=(), graphs=tuple(GRAPHS), edge_dim=3, channels=CHANNELS):
        self.make, self.call, self.needs, self.graphs = make, call, needs, graphs
        self.edge_dim, self.channels = edge_dim, channels


def inputs(graph, case, generator):
    def uniform(*shape, low=-1.0):
        return (torch.rand(shape, generator=generator) * (1 - low) + low).double().requires_grad_()

    edges = graph["edges"]
    sizes = graph.get("sizes", [graph["nodes"]])
    t = {"x": uniform(graph["nodes"], case.channels),
         "edge_index": torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t().contiguous()}
    if "edge_weight" in case.needs:
        t["edge_weight"] = uniform(len(edges), low=0.25)
    if "edge_attr" in case.needs:
        t["edge_attr"] = uniform(len(edges), case.edge_dim)
    if "edge_type" in case.needs:
        t["edge_type"] = torch.randint(0, 3, (len(edges),), generator=generator)
    if "atoms" in case.needs:
        t["atoms"] = torch.stack([torch.randint(0, n, (graph["nodes"],), generator=generator) for n in ATOM_VALUES], 1)
        t["bonds"] = torch.stack([torch.randint(0, n, (len(edges),), generator=generator) for n in (5, 6, 2)], 1)
    if "batch" in case.needs:
        t["batch"] = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
        t["sizes"] = torch.tensor(sizes)
    return t


def gold(name, case):
    torch.manual_seed(0)
    layer = case.make().double().train()
    with torch.no_grad():  # initial zeros would hide mistakes
        for p in layer.parameters():
            p.copy_((torch.rand(p.shape) * 2 - 1).double())
    before = {k: v.clone() for k, v in layer.state_dict().items()}
    tensors = {f"state/{k}": v for k, v in before.items()}
    for graph in case.graphs:
        layer.load_state_dict(before)
        layer.zero_grad()
        generator = torch.Generator().manual_seed(1)
        t = inputs(GRAPHS[graph], case, generator)
        out = case.call(layer, t)
        parts = out if isinstance(out, dict) else {"": out}
        loss = 0
        for part, value in parts.items():
            tensors[f"{graph}/out{'.' + part if part else ''}"] = value.clone()
            if value.is_floating_point() and value.requires_grad:
                seed = (torch.rand(value.shape, generator=generator) * 2 - 1).double()
                tensors[f"{graph}/seed{'.' + part if part else ''}"] = seed
                loss = loss + (value * seed).sum()
        adam = torch.optim.Adam(layer.parameters(), lr=0.01, eps=1e-3) if list(layer.parameters()) else None
        if isinstance(loss, torch.Tensor):
            loss.backward()
        for k, v in t.items():
            tensors[f"{graph}/{k}"] = v
            if v.is_floating_point():
                tensors[f"{graph}/grad/{k}"] = v.grad if v.grad is not None else torch.zeros_like(v)
        if adam:
            for k, p in layer.named_parameters(remove_duplicate=False):
                if p.grad is None:  # PyTorch's Adam passes over it, ours sees zeros: the same step
                    p.grad = torch.zeros_like(p)
                tensors[f"{graph}/grad.state/{k}"] = p.grad.clone()
            adam.step()
            for k, p in layer.state_dict().items():
                tensors[f"{graph}/adam/{k}"] = p.clone()
    return tensors


def plain(layer, t):
    return layer(t["x"], t["edge_index"])


def weighted(layer, t):
    return layer(t["x"], t["edge_index"], t["edge_weight"])


def edge_attributed(layer, t):
    return layer(t["x"], t["edge_index"], edge_attr=t["edge_attr"])


def by_graph(layer, t):
    return layer(t["x"], t["batch"], len(t["sizes"]))


def pooled(layer, t):
    x, edge_index, _, batch, perm, score = layer(t["x"], t["edge_index"], batch=t["batch"])
    return {"x": x, "edge_index": edge_index, "batch": batch, "perm": perm}


def mlp(batch_norm):
    c = CHANNELS
    layers = [torch.nn.Linear(c, 5), torch.nn.ReLU(), torch.nn.Linear(5, 4)]
    if batch_norm:
        layers = [torch.nn.Linear(c, 5), torch.nn.ReLU(), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 4), torch.nn.ReLU(),
                  torch.nn.BatchNorm1d(4)]
    return torch.nn.Sequential(*layers)


class Jumping(torch.nn.Module):
    """JumpingKnowledge over x, x^2 and their sum, so that the inputs stay small."""

    def __init__(self, mode):
        super().__init__()
        self.jk = nn.JumpingKnowledge(mode, CHANNELS, 3)

    def forward(self, x):
        return self.jk([x, x * x, x + x * x])


class Citation(torch.nn.Module):
    """PyG's examples/gat.py, its two layers in a list."""

    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList([nn.GATConv(CHANNELS, 3, heads=4), nn.GATConv(12, 2, heads=2, concat=False)])

    def forward(self, x, edge_index):
        return self.convs[1](torch.nn.functional.elu(self.convs[0](x, edge_index)), edge_index)


class SgcNet(torch.nn.Module):
    """PyG's benchmark/citation/sgc.py, without its log-softmax."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.SGConv(CHANNELS, 3, K=2)

    def forward(self, x, edge_index):
        return self.conv1(x, edge_index)


class AppnpNet(torch.nn.Module):
    """PyG's benchmark/citation/appnp.py, without dropout and its log-softmax."""

    def __init__(self):
        super().__init__()
        self.lin1 = torch.nn.Linear(CHANNELS, 5)
        self.lin2 = torch.nn.Linear(5, 3)
        self.prop1 = nn.APPNP(K=4, alpha=0.2)

    def forward(self, x, edge_index):
        return self.prop1(self.lin2(torch.relu(self.lin1(x))), edge_index)


class AlikeConv(nn.MessagePassing):
    """A user's own layer: layers/conv/message_passing.h shows it."""

    def __init__(self):
        super().__init__(aggr="mean")
        self.lin = torch.nn.Linear(CHANNELS, 4)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return x_j * torch.exp(-((x_i - x_j) ** 2).sum(1, keepdim=True))

    def update(self, received, x):
        return self.lin(received + x)


class ResidualNet(torch.nn.Module):
    """Models of Platonov et al., ICLR 2023 (github.com/yandex-research/heterophilous-graphs), without dropout."""

    class Block(torch.nn.Module):
        def __init__(self, width, hidden):
            super().__init__()
            self.linear_1 = torch.nn.Linear(width, hidden)
            self.linear_2 = torch.nn.Linear(hidden, hidden)

        def forward(self, x):
            return self.linear_2(torch.nn.functional.gelu(self.linear_1(x)))

    def __init__(self, sage, hidden=4):
        super().__init__()
        self.sage = sage
        self.input_linear = torch.nn.Linear(CHANNELS, hidden)
        self.residual_modules = torch.nn.ModuleList()
        for _ in range(2):
            layer, inner = torch.nn.Module(), torch.nn.Module()
            layer.normalization = torch.nn.LayerNorm(hidden)
            inner.feed_forward_module = self.Block(2 * hidden if sage else hidden, hidden)
            layer.module = inner
            self.residual_modules.append(layer)
        self.output_normalization = torch.nn.LayerNorm(hidden)
        self.output_linear = torch.nn.Linear(hidden, 2)

    def forward(self, x, edge_index):
        x = torch.nn.functional.gelu(self.input_linear(x))
        for layer in self.residual_modules:
            h = layer.normalization(x)
            if self.sage:
                means = nn.SimpleConv(aggr="mean")(h, edge_index)
                h = torch.cat([h, means], 1)
            else:
                index, weight = nn.conv.gcn_conv.gcn_norm(edge_index, None, len(x), dtype=x.dtype)
                h = nn.SimpleConv(aggr="sum")(h, index, weight)
            x = x + layer.module.feed_forward_module(h)
        return self.output_linear(self.output_normalization(x))


class Gcn2Net(torch.nn.Module):
    """PyG's examples/gcn2_cora.py, without dropout and its log-softmax, normalising by itself."""

    def __init__(self, **arguments):
        super().__init__()
        self.lins = torch.nn.ModuleList([torch.nn.Linear(CHANNELS, 5), torch.nn.Linear(5, 2)])
        self.convs = torch.nn.ModuleList([nn.GCN2Conv(5, 0.1, 0.5, layer + 1, **arguments) for layer in range(3)])

    def forward(self, x, edge_index):
        x = x_0 = self.lins[0](x).relu()
        for conv in self.convs:
            x = conv(x, x_0, edge_index).relu()
        return self.lins[1](x)


class DeeperGcnNet(torch.nn.Module):
    """PyG's examples/ogbn_proteins_deepgcn.py, without dropout; with a readout as in OGB's models of molecules."""

    def __init__(self, encoders=True, norm="layer", readout=None):
        super().__init__()
        hidden = 4 if encoders else CHANNELS
        if encoders:
            self.node_encoder = torch.nn.Linear(CHANNELS, hidden)
            self.edge_encoder = torch.nn.Linear(3, hidden)
        self.layers, self.readout = torch.nn.ModuleList(), readout
        for _ in range(3):
            conv = nn.GENConv(hidden, hidden, aggr="softmax", t=1.0, learn_t=True, num_layers=2, norm=norm)
            own = torch.nn.LayerNorm(hidden) if norm == "layer" else nn.BatchNorm(hidden)
            self.layers.append(nn.DeepGCNLayer(conv, own, torch.nn.ReLU(), block="res+"))
        self.lin = torch.nn.Linear(hidden, 2)

    def forward(self, x, edge_index, edge_attr=None, batch=None, size=None):
        if hasattr(self, "node_encoder"):
            x, edge_attr = self.node_encoder(x), self.edge_encoder(edge_attr)
        x = self.layers[0].conv(x, edge_index, edge_attr)
        for layer in self.layers[1:]:
            x = layer(x, edge_index, edge_attr)
        x = self.layers[0].act(self.layers[0].norm(x))
        return self.lin(x if self.readout is None else self.readout(x, batch, size))


def message_cases():
    """Convolutions whose messages are more than a neighbour's row; GEN and PNA of 4 channels, and their options on two
    graphs, to keep the files small."""
    c, few = CHANNELS, ("odd", "single")
    every = {}
    def add(name, make, call=plain, **arguments):
        if call is edge_attributed:
            arguments.setdefault("needs", ("edge_attr",))
        every[name] = Case(make, call, **arguments)
    add("message_passing", AlikeConv)
    add("gine_conv", lambda: nn.GINEConv(mlp(False)), edge_attributed, edge_dim=c)
    add("gine_conv.edge_dim", lambda: nn.GINEConv(mlp(False), eps=0.3, train_eps=True, edge_dim=3), edge_attributed)
    for aggr in ("max", "min", "mean", "sum"):
        add(f"edge_conv.{aggr}", lambda a=aggr: nn.EdgeConv(
            torch.nn.Sequential(torch.nn.Linear(2 * c, 5), torch.nn.ReLU(), torch.nn.Linear(5, 4)), aggr=a),
            graphs=tuple(GRAPHS) if aggr == "max" else few)
    def initial(layer, t):
        return layer(t["x"], t["x"] * t["x"], t["edge_index"], t.get("edge_weight"))
    add("gcn2_conv", lambda: nn.GCN2Conv(c, 0.1, 0.5, 2), initial)
    add("gcn2_conv.unshared", lambda: nn.GCN2Conv(c, 0.2, 0.5, 3, shared_weights=False), initial, needs=("edge_weight",))
    add("gcn2_conv.bare", lambda: nn.GCN2Conv(c, 0.3, normalize=False), initial, needs=("edge_weight",))
    for block in ("res+", "res", "dense", "plain"):
        add(f"deep_gcn_layer.{block.replace('+', '_plus')}", lambda b=block: nn.DeepGCNLayer(
            nn.GCNConv(c, c), torch.nn.LayerNorm(c), torch.nn.ELU(), block=b), graphs=few)
    def gen(option, edges=False, out=4, graphs=few, **arguments):
        add(f"gen_conv.{option}", lambda: nn.GENConv(4, out, **arguments), edge_attributed if edges else plain,
            graphs=graphs, edge_dim=arguments.get("edge_dim", out), channels=4)
    gen("softmax", graphs=("odd", "bare", "batch"))
    gen("softmax_t", out=3, norm="layer", t=0.5, learn_t=True, bias=True)
    gen("softmax_sg", norm="layer", aggr="softmax_sg", t=2.0)
    gen("edges", edges=True, graphs=tuple(GRAPHS), norm="layer", learn_t=True)
    gen("edge_dim", edges=True, out=3, norm="layer", edge_dim=3, t=0.7)
    gen("edges_sg", edges=True, norm="layer", aggr="softmax_sg")
    gen("message_norm", edges=True, norm="layer", msg_norm=True, learn_msg_scale=True)
    gen("message_norm_wider", out=5, norm="instance", msg_norm=True)
    gen("power", norm="layer", aggr="powermean", p=2.0)
    gen("power_p", edges=True, norm="layer", aggr="powermean", p=1.5, learn_p=True)
    gen("power_one", norm=None, aggr="powermean", num_layers=1)
    gen("mean", norm="instance", aggr="mean", num_layers=3, expansion=1)
    gen("sum", edges=True, norm=None, aggr="sum", num_layers=3, bias=True)
    gen("max", norm="layer", aggr="max")
    gen("min", edges=True, norm="layer", aggr="min")
    degrees = torch.tensor([2, 3, 4, 1, 0, 1])
    def pna(option, aggregators, scalers, edges=False, graphs=few, **arguments):
        add(f"pna_conv.{option}", lambda: nn.PNAConv(4, 2, aggregators.split(), scalers.split(), degrees, **arguments),
            edge_attributed if edges else plain, graphs=graphs, channels=4)
    usual, scalings = "mean min max std", "identity amplification attenuation"
    pna("plain", usual, scalings, graphs=tuple(GRAPHS))
    pna("every", "sum mean min max var std", scalings + " linear inverse_linear", train_norm=True)
    pna("one", "max", "linear")
    pna("edges", "sum mean min max var std", scalings, edges=True, edge_dim=3)
    pna("towers", usual, "identity attenuation", towers=2)
    pna("divided", usual, "inverse_linear amplification", towers=2, divide_input=True, post_layers=2, act="elu")
    pna("deep", usual, scalings, pre_layers=2, post_layers=3)
    pna("deep_edges", usual, "identity linear", edges=True, edge_dim=3, towers=2, divide_input=True, pre_layers=3)
    return every


def model_cases():
    """Models, all without dropout, and on fewer graphs than their layers."""
    c = CHANNELS
    every = {}
    def add(name, make, call=plain, graphs=("odd", "single"), **arguments):
        every[name] = Case(make, call, graphs=graphs, **arguments)
    add("sgc_model", SgcNet)
    add("appnp_model", AppnpNet)
    add("gcn_model", lambda: nn.models.GCN(c, 5, 3, 2))
    add("gcn_model.weighted", lambda: nn.models.GCN(c, 5, 2, 2, norm="graph_norm"),
        lambda l, t: l(t["x"], t["edge_index"], edge_weight=t["edge_weight"], batch=t["batch"], batch_size=len(t["sizes"])),
        needs=("edge_weight", "batch"), graphs=("odd", "batch"))
    add("graph_sage_model", lambda: nn.models.GraphSAGE(c, 5, 3, 2))
    add("graph_sage_model.one_layer", lambda: nn.models.GraphSAGE(c, 5, 1, 2, aggr="max"))
    add("graph_sage_model.batch_norm", lambda: nn.models.GraphSAGE(c, 5, 3, 2, norm="batch_norm", jk="last", act="elu"),
        graphs=("odd", "bare"))
    add("graph_sage_model.layer_norm", lambda: nn.models.GraphSAGE(c, 5, 2, 2, norm="layer_norm", act_first=True, jk="cat"),
        graphs=("odd", "bare"))
    add("graph_sage_model.max", lambda: nn.models.GraphSAGE(c, 4, 3, 2, act="tanh", jk="max"))
    perceptron = dict(call=lambda l, t: l(t["x"]), graphs=("odd",))
    add("mlp", lambda: nn.MLP([c, 5, 4, 3]), **perceptron)
    add("mlp.act_first", lambda: nn.MLP([c, 5, 3], act="tanh", act_first=True, bias=False), **perceptron)
    add("mlp.not_plain", lambda: nn.MLP([c, 4], act="elu", norm=None, plain_last=False), **perceptron)
    add("mlp.graph_norm", lambda: nn.MLP([c, 5, 4], norm="graph_norm"), by_graph, needs=("batch",), graphs=("batch",))
    add("gin_model", lambda: nn.models.GIN(c, 5, 3, 2, train_eps=True))
    add("gin_model.wide", lambda: nn.models.GIN(c, 8, 1, 8, eps=0.5))
    add("gin_model.batch_norm", lambda: nn.models.GIN(c, 5, 2, 2, norm="batch_norm", jk="cat"), graphs=("odd", "batch"))
    add("gcn2_model", Gcn2Net)
    add("gcn2_model.unshared", lambda: Gcn2Net(shared_weights=False))
    add("deeper_gcn_model", DeeperGcnNet, edge_attributed, needs=("edge_attr",))
    add("deeper_gcn_model.no_edges", lambda: DeeperGcnNet(encoders=False), graphs=("odd",))
    for name, norm in (("mean", "layer"), ("max", "batch")):
        add(f"deeper_gcn_model.{name}", lambda n=name, m=norm: DeeperGcnNet(norm=m, readout=getattr(nn, f"global_{n}_pool")),
            lambda l, t: l(t["x"], t["edge_index"], t["edge_attr"], t["batch"], len(t["sizes"])),
            needs=("edge_attr", "batch"), graphs=("batch",))
    for kind in ("gcn", "sage"):
        add(f"residual_gnn.{kind}", lambda kind=kind: ResidualNet(kind == "sage"), plain, graphs=("odd", "single"))
    add("graph_sage_model.lstm", lambda: nn.models.GraphSAGE(c, 4, 2, 2, jk="lstm"), graphs=("odd",))


class GraphClassifier(torch.nn.Module):
    """The nets of PyG's benchmark/kernel: gcn.py, gin.py and graph_sage.py, sag_pool.py and top_k.py, without dropout."""

    def __init__(self, conv, layers, pool=None, jump=None, read=nn.global_mean_pool, relu=True):
        super().__init__()
        self.conv1 = conv(CHANNELS, 4)
        self.convs = torch.nn.ModuleList([conv(4, 4) for _ in range(layers - 1)])
        self.pools = torch.nn.ModuleList([pool(4) for _ in range(layers // 2)] if pool else [])
        if jump:
            self.jump = nn.JumpingKnowledge(jump, 4, layers) if jump == "lstm" else nn.JumpingKnowledge(jump)
        self.lin1 = torch.nn.Linear(layers * 4 if pool or jump == "cat" else 4, 4)
        self.lin2 = torch.nn.Linear(4, 3)
        self.jumps, self.read, self.act = jump, read, torch.nn.functional.relu if relu else lambda x: x

    def forward(self, x, edge_index, batch, graphs):
        x = self.act(self.conv1(x, edge_index))
        nodes, rows = [x], [self.read(x, batch, graphs)]
        for i, conv in enumerate(self.convs):
            x = self.act(conv(x, edge_index))
            nodes.append(x)
            rows.append(self.read(x, batch, graphs))
            if len(self.pools) and i % 2 == 0 and i < len(self.convs) - 1:
                x, edge_index, _, batch, _, _ = self.pools[i // 2](x, edge_index, batch=batch)
        if len(self.pools):
            x = torch.cat(rows, 1)
        else:
            x = self.read(self.jump(nodes) if self.jumps else x, batch, graphs)
        return self.lin2(self.lin1(x).relu())


class SagPaper(torch.nn.Module):
    """The SAGPool paper's hierarchical and global nets (inyeoplee77/SAGPool networks.py), without dropout."""

    def __init__(self, hierarchical):
        super().__init__()
        h, self.hierarchical = 4, hierarchical
        for i in range(3):
            setattr(self, f"conv{i + 1}", nn.GCNConv(h if i else CHANNELS, h))
            if hierarchical:
                setattr(self, f"pool{i + 1}", nn.SAGPooling(h, 0.5, GNN=nn.GCNConv))
        if not hierarchical:
            self.pool = nn.SAGPooling(3 * h, 0.5, GNN=nn.GCNConv)
        self.lin1 = torch.nn.Linear((2 if hierarchical else 6) * h, h)
        self.lin2 = torch.nn.Linear(h, h // 2)
        self.lin3 = torch.nn.Linear(h // 2, 3)

    def forward(self, x, edge_index, batch, graphs):
        def read(x, batch):
            return torch.cat([nn.global_max_pool(x, batch, graphs), nn.global_mean_pool(x, batch, graphs)], 1)

        rows, layers = 0, []
        for i in range(3):
            x = getattr(self, f"conv{i + 1}")(x, edge_index).relu()
            layers.append(x)
            if self.hierarchical:
                x, edge_index, _, batch, _, _ = getattr(self, f"pool{i + 1}")(x, edge_index, batch=batch)
                rows = rows + read(x, batch)
        if not self.hierarchical:
            x, edge_index, _, batch, _, _ = self.pool(torch.cat(layers, 1), edge_index, batch=batch)
            rows = read(x, batch)
        return self.lin3(self.lin2(self.lin1(rows).relu()).relu())


class Tables(torch.nn.Module):
    """OGB's AtomEncoder and BondEncoder."""

    def __init__(self, name, counts, channels):
        super().__init__()
        self.name = name
        setattr(self, name, torch.nn.ModuleList([torch.nn.Embedding(n, channels) for n in counts]))

    def forward(self, ids):
        return sum(table(ids[:, i]) for i, table in enumerate(getattr(self, self.name)))


class MoleculeConv(torch.nn.Module):
    """OGB's GINConv and GCNConv for molecules."""

    def __init__(self, kind, c):
        super().__init__()
        self.kind = kind
        if kind == "gin":
            self.mlp = torch.nn.Sequential(torch.nn.Linear(c, 2 * c), torch.nn.BatchNorm1d(2 * c), torch.nn.ReLU(),
                                           torch.nn.Linear(2 * c, c))
            self.eps = torch.nn.Parameter(torch.zeros(1))
        else:
            self.linear = torch.nn.Linear(c, c)
            self.root_emb = torch.nn.Embedding(1, c)
        self.bond_encoder = Tables("bond_embedding_list", (5, 6, 2), c)

    def forward(self, x, edge_index, bonds):
        row, col = edge_index
        x = x if self.kind == "gin" else self.linear(x)
        message = (x[row] + self.bond_encoder(bonds)).relu() if len(bonds) else x[row]
        if self.kind == "gin":
            return self.mlp((1 + self.eps) * x + torch.zeros_like(x).index_add(0, col, message))
        degree = torch.bincount(row, minlength=len(x)).to(x) + 1
        message = message * (degree[row] * degree[col]).pow(-0.5).view(-1, 1)
        return torch.zeros_like(x).index_add(0, col, message) + (x + self.root_emb.weight).relu() / degree.view(-1, 1)


class Molecules(torch.nn.Module):
    """OGB's examples/graphproppred/mol/gnn.py with conv.py, without dropout."""

    def __init__(self, kind, virtual, residual=False, jump="last", layers=3, c=4):
        super().__init__()
        self.layers, self.virtual, self.residual, self.jump = layers, virtual, residual, jump
        at = self.gnn_node = torch.nn.Module()
        at.atom_encoder = Tables("atom_embedding_list", ATOM_VALUES, c)
        if virtual:
            at.virtualnode_embedding = torch.nn.Embedding(1, c)
        at.convs = torch.nn.ModuleList([MoleculeConv(kind, c) for _ in range(layers)])
        at.batch_norms = torch.nn.ModuleList([torch.nn.BatchNorm1d(c) for _ in range(layers)])
        if virtual:
            at.mlp_virtualnode_list = torch.nn.ModuleList([torch.nn.Sequential(
                torch.nn.Linear(c, 2 * c), torch.nn.BatchNorm1d(2 * c), torch.nn.ReLU(), torch.nn.Linear(2 * c, c),
                torch.nn.BatchNorm1d(c), torch.nn.ReLU()) for _ in range(layers - 1)])
        self.graph_pred_linear = torch.nn.Linear(c, 2)

    def forward(self, atoms, edge_index, bonds, batch, graphs):
        at, layers = self.gnn_node, [self.gnn_node.atom_encoder(atoms)]
        if self.virtual:
            row = at.virtualnode_embedding(torch.zeros(graphs, dtype=torch.int64))
        for i in range(self.layers):
            if self.virtual:
                layers[i] = layers[i] + row[batch]
            h = at.batch_norms[i](at.convs[i](layers[i], edge_index, bonds))
            h = h if i == self.layers - 1 else h.relu()
            h = h + layers[i] if self.residual else h
            layers.append(h)
            if self.virtual and i < self.layers - 1:
                changed = at.mlp_virtualnode_list[i](nn.global_add_pool(layers[i], batch, graphs) + row)
                row = row + changed if self.residual else changed
        h = sum(layers) if self.jump == "sum" else layers[-1]
        return self.graph_pred_linear(nn.global_mean_pool(h, batch, graphs))


class Asap(nn.ASAPooling):
    """ASAPooling with dense products in place of its sparse ones, through which PyTorch cannot differentiate; its results
    are held to PyG's own. Edges in the order of source, then destination (PyG's depend on the sparse library)."""

    def forward(self, x, edge_index, edge_weight, batch):
        from torch_geometric.utils import add_remaining_self_loops, scatter, softmax
        n, given, weighted = len(x), (x, edge_index, edge_weight, batch), edge_weight is not None
        edge_index, edge_weight = add_remaining_self_loops(edge_index, edge_weight, 1.0, n)
        row, col = edge_index
        pool = x if self.gnn_intra_cluster is None else self.gnn_intra_cluster(x=x, edge_index=edge_index,
                                                                               edge_weight=edge_weight)
        middle = self.lin(scatter(pool[row], col, 0, reduce="max"))[col]
        score = torch.nn.functional.leaky_relu(self.att(torch.cat([middle, pool[row]], -1)).view(-1), self.negative_slope)
        score = softmax(score, col, num_nodes=n)
        x = scatter(x[row] * score.view(-1, 1), col, 0, reduce="sum")
        fitness = self.gnn_score(x, edge_index).sigmoid().view(-1)
        perm = self.select(fitness, batch).node_index
        x, batch = x[perm] * fitness[perm].view(-1, 1), batch[perm]
        ones = torch.ones_like(score) if edge_weight is None else edge_weight
        a = torch.zeros(n, n).double().index_put((row, col), ones, accumulate=True)
        s = torch.zeros(n, n).double().index_put((row, col), score, accumulate=True)[:, perm]
        coarse = s.t() @ a @ s
        kept = coarse.detach() != 0
        kept.fill_diagonal_(self.add_self_loops)
        if self.add_self_loops:
            coarse = torch.where((coarse.detach() == 0) & torch.eye(len(perm), dtype=torch.bool), 1.0, coarse)
        out = {"x": x, "edge_index": kept.nonzero().t(), "batch": batch, "perm": perm}
        if weighted:
            out["edge_weight"] = coarse[kept]
        if self.add_self_loops:  # PyG puts them last
            order = torch.argsort((out["edge_index"][0] == out["edge_index"][1]).int(), stable=True)
            out["edge_index"] = out["edge_index"][:, order]
            out["edge_weight"] = out["edge_weight"][order]
        theirs = super().forward(given[0], given[1], given[2] if weighted else torch.ones(given[1].size(1)).double(), given[3])
        dense = torch.zeros_like(coarse).index_put(tuple(theirs[1]), theirs[2])
        assert torch.equal(theirs[4], perm) and torch.equal(theirs[3], batch) and torch.allclose(theirs[0], x)
        assert torch.equal(dense != 0, kept) and (not weighted or torch.allclose(dense[kept], coarse[kept]))
        return out


class Dense(torch.nn.Module):
    """Dense convolutions and DiffPool on a padded batch."""

    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, t):
        from torch_geometric.utils import to_dense_adj, to_dense_batch
        graphs = len(t["sizes"])
        x, mask = to_dense_batch(t["x"], t["batch"], batch_size=graphs)
        adj = to_dense_adj(t["edge_index"], t["batch"], t["edge_weight"], batch_size=graphs, max_num_nodes=x.size(1))
        if hasattr(self, "conv"):
            return self.conv(x, adj, mask)
        x, adj, link, entropy = nn.dense_diff_pool(self.embed(x, adj, mask), adj, self.pool(x, adj, mask), mask)
        return {"x": x, "adj": adj, "link": link, "entropy": entropy}


def coarse_pools():
    c, every, graphs = CHANNELS, {}, ("odd", "single", "bare", "batch")
    every["le_conv"] = Case(lambda: nn.LEConv(c, 4), plain)
    every["le_conv.weighted"] = Case(lambda: nn.LEConv(c, 4, bias=False), weighted, needs=("edge_weight",))
    for option, arguments in {"plain": {}, "gnn": dict(GNN=nn.GraphConv, ratio=0.7), "loops": dict(
            ratio=3, add_self_loops=True), "gcn": dict(GNN=nn.GCNConv, ratio=0.6)}.items():
        needs = ("edge_weight", "batch") if option != "plain" else ("batch",)
        every[f"asap_pooling.{option}"] = Case(lambda a=arguments: Asap(c, **a), lambda l, t: l(
            t["x"], t["edge_index"], t.get("edge_weight"), t["batch"]), needs=needs, graphs=graphs)
    every["set2set"] = Case(lambda: nn.Set2Set(c, 3), lambda l, t: l(t["x"], t["batch"], dim_size=len(t["sizes"])),
                            needs=("batch",), graphs=("odd", "single", "batch"))
    for k in (2, 7):
        every[f"sort_pool.{k}"] = Case(lambda k=k: nn.SortAggregation(k), lambda l, t: l(
            t["x"], t["batch"], dim_size=len(t["sizes"])), needs=("batch",), graphs=("odd", "single", "batch"))
    for name, layers in {"dense_conv.gcn": lambda: dict(conv=nn.DenseGCNConv(c, 4)), "dense_conv.gcn_improved": lambda: dict(
            conv=nn.DenseGCNConv(c, 4, improved=True, bias=False)), "dense_conv.sage": lambda: dict(
            conv=nn.DenseSAGEConv(c, 4)), "dense_conv.sage_normalize": lambda: dict(conv=nn.DenseSAGEConv(
                c, 4, normalize=True)), "dense_diff_pool": lambda: dict(
            embed=nn.DenseGCNConv(c, 4), pool=nn.DenseSAGEConv(c, 3))}.items():
        every[name] = Case(lambda m=layers: Dense(**m()), lambda l, t: l(t), needs=("edge_weight", "batch"),
                           graphs=("odd", "single", "batch"))
    return every


def graph_nets():
    every, graphs = {}, ("odd", "bare", "batch")

    def add(name, make):
        every[name] = Case(make, lambda l, t: l(t["x"], t["edge_index"], t["batch"], len(t["sizes"])), needs=("batch",),
                           graphs=graphs)

    def gin(inner, train_eps=False):
        def conv(a, b):
            norms = [torch.nn.BatchNorm1d(b)] if inner else []
            return nn.GINConv(torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU(), *norms, torch.nn.Linear(b, b),
                                                  torch.nn.ReLU(), torch.nn.BatchNorm1d(b)), train_eps=train_eps)
        return conv

    def mean_conv(a, b):
        return nn.GraphConv(a, b, aggr="mean")

    add("graph_classifier.gcn", lambda: GraphClassifier(nn.GCNConv, 3))
    add("graph_classifier.gcn_cat", lambda: GraphClassifier(nn.GCNConv, 2, jump="cat"))
    add("graph_classifier.sage", lambda: GraphClassifier(nn.SAGEConv, 2, read=nn.global_add_pool))
    add("graph_classifier.sage_max", lambda: GraphClassifier(nn.SAGEConv, 2, jump="max"))
    add("graph_classifier.gin", lambda: GraphClassifier(gin(True), 2, relu=False))
    add("graph_classifier.gin_bare", lambda: GraphClassifier(gin(False, True), 1, relu=False))
    add("graph_classifier.gin_lstm", lambda: GraphClassifier(gin(False), 2, relu=False, jump="lstm"))
    add("pooling_net.sag", lambda: GraphClassifier(mean_conv, 4, lambda h: nn.SAGPooling(h, 0.8)))
    add("pooling_net.sag_min_score", lambda: GraphClassifier(mean_conv, 3, lambda h: nn.SAGPooling(h, min_score=0.2)))
    add("pooling_net.top_k", lambda: GraphClassifier(mean_conv, 5, lambda h: nn.TopKPooling(h, 0.6)))
    add("sag_pool_hierarchical_net", lambda: SagPaper(True))
    add("sag_pool_global_net", lambda: SagPaper(False))
    for name, arguments in {"gin": ("gin", False, False, "last", 2), "gin_virtual": ("gin", True),
                            "gcn": ("gcn", False, False, "last", 2), "gcn_virtual": ("gcn", True, True, "sum")}.items():
        every[f"molecule_net.{name}"] = Case(
            lambda a=arguments: Molecules(*a),
            lambda l, t: l(t["atoms"], t["edge_index"], t["bonds"], t["batch"], len(t["sizes"])), needs=("atoms", "batch"),
            graphs=("batch",) if arguments[1] else ("odd", "batch"))
    return every


def cases():
    c = CHANNELS
    every = {}
    for aggr in ("mean", "sum", "max", "min"):
        every[f"sage_conv.{aggr}"] = Case(lambda a=aggr: nn.SAGEConv(c, 4, aggr=a), plain)
        every[f"graph_conv.{aggr}"] = Case(
            lambda a=aggr: nn.GraphConv(c, 4, aggr="add" if a == "sum" else a), weighted, needs=("edge_weight",))
    every["sage_conv.wide"] = Case(lambda: nn.SAGEConv(c, 9, normalize=True, project=True), plain)
    every["sage_conv.no_root"] = Case(lambda: nn.SAGEConv(c, 4, root_weight=False, bias=False), plain)
    every["graph_conv.wide"] = Case(lambda: nn.GraphConv(c, 9, bias=False), plain)
    every["gcn_conv"] = Case(lambda: nn.GCNConv(c, 4), plain)
    every["gcn_conv.weighted"] = Case(lambda: nn.GCNConv(c, 9), weighted, needs=("edge_weight",))
    every["gcn_conv.bare"] = Case(lambda: nn.GCNConv(c, 4, normalize=False, bias=False), weighted, needs=("edge_weight",))
    every["sg_conv"] = Case(lambda: nn.SGConv(c, 4, K=3), plain)
    every["sg_conv.weighted"] = Case(lambda: nn.SGConv(c, 9, K=2), weighted, needs=("edge_weight",))
    every["appnp"] = Case(lambda: nn.APPNP(K=4, alpha=0.2), plain)
    every["appnp.weighted"] = Case(lambda: nn.APPNP(K=3, alpha=0.1), weighted, needs=("edge_weight",))
    every["gin_conv"] = Case(lambda: nn.GINConv(mlp(False)), plain)
    every["gin_conv.train_eps"] = Case(lambda: nn.GINConv(mlp(False), eps=0.3, train_eps=True), plain)
    every["gin_conv.batch_norm"] = Case(lambda: nn.GINConv(mlp(True)), plain, graphs=("odd", "bare", "batch"))
    for name, conv in (("gat_conv", nn.GATConv), ("gatv2_conv", nn.GATv2Conv), ("transformer_conv", nn.TransformerConv)):
        def add(option, edges=False, conv=conv, name=name, **arguments):
            every[f"{name}.{option}"] = Case(lambda: conv(c, 3, **arguments), edge_attributed if edges else plain,
                                             needs=("edge_attr",) if edges else (), edge_dim=4)
        add("plain")
        add("heads", heads=4)
        add("mean", heads=3, concat=False)
        add("edges", edges=True, heads=2, edge_dim=4)
        if name == "transformer_conv":
            add("beta", heads=2, beta=True)
            add("beta_mean", heads=2, beta=True, concat=False)
            add("no_root", heads=2, root_weight=False, beta=True, bias=False)
            continue
        add("no_loops", heads=2, add_self_loops=False, negative_slope=0.1)
        add("edges_filled", edges=True, heads=2, edge_dim=4, fill_value=0.5)
        add("edges_no_loops", edges=True, heads=2, edge_dim=4, add_self_loops=False)
        add("residual", heads=2, residual=True, bias=False)
        add("residual_mean", heads=2, residual=True, concat=False)
    every["gat_model"] = Case(Citation, plain)
    every["gatv2_conv.shared"] = Case(lambda: nn.GATv2Conv(c, 3, heads=2, share_weights=True), plain)
    for option, arguments in {"plain": {}, "bases": dict(num_bases=2), "blocks": dict(num_blocks=2), "no_root": dict(
            root_weight=False, bias=False), "sum": dict(aggr="add")}.items():
        every[f"rgcn_conv.{option}"] = Case(lambda a=arguments: nn.RGCNConv(c, 4, 3, **a),
                                            lambda l, t: l(t["x"], t["edge_index"], t["edge_type"]), needs=("edge_type",))
    for mode in ("cat", "max", "lstm"):
        every[f"jumping_knowledge.{mode}"] = Case(lambda m=mode: Jumping(m), lambda l, t: l(t["x"]), graphs=("odd",))
    every["batch_norm"] = Case(lambda: nn.BatchNorm(c), lambda l, t: l(t["x"]), graphs=("odd", "bare"))
    every["layer_norm.node"] = Case(lambda: nn.LayerNorm(c, mode="node"), lambda l, t: l(t["x"]), graphs=("odd", "single"))
    every["layer_norm.graph"] = Case(lambda: nn.LayerNorm(c), by_graph, needs=("batch",), graphs=("batch",))
    every["layer_norm.one_graph"] = Case(lambda: nn.LayerNorm(c), lambda l, t: l(t["x"]), graphs=("odd",))
    every["graph_norm"] = Case(lambda: nn.GraphNorm(c), by_graph, needs=("batch",), graphs=("odd", "batch"))
    every["instance_norm"] = Case(lambda: nn.InstanceNorm(c, affine=True), by_graph, needs=("batch",), graphs=("odd", "batch"))
    every["pair_norm"] = Case(lambda: nn.PairNorm(scale=1.5), by_graph, needs=("batch",), graphs=("odd", "batch"))
    every["pair_norm.individually"] = Case(lambda: nn.PairNorm(scale_individually=True), by_graph, needs=("batch",),
                                           graphs=("odd", "batch"))
    every["message_norm"] = Case(lambda: nn.MessageNorm(learn_scale=True), lambda l, t: l(t["x"], t["x"] * t["x"] + 0.1),
                                 graphs=("odd",))
    for name in ("sum", "mean", "max"):
        every[f"global_{name}_pool"] = Case(
            torch.nn.Identity, lambda l, t, n=name: getattr(nn, f"global_{'add' if n == 'sum' else n}_pool")(
                t["x"], t["batch"], len(t["sizes"])), needs=("batch",), graphs=("odd", "single", "batch"))
    every["attentional_aggregation"] = Case(
        lambda: nn.AttentionalAggregation(torch.nn.Linear(c, 1), torch.nn.Linear(c, 4)),
        lambda l, t: l(t["x"], t["batch"], dim_size=len(t["sizes"])), needs=("batch",), graphs=("odd", "single", "batch"))
    pool_graphs = ("odd", "single", "bare", "batch")
    every["top_k_pooling"] = Case(lambda: nn.TopKPooling(c, ratio=0.6), pooled, needs=("batch",), graphs=pool_graphs)
    every["top_k_pooling.count"] = Case(lambda: nn.TopKPooling(c, ratio=2, multiplier=1.5), pooled, needs=("batch",),
                                        graphs=pool_graphs)
    every["top_k_pooling.min_score"] = Case(lambda: nn.TopKPooling(c, min_score=0.2), pooled, needs=("batch",),
                                            graphs=pool_graphs)
    every["sag_pooling"] = Case(lambda: nn.SAGPooling(c, ratio=0.5), pooled, needs=("batch",), graphs=pool_graphs)
    every["sag_pooling.gcn"] = Case(lambda: nn.SAGPooling(c, ratio=0.8, GNN=nn.GCNConv, multiplier=2.0), pooled,
                                    needs=("batch",), graphs=pool_graphs)
    every["sag_pooling.min_score"] = Case(lambda: nn.SAGPooling(c, min_score=0.3), pooled, needs=("batch",),
                                          graphs=pool_graphs)
    every |= message_cases() | model_cases()


    every.update(graph_nets())
    every.update(coarse_pools())
    return every


def main():
    torch.set_num_threads(1)
    known = cases()
    names = [name for name in known if not sys.argv[1:] or any(name.startswith(p) for p in sys.argv[1:])]
    if not names:
        sys.exit(f"no case begins so; there are: {', '.join(known)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names:
        tensors = gold(name, known[name])
        path = FOLDER / f"{name}.safetensors"
        save(path, tensors, {"made_by": "bench/peers/gold.py", "case": name, "layer": str(known[name].make()),
                             "torch": torch.__version__, "torch_geometric": torch_geometric.__version__})
        print(f"{name}: {len(tensors)} tensors, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
