"""The front page: a week under five policies that answers without a kernel, and three lines of code with what they print."""

import contextlib
import io

from recorded_explorer import Recording, block
from settings import EXECUTE

import gpuschedlab as lab
from gpuschedlab.widgets import Explorer

POLICIES = {"Easy": lab.Fifo(backfill="easy")} | {p.__name__: p for p in (lab.Srtf, lab.Sjf, lab.Tiresias, lab.Themis)}
NODES = (60, 70, 80)
"""States of the Explorer that are recorded: each policy beside each other, on so many nodes."""

THREE_LINES = """\
import gpuschedlab as lab

week = lab.generate("venus", days=7, jobs=10_000, load=0.9, cluster_gpus=560, rng=0)
runs = lab.compare(week, lab.Cluster.homogeneous(70, 8), [lab.Fifo(), lab.Tiresias(), lab.Themis()])
print(runs.show(["jct_mean", "jct_median", "jct_p99", "utilisation", "preemptions"]))
"""


def board() -> str:
    """The Explorer's first screen in Markdown; with stories of jobs where code is executed, which takes half a minute."""
    return block(Recording(Explorer(policies=POLICIES), NODES, stories=EXECUTE), 70, "Srtf", "Easy")


def three_lines() -> str:
    """Three lines of code, and what they print."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(THREE_LINES, "three lines", "exec"), {})
    return f"```python\n{THREE_LINES}```\n\n```text\n{out.getvalue()}```"
