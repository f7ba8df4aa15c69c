"""Time of the dense ops of core: build/release/bin/op_rows_bench beside current PyTorch, row by row.

    bench/peers/setup torch && ./dev build
    python3 bench/peers/ops.py --json ops.json               # all rows; about an hour
    python3 bench/peers/ops.py --only conv2d --rounds 5      # rows whose name holds a text

A row is one op at one shape on the same number of threads, forward alone or with the backward pass to all its inputs
("fwd+bwd"). Ours and the peer take turns, `--rounds` times; a side repeats the row for `--seconds` and reports its median.
The peer is eager PyTorch as a user calls it, in one process that stays alive, with a malloc that keeps its pages; "fused"
Adam. Rows of "small" tensors time a call, Python's share included, as a user of each library pays it.

Inputs are the same on both sides (a hash of the index), and the means of |result| and of |gradients| must agree within
1e-4 (ResNet-18's gradients to 2e-3) before a row counts.
"""
import argparse
import json
import math
import subprocess
import sys

import measure

BENCH = measure.BIN / "op_rows_bench"
KEEP_PAGES = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000", "THP_MEM_ALLOC_ENABLE": "1"}


# ---- the peer's side: runs in the torch environment -------------------------------------------------------------------

def fill(shape, seed, scale=1.0):
    import torch
    i = torch.arange(math.prod(shape), dtype=torch.int64)
    hashed = ((i + seed * 7919) * 2654435761) & 0xFFFFFFFF
    return ((hashed.double() * 2.0**-31 - 1) * scale).float().view(shape)


def labels(count, classes):
    import torch
    return torch.arange(count, dtype=torch.int64) * 7 % classes


