"""A sweep of 200 small cells in a process of its own, which can be killed: FOLDER, HOW, and which process is killed when."""

import contextlib
import os
import random
import signal
import sys
from dataclasses import dataclass

from gpuschedlab.check import small_trace
from gpuschedlab.cluster import Cluster
from gpuschedlab.policies import Fifo, Sjf, Srtf, Tiresias
from gpuschedlab.sim import Scenario
from gpuschedlab.sweep import grid, store, sweep


@dataclass(frozen=True)
class Small:
    """A recipe, followed by the workers."""

    jobs: int

    def __call__(self, seed: int) -> Scenario:
        return Scenario(small_trace(self.jobs, rng=seed), Cluster.homogeneous(2, 8))


def cells(folder: str, workers: int | None = None):
    """20 policies x 10 seeds."""
    policies = [Fifo(), *grid(Sjf, backfill=["none", "greedy"]), Srtf(), *grid(Tiresias, thresholds=8, starve_limit=2)]
    return sweep(Small(12), policies, folder, seeds=range(10), workers=workers)


def at_cell(count: int, do):
    """Have `do(path, raw)` called when the cell of that number is about to be written."""
    write = store.put
    seen = []

    def counted(path, raw):
        if path.parent.name == "cells":
            seen.append(path)
            if len(seen) == count:
                do(path, raw)
        write(path, raw)

    store.put = counted


def die(path, raw):
    """Leave half a file, and die as if the power had gone."""
    path.with_name(f".{path.name}.part").write_bytes(raw[: len(raw) // 2])
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, how: str, when: str = ""):
    """Run the sweep; `when` is a cell's number, or "timer" for any moment of the first second of work."""
    if how == "dask":
        return on_dask(folder, int(when))
    if when == "timer":
        at_cell(1, lambda *_: signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, 1.0)))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    elif when and how == "worker":
        at_cell(int(when), kill_a_worker)
    elif when:
        at_cell(int(when), die)
    found = cells(folder, 2 if how == "worker" else int(how))
    found.frame.write_parquet(f"{folder}/result.parquet")


def kill_a_worker(*_):
    """Kill one of joblib's own workers."""
    from joblib.externals.loky import reusable_executor

    os.kill(next(iter(reusable_executor._executor._processes)), signal.SIGKILL)


def fail_to_scatter(client, count: int) -> list:
    """Have the connection close when data is sent to the workers for the time of that number; returns what was not sent."""
    from distributed.comm import CommClosedError

    scatter = client.scatter
    calls = []
    failed = []

    async def scattered(*args, **options):
        calls.append(args)
        if len(calls) == count:
            failed.append(args)
            raise CommClosedError("Stream is closed")
        return await scatter(*args, **options)

    client.scatter = scattered
    return failed


def on_dask(folder: str, when: int):
    """Run it on two workers of a Dask cluster on this machine: the second scenario does not reach them, and one is killed on the way."""
    import joblib
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client, joblib.parallel_config(backend="dask"):
        workers = sorted(client.run(os.getpid).values())
        failed = fail_to_scatter(client, 2)
        at_cell(when, lambda *_: os.kill(workers[0], signal.SIGKILL))
        cells(folder).frame.write_parquet(f"{folder}/result.parquet")
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(2, timeout=60)  # none is still starting when the cluster closes
        assert failed, "all scenarios reached the workers"


if __name__ == "__main__":
    main(*sys.argv[1:])
