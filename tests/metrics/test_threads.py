"""Frames are the same on any number of threads of polars: all other tests give it one."""

import os
import subprocess
import sys

DIGEST = """
import hashlib
import polars as pl
import gpuschedlab as lab
from gpuschedlab import metrics
from gpuschedlab.check.samples import recurring_sample
from gpuschedlab.papers.clusters.recipe import Site

def digest(frame):
    return hashlib.sha256(repr(frame.rows()).encode()).hexdigest()

print(pl.thread_pool_size())
trace = lab.generate("venus", days=2, jobs=2000, load=0.9, cluster_gpus=64, rng=0)
print(digest(trace))
run = lab.simulate(trace, lab.Cluster.homogeneous(8, 8), lab.Tiresias(), log=True)
for name in ("jobs", "allocations", "decisions"):
    print(digest(getattr(run, name)))
print(digest(lab.compare({"one": run, "other": run}, ["jct_mean", "queueing_mean", "utilisation"])))
print(digest(pl.DataFrame({"fairness": metrics.finish_time_fairness(run)})))
print(digest(Site.sample()().trace))
from gpuschedlab.autosched.forecast.repository import observe
simulation = lab.Simulation(lab.Scenario(recurring_sample(2000, 0), lab.Cluster.homogeneous(8, 8)), lab.Fifo())
simulation.run()
print(digest(observe(simulation)))
"""


def digests(threads: int) -> list[str]:
    """Threads that polars has, and digests of frames, in a process that is given so many."""
    env = os.environ | {"POLARS_MAX_THREADS": str(threads)}
    done = subprocess.run([sys.executable, "-c", DIGEST], env=env, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_frames_do_not_depend_on_the_threads_of_polars():
    alone, *one = digests(1)
    many, *eight = digests(8)
    assert (alone, many) == ("1", "8")
    assert one == eight