def rows():
    """name -> (input shapes, call, calls in one measurement); the names are op_rows_bench's."""
    import torch
    import torch.nn.functional as F
    table = {}

    def forward(name, shapes, call, repeats=1):
        table[name] = (shapes, call, repeats)

    def both(name, shapes, call, repeats=1):
        forward(name, shapes, call, repeats)
        forward(name + " fwd+bwd", shapes, call, repeats)

    for m, k, n in [(2708, 1433, 16), (10000, 64, 64), (100000, 128, 128), (233000, 602, 128)]:
        both(f"matmul {m}x{k}x{n}", [(m, k), (k, n)], torch.matmul)
    both("batched matmul 512x32x64x32", [(512, 32, 64), (512, 64, 32)], torch.bmm)
    both("linear relu 20000x256x256", [(20000, 256), (256, 256), (256,)], lambda x, w, b: F.linear(x, w, b).relu())

    both("softmax 100000x47", [(100000, 47)], lambda x: F.softmax(x, -1))
    both("softmax 10000x512", [(10000, 512)], lambda x: F.softmax(x, -1))
    both("softmax dim 0 512x1000", [(512, 1000)], lambda x: F.softmax(x, 0))
    both("log_softmax 100000x47", [(100000, 47)], lambda x: F.log_softmax(x, -1))
    both("log_softmax 2708x7", [(2708, 7)], lambda x: F.log_softmax(x, -1))
    classes = labels(100000, 47)
    both("cross_entropy 100000x47", [(100000, 47)], lambda x: F.cross_entropy(x, classes))

    wide = (20000, 256)
    both("relu(a*b+c) 20000x256", [wide, wide, wide], lambda a, b, c: (a * b + c).relu())
    both("add row 20000x256", [wide, (256,)], torch.add)
    both("gelu 20000x256", [wide], F.gelu)
    both("tanh 20000x256", [wide], torch.tanh)
    both("sigmoid 20000x256", [wide], torch.sigmoid)
    both("exp 20000x256", [wide], torch.exp)
    both("elu 20000x256", [wide], F.elu)
    both("leaky_relu 20000x256", [wide], lambda x: F.leaky_relu(x, 0.2))
    both("div 20000x256", [wide, wide], lambda a, b: a / (b + 2))
    both("layer_norm 20000x256", [wide, (256,), (256,)], lambda x, w, b: F.layer_norm(x, (256,), w, b))

    def batch(x, w, b):
        return F.batch_norm(x, None, None, w, b, training=True)
    both("batch_norm 20000x256", [wide, (256,), (256,)], batch)
    both("batch_norm 32x64x56x56", [(32, 64, 56, 56), (64,), (64,)], batch)

    forward("sort 1000000", [(1000000,)], lambda x: torch.sort(x).values)
    forward("sort 10000x100", [(10000, 100)], lambda x: torch.sort(x).values)
    forward("topk 10000x1000 k 10", [(10000, 1000)], lambda x: torch.topk(x, 10).values)
    forward("topk 1000000 k 1000", [(1000000,)], lambda x: torch.topk(x, 1000).values)
    forward("transpose 20000x256", [wide], lambda x: x.t().contiguous())
    forward("transpose 4096x4096", [(4096, 4096)], lambda x: x.t().contiguous())
    forward("permute 0213 64x100x8x64", [(64, 100, 8, 64)], lambda x: x.permute(0, 2, 1, 3).contiguous())
    both("concat dim 1 20000x(128+256)", [(20000, 128), wide], lambda a, b: torch.cat([a, b], 1))
    forward("cumsum 20000x256", [wide], lambda x: torch.cumsum(x, 1))
    both("sum 20000x256", [wide], torch.sum)
    both("sum dim 0 20000x256", [wide], lambda x: x.sum(0))
    both("sum dim 1 20000x256", [wide], lambda x: x.sum(1))
    both("sum dim 1 1000000x8", [(1000000, 8)], lambda x: x.sum(1))
    both("mean dim 1 200000x41", [(200000, 41)], lambda x: x.mean(1))
    both("max dim 1 20000x256", [wide], lambda x: x.max(1).values)
    both("max dim 1 1000000x8", [(1000000, 8)], lambda x: x.max(1).values)
    both("max dim 0 20000x256", [wide], lambda x: x.max(0).values)
    forward("argmax dim 1 200000x41", [(200000, 41)], lambda x: x.argmax(1))
    forward("norm dim 1 1000000x8", [(1000000, 8)], lambda x: torch.linalg.vector_norm(x, 2, 1))
    forward("var dim 1 20000x256", [wide], lambda x: x.var(1))

    cell = torch.nn.LSTM(64, 64, batch_first=True)

    def lstm(x, *weights):
        names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
        return torch.func.functional_call(cell, dict(zip(names, weights)), (x,))[0]
    both("lstm 1000x16x64 h 64", [(1000, 16, 64), (256, 64), (256, 64), (256,), (256,)], lstm)
    for name, x, w, stride, padding, groups in [
            ("conv2d 3x3 64 32x64x56x56", (32, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1),
            ("conv2d 3x3 512 32x512x7x7", (32, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1),
            ("conv2d 1x1 256 32x64x56x56", (32, 64, 56, 56), (256, 64, 1, 1), 1, 0, 1),
            ("conv2d 3x3 128 stride 2 32x64x56x56", (32, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1),
            ("conv2d 7x7 64 stride 2 32x3x224x224", (32, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1),
            ("conv2d 3x3 depthwise 32x116x28x28", (32, 116, 28, 28), (116, 1, 3, 3), 1, 1, 116),
            ("conv2d 3x3 64 1x64x56x56", (1, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1)]:
        both(name, [x, w], lambda a, b, s=stride, p=padding, g=groups: F.conv2d(a, b, stride=s, padding=p, groups=g))
    both("max_pool2d 3x3 stride 2 32x64x112x112", [(32, 64, 112, 112)], lambda x: F.max_pool2d(x, 3, 2, 1))
    both("avg_pool2d 3x3 stride 2 32x64x56x56", [(32, 64, 56, 56)], lambda x: F.avg_pool2d(x, 3, 2, 1))
    both("adaptive_avg_pool2d 32x512x7x7", [(32, 512, 7, 7)], lambda x: F.adaptive_avg_pool2d(x, 1))

    small = (10, 16)
    both("small add 10x16", [small, small], torch.add, 1000)
    both("small relu 10x16", [small], torch.relu, 1000)
    both("small matmul 10x16x16", [small, (16, 16)], torch.matmul, 1000)
    both("small sum 10x16", [small], torch.sum, 1000)
    both("small softmax 10x16", [small], lambda x: F.softmax(x, -1), 1000)
    return table


def op_work(name, shapes, call, repeats):
    """(call, checksums, calls in one measurement) of a row of `rows`."""
    inputs = [fill(s, i + 1, 0.125 if name.startswith("lstm") and i > 0 else 1.0) for i, s in enumerate(shapes)]
    if name.startswith("sum 2"):  # a sum that cancels would compare nothing but roundings
        inputs = [x + 1 for x in inputs]
    state = {}
    if not name.endswith("fwd+bwd"):
        def run():
            state["out"] = call(*inputs)
        return run, lambda: (state["out"].double().abs().mean().item(), 0.0), repeats
    for x in inputs:
        x.requires_grad_()
    seed = fill(call(*inputs).shape, 99)

    def run():
        for x in inputs:
            x.grad = None
        state["out"] = call(*inputs)
        state["out"].backward(seed)
    return run, lambda: (state["out"].double().abs().mean().item(), sum(x.grad.double().abs().mean().item() for x in inputs)), repeats


def adam_work(count, shape):
    import torch
    parameters = [fill(shape, i + 1).requires_grad_() for i in range(count)]
    for i, p in enumerate(parameters):
        p.grad = fill(shape, i + 500)
    optimiser = torch.optim.Adam(parameters, lr=1e-3, fused=True)
    first = []

    def run():
        optimiser.step()
        if not first:
            first.append(parameters[0].double().abs().mean().item())
    return run, lambda: (first[0], 0.0), 1


def resnet18_work(batch):
    import torch
    import torch.nn.functional as F
    parameters = []

    def weight(*shape):
        parameters.append(fill(shape, weight.seed, math.sqrt(6 / math.prod(shape[1:]))).requires_grad_())
        weight.seed += 1
        return parameters[-1]
    weight.seed = 1

    def unit(i, o, size):
        w, gain, shift = weight(o, i, size, size), torch.ones(o, requires_grad=True), torch.zeros(o, requires_grad=True)
        parameters.extend([gain, shift])

        def apply(x, stride, padding):
            return F.batch_norm(F.conv2d(x, w, stride=stride, padding=padding), None, None, gain, shift, training=True)
        return apply
    stem = unit(3, 64, 7)
    blocks = []
    for stage in range(4):
        for block in range(2):
            o = 64 << stage
            i = o // 2 if block == 0 and stage > 0 else o
            first, second = unit(i, o, 3), unit(o, o, 3)
            blocks.append((first, second, unit(i, o, 1) if i != o else None, 2 if stage > 0 and block == 0 else 1))
    linear = weight(1000, 512)
    images, classes = fill((batch, 3, 224, 224), 77), labels(batch, 1000)
    state = {}

    def run():
        for p in parameters:
            p.grad = None
        h = F.max_pool2d(stem(images, 2, 3).relu(), 3, 2, 1)
        for first, second, shortcut, stride in blocks:
            inner = second(first(h, stride, 1).relu(), 1, 1)
            h = (inner + (shortcut(h, stride, 0) if shortcut else h)).relu()
        state["loss"] = F.cross_entropy(F.adaptive_avg_pool2d(h, 1).flatten(1) @ linear.t(), classes)
        state["loss"].backward()
    return run, lambda: (state["loss"].item(), sum(p.grad.double().abs().mean().item() for p in parameters)), 1


def serve_torch():
    import torch
    special = {
        "adam 1 x 5000000": lambda: adam_work(1, (5000000,)),
        "adam 200 x 64x64": lambda: adam_work(200, (64, 64)),
        "adam 60 x 16": lambda: adam_work(60, (16,)),
        "resnet18 32x3x224x224 fwd+bwd": lambda: resnet18_work(32),
    }
    current = {}

    def handle(row=None, seconds=0.5, threads=None):
        if row is None:
            torch.set_num_threads(threads)
            current["rows"] = rows()
            return {"version": torch.__version__, "rows": list(current["rows"]) + list(special)}
        if current.get("name") != row:
            current["work"] = special[row]() if row in special else op_work(row, *current["rows"][row])
            current["name"] = row
            for _ in range(3):
                current["work"][0]()
            current["check"] = current["work"][1]()
        call, _, repeats = current["work"]

        def many():
            for _ in range(repeats):
                call()
        took = measure.time_calls(many, 10**9, seconds, least=3)
        return {"median_s": took["median_s"] / repeats, "min_s": took["min_s"] / repeats, "peak_bytes": took["peak_bytes"],
                "result": current["check"][0], "gradient": current["check"][1]}
    measure.serve(handle)


# ---- the script --------------------------------------------------------------------------------------------------------

def ours(row, seconds, threads):
    done = subprocess.run([str(BENCH), "--row", row, "--seconds", str(seconds), "--threads", str(threads)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise measure.WorkerFailed(done.stderr.strip())
    return json.loads(done.stdout)


def agree(name, a, b):
    # Twenty normalised layers on random images amplify roundings: against the same net in f64, PyTorch's gradients in f32
    # are off by 8.5e-4 in the mean, ours by 7.0e-4.
    bound = 2e-3 if name.startswith("resnet18") else 1e-4
    return all(abs(a[k] - b[k]) <= bound * max(abs(a[k]), abs(b[k]), 1e-12) for k in ("result", "gradient"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--only", action="append", default=[], help="rows whose name holds this text (may be repeated)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3, help="that each side spends on a row in a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve_torch()
        return
    measure.print_environment()
    peer = measure.Worker([measure.peer_python("torch"), __file__, "--serve"], KEEP_PAGES)
    hello = peer.ask(threads=arguments.threads)
    mine = subprocess.run([str(BENCH)], text=True, stdout=subprocess.PIPE, check=True).stdout.split("\n")[:-1]
    if set(mine) != set(hello["rows"]):
        raise SystemExit(f"op_rows_bench and this script differ in the rows {sorted(set(mine) ^ set(hello['rows']))}")
    protocol = f"median of {arguments.rounds} interleaved rounds of {arguments.seconds} s"
    results = []
    wrong = []
    for name in mine:
        if arguments.only and not any(text in name for text in arguments.only):
            continue
        first = {}

        def side(which, call):
            def once(_):
                got = call()
                first.setdefault(which, got)
                return got
            return once
        sides, load = measure.interleave({
            "ours": side("ours", lambda: ours(name, arguments.seconds, arguments.threads)),
            "theirs": side("theirs", lambda: peer.ask(row=name, seconds=arguments.seconds)),
        }, arguments.rounds)
        if "error" in sides["ours"]:
            raise SystemExit(f"{name}: {sides['ours']['error']}")
        if "theirs" in first and not agree(name, first["ours"], first["theirs"]):
            wrong.append(name)
            print(f"{name}: the results differ: ours {first['ours']}, theirs {first['theirs']}", file=sys.stderr)
        results.append(measure.row(name, protocol, "torch", hello["version"], sides["ours"], sides["theirs"], arguments.threads, load))
        ratio = results[-1]["ratio"]
        print(f"{name:48}{sides['ours']['median_s'] * 1e3:12.4f}{sides['theirs'].get('median_s', 0) * 1e3:12.4f}"
              f"{ratio:8.2f}{'  SLOWER' if ratio < 0.9 else ''}", flush=True)
        if arguments.json:
            measure.write_json(arguments.json, results)
    peer.close()
    if wrong:
        raise SystemExit(f"{len(wrong)} rows do not agree")


if __name__ == "__main__":
    main()
