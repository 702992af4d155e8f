"""Slips of the Titan artifact, each on all foundation models at loads 1 and 1.5."""

from dataclasses import replace
from itertools import product

from reproduce.papers.ymir import titan
from reproduce.papers.ymir.artifact_runs import artifact_run, counted
from reproduce.papers.ymir.runs import figures
from reproduce.papers.ymir.slips import ALL, NONE
from reproduce.published.referee import Slip

REPOSITORY = "gaow0007/TitanSched"
CASES = tuple(product(titan.MODELS, (1.0, 1.5)))
SWITCH = "`Slips({}=True)` in `reproduce/papers/ymir/slips.py`"
JCT = "average completion time under {}, "


def _average(data_dir, name: str, fm: str, load: float, slips) -> float:
    return figures(artifact_run(data_dir, name, fm, load, slips))["avg_jct"]


def _alone(data_dir, name: str, fm: str, load: float, **slips) -> list[float]:
    """With all rules of the artifact, and with all but these."""
    return [_average(data_dir, name, fm, load, s) for s in (ALL, replace(ALL, **slips))]


def youngest(data_dir, fm: str, load: float) -> list[float]:
    """Optimus whose gains are those of the youngest job, and whose gains are each job's own."""
    return _alone(data_dir, "optimus", fm, load, youngest=False)


def together(data_dir, fm: str, load: float) -> list[float]:
    """Optimus as the artifact has it, and as the package has it."""
    return [_average(data_dir, "optimus", fm, load, slips) for slips in (ALL, NONE)]


def extra_pass(data_dir, fm: str, load: float) -> list[float]:
    """Shortest job first, by times that count one accumulated pass too many, and by right ones."""
    return _alone(data_dir, "srtf", fm, load, extra_pass=False)


def refusals(data_dir, fm: str, load: float) -> list[float]:
    """Tiresias that refuses what does not fit on the fewest nodes, and that places it on more."""
    return _alone(data_dir, "tiresias", fm, load, refuse=False)


def whole_seconds(data_dir, fm: str, load: float) -> list[float]:
    """Optimus by all rules, its time counted in whole seconds each round, and as it passes."""
    run = artifact_run(data_dir, "optimus", fm, load, ALL)
    return [float(counted(run)["jct"].mean()), float(run.jobs["jct"].mean())]


def forgetful(data_dir, fm: str, load: float) -> list[float]:
    """Pollux whose search does not know what jobs hold, and whose search does."""
    return [_average(data_dir, "pollux", fm, load, slips) for slips in (ALL, NONE)]


SLIPS = {
    "titan-optimus": Slip(
        REPOSITORY,
        "`alg/scheduler/optimus.py`, `alg/placement/consolidate.py`, `client/job/foundation_model.py`",
        "Optimus by all rules of the artifact: the three slips here, and speeds between the tabled numbers of GPUs.",
        "`ALL` over `NONE` in `reproduce/papers/ymir/slips.py`",
        "average completion time under Optimus, as the artifact has it over as this package has it",
        together,
        CASES,
    ),
    "optimus-youngest": Slip(
        REPOSITORY,
        "`alg/scheduler/optimus.py`, `flush_runnable_jobs`",
        "The loop that gives GPUs one by one reads `job`, which is still the last job of the loop before: gain and limit of each "
        "GPU are those of the job submitted last, whoever gets it.",
        SWITCH.format("youngest"),
        JCT.format("Optimus") + "all else as the artifact has it",
        youngest,
        CASES,
    ),
    "titan-extra-pass": Slip(
        REPOSITORY,
        "`client/job/foundation_model.py`, `predict_remaining_time`",
        "A predicted remaining time counts one accumulated pass too many.",
        SWITCH.format("extra_pass"),
        JCT.format("SRTF") + "all else as the artifact has it",
        extra_pass,
        CASES,
    ),
    "titan-refusals": Slip(
        REPOSITORY,
        "`alg/placement/consolidate.py`, `place_jobs`",
        "A job that does not fit on its fewest nodes is refused, and its GPUs stay idle for a round. Equal submissions go by their "
        "place in the lists of running and waiting jobs.",
        SWITCH.format("refuse"),
        JCT.format("Tiresias") + "all else as the artifact has it",
        refusals,
        CASES,
    ),
    "titan-whole-seconds": Slip(
        REPOSITORY,
        "`client/job/foundation_model.py`, `step`",
        "Progress is counted in whole seconds each round, so that each start adds up to half a second.",
        "`counted` in `reproduce/papers/ymir/artifact_runs.py`",
        JCT.format("Optimus") + "counted so over as it passes",
        whole_seconds,
        CASES,
    ),
    "titan-forgetful-pollux": Slip(
        REPOSITORY,
        "`alg/scheduler/pollux.py`",
        "The search is not told what jobs hold, so that keeping GPUs counts as a restart.",
        "`Forgetful` in `reproduce/papers/ymir/artifact_pollux.py`",
        JCT.format("Pollux") + "at load 1",
        forgetful,
        tuple(product(titan.MODELS, (1.0,))),
    ),
}
