"""Shared by the scripts of bench/peers: worker processes, interleaved rounds, peak memory, result rows. Measures nothing itself.

A script under bench/peers is started by any python3 and needs nothing installed: it asks workers, which are processes of
the peer's own environment (bench/peers/setup), one for each variant, so that each has its own settings, thread pool and
peak memory, and peers that need different PyTorch versions can stand in one run. A round asks every side once, in turn;
load from outside then hits all sides alike. What a round returns is {median_s, min_s, peak_bytes}.
"""
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
DATA = REPO.parent / "shared" / "data"
BIN = REPO / "build" / "release" / "bin"


def peer_python(env):
    """The interpreter of the environment `env` that bench/peers/setup makes."""
    root = Path(os.environ.get("TESSERA_PEERS") or Path.home() / ".cache" / "tessera-peers")
    python = root / env / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"no {env} environment: run bench/peers/setup {env}")
    return str(python)


class Worker:
    """A process that answers JSON lines: worker.ask(threads=2) -> dict. Raises WorkerFailed with the reason."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})

    def ask(self, **request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            raise WorkerFailed("killed by signal %d (memory?)" % -code if code < 0 else "exited with code %d" % code)
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerFailed(answer["error"])
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class WorkerFailed(Exception):
    pass


def serve(handle):
    """The worker's side: answers each request line with handle(**request) until stdin closes. Whatever libraries print
    goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = handle(**json.loads(line))
        except Exception as e:
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def peak_bytes():
    """Peak resident memory of this process. (getrusage's ru_maxrss is inherited from the parent, VmHWM is not.)"""
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024


def reset_peak_bytes():
    """From here on peak_bytes() is what comes; needs no privilege for one's own process."""
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def inputs(nodes, width, salt):
    """The numbers of `element` in bench/support/side.cpp: in [-1, 1), few of them equal."""
    import numpy as np
    with np.errstate(over="ignore"):
        i = np.arange(nodes, dtype=np.uint32)[:, None] * np.uint32(2654435761)
        j = np.arange(width, dtype=np.uint32)[None, :] * np.uint32(2246822519)
        h = i + j + np.uint32(salt * 3266489917 & 0xFFFFFFFF)
        h ^= h >> np.uint32(15)
        h *= np.uint32(2246822519)
        h ^= h >> np.uint32(13)
    return (h >> np.uint32(8)).astype(np.float32) * np.float32(1.0 / (1 << 23)) - np.float32(1)


def time_calls(call, count, budget_s=float("inf"), least=20, clock=time.perf_counter):
    """Times `count` calls one by one, fewer (but `least`) once budget_s is used up: one round's {median_s, min_s, peak_bytes}.
    `clock`: time.process_time counts the processor time of all threads, which a busy machine hardly changes."""
    seconds = []
    end = clock() + budget_s
    while len(seconds) < count:
        start = clock()
        call()
        stop = clock()
        seconds.append(stop - start)
        if stop > end and len(seconds) >= least:
            break
    return {"median_s": statistics.median(seconds), "min_s": min(seconds), "peak_bytes": peak_bytes()}


def interleave(tasks, rounds, progress=None, enough_s=float("inf")):
    """Runs every task (name -> callable(round)) once a round, in turn. A task that fails is left out of later rounds;
    after enough_s seconds no other round begins.

    Returns (name -> {median_s: median over rounds, min_s, peak_bytes} or {error}, mean load average)."""
    got = {name: [] for name in tasks}
    failed = {}
    load = []
    end = time.perf_counter() + enough_s
    for i in range(rounds):
        if i > 0 and time.perf_counter() > end:
            break
        for name, task in tasks.items():
            if name in failed:
                continue
            try:
                got[name].append(task(i))
            except WorkerFailed as e:
                failed[name] = {"error": str(e)}
        load.append(os.getloadavg()[0])
        if progress:
            print(f"{progress}: round {i + 1} of {rounds}", file=sys.stderr, flush=True)
    sides = {
        name: {
            "median_s": statistics.median(r["median_s"] for r in results),
            "min_s": min(r["min_s"] for r in results),
            "peak_bytes": max(r["peak_bytes"] for r in results),
        }
        for name, results in got.items() if name not in failed
    }
    return {**sides, **failed}, round(statistics.mean(load), 2)


def row(name, protocol, peer, peer_version, ours, theirs, threads, load_average):
    """One entry of a result file. ratio = their median / our median: how many times faster ours is."""
    measured = ours and theirs and "median_s" in theirs
    return {
        "row": name, "protocol": protocol, "peer": peer, "peer_version": peer_version, "ours": ours, "theirs": theirs,
        "ratio": theirs["median_s"] / ours["median_s"] if measured else None,
        "threads": threads, "load_average": load_average,
    }


def print_rows(rows):
    print(f"{'row':34}{'threads':>8}{'ours ms (min)':>20}{'theirs ms (min)':>20}{'ratio (minima)':>18}"
          f"{'ours MB':>9}{'theirs MB':>10}{'peak ratio':>11}  protocol")
    for r in rows:
        def ms(side):
            if not side:
                return "-"
            return f"{side['median_s'] * 1e3:.3f} ({side['min_s'] * 1e3:.3f})" if "median_s" in side else "failed"

        def mb(side):
            return f"{side['peak_bytes'] / 1e6:.0f}" if side and side.get("peak_bytes") else "-"

        ratio = f"{r['ratio']:.2f} ({r['theirs']['min_s'] / r['ours']['min_s']:.2f})" if r["ratio"] else "-"
        both = [side and side.get("peak_bytes") for side in (r["ours"], r["theirs"])]
        peak = f"{both[1] / both[0]:.1f}" if all(both) else "-"
        error = r["theirs"].get("error", "")
        print(f"{r['row']:34}{r['threads']:>8}{ms(r['ours']):>20}{ms(r['theirs']):>20}{ratio:>18}"
              f"{mb(r['ours']):>9}{mb(r['theirs']):>10}{peak:>11}  {r['protocol']}{' - ' + error if error else ''}")


def print_environment():
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    cpu = names[0] if names else platform.machine()
    load = " ".join(f"{x:.2f}" for x in os.getloadavg())
    print(f"{cpu}, {os.cpu_count()} CPUs, load average {load}, {platform.system()} {platform.release()}")


def write_json(path, rows):
    """Writes aside and renames, so that a reader never meets half a file."""
    path = Path(path)
    aside = path.with_name(path.name + ".part")
    aside.write_text(json.dumps(rows, indent=1) + "\n")
    aside.replace(path)
