"""Pairs of configurations that play the same jobs on a real Slurm: `make referee DIFF="weight_age=0"`.

DIFF=seeded plays a pair of each kind of change.
The site of `data/slurm/pairs/` says what a change of its slurm.conf, or of the limits of its slurmdbd, is worth; then a real Slurm plays
the same submissions before and after it, each twice. A recording takes ten minutes of waiting, and hardly any CPU.
"""

import argparse
import itertools
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gpuschedlab.papers.clusters.changes import changes_of
from gpuschedlab.papers.clusters.files.description import Description
from gpuschedlab.papers.clusters.files.sacctmgr_lines import commands
from gpuschedlab.papers.clusters.files.slurm_files import read_conf
from gpuschedlab.papers.clusters.recipe import Site
from reproduce.papers.clusters.slurmctld.pair_jobs import CHANGES, CLEAR, Draw, drawn, in_order
from reproduce.papers.clusters.slurmctld.pair_site import (
    FILES,
    announced,
    back_of,
    limit_commands,
    log_of,
    on_this_machine,
    recorded_log,
    site_of,
    words_of,
)
from reproduce.papers.clusters.slurmctld.recorder import recorder

SIDES = ("own", "changed")
RECORDINGS = (1, 2)
UNUSED = ("eligible", "after", "array", "throttle", "type")
FACTORS = ("age", "size", "fairshare")
"""Columns of a recording that pairs do not need."""
DRAWS = 10
"""Draws of jobs that are tried of a kind of change."""
SIZE = 0.15
"""Of the realised difference: the announced one may miss it by as much."""


@dataclass(frozen=True)
class Pair:
    """A change, and the jobs that are played before and after it."""

    name: str
    diff: str
    draw: Draw


@dataclass(frozen=True)
class Result:
    """Mean waits (s) of a pair, realised and announced: of both recordings of each configuration, and of their differences."""

    pair: str
    diff: str
    own: tuple[float, ...]
    changed: tuple[float, ...]
    announced: float

    @property
    def differences(self) -> tuple[float, ...]:
        """Realised differences (s), a recording beside a recording."""
        return tuple(after - before for before, after in zip(self.own, self.changed, strict=True))

    @property
    def realised(self) -> float:
        """Mean of the realised differences (s)."""
        return sum(self.differences) / len(self.differences)

    @property
    def scatter(self) -> float:
        """By how much Slurm's own differences differ (s)."""
        return max(self.differences) - min(self.differences)

    @property
    def sign_is_right(self) -> bool:
        """Whether jobs wait longer, or less long, as was announced."""
        return self.announced * self.realised > 0

    @property
    def size_is_right(self) -> bool:
        """Whether the announced difference is the realised one within `SIZE` of it, or within Slurm's own scatter."""
        return abs(self.announced - self.realised) <= max(SIZE * abs(self.realised), self.scatter)


def seeded(seed: int, folder: Path) -> list[Pair]:
    """Return a pair of each kind of change: the first, in the order of a seed, of which the announced sign is clear."""
    pairs = []
    for number, kind in enumerate(CHANGES):
        tried = itertools.product(range(DRAWS), in_order(seed, kind))
        candidates = (Pair(kind, diff, Draw(100 * seed + 10 * number + draw)) for draw, diff in tried)
        pairs.append(next(pair for pair in candidates if is_clear(pair, folder)))
    return pairs


def is_clear(pair: Pair, folder: Path) -> bool:
    """Whether the announced difference of a pair is clear of its scatter between plays."""
    log = log_of(drawn(pair.draw))
    gain = announced(site_of(log, folder / f"{pair.draw.seed}"), pair.diff)
    return abs(gain.difference) >= CLEAR * gain.spread


def stream_of(pair: Pair, side: str, site: Site) -> tuple[recorder.Stream, str]:
    """Return the stream of one side of a pair, and its limits in words."""
    text = (FILES / "slurm.conf").read_text()
    limits = site.description.limits
    own_limits = limit_commands(site)
    more = ()
    if side == "changed":
        back = back_of(site, pair.diff)
        text = back.conf.text
        limits = changes_of(site, words_of(pair.diff)).get("within", limits)
        more = back.commands
    description = read_conf(text, "slurm.conf", Description())
    stream = recorder.Stream(
        f"{pair.name}-{side}",
        pair.draw.seed,
        jobs=pair.draw.jobs,
        gap=pair.draw.gap,
        nodes=len(description.nodes),
        scheduler={"plan": "backfill", "none": "builtin"}[description.scheduler.backfill],
        tiers=tuple((partition.name, int(partition.tier)) for partition in description.partitions),
        counted=True,
        types=("",) * len(description.nodes),
        site=on_this_machine(text),
        commands=(*own_limits, *more),
    )
    final, _ = commands(Description(), limits)
    return stream, "; ".join(said_of(command) for command in final)


def said_of(command: str) -> str:
    """Return the words of a command of sacctmgr as `data/slurm/streams.csv` has limits: "qos NAME KEY=VALUE"."""
    return command.removeprefix("sacctmgr -i modify ").replace(" set ", " ")


def record(pair: Pair, side: str, number: int, port: int) -> dict[str, pl.DataFrame]:
    """Record one side of a pair once."""
    jobs = drawn(pair.draw)
    with tempfile.TemporaryDirectory() as folder:
        stream, limits = stream_of(pair, side, site_of(log_of(jobs), Path(folder)))
    found = recorder.record(stream, number, port, jobs)
    about = {"limits": pl.lit(limits), "diff": pl.lit(pair.diff), "seed": pl.lit(pair.draw.seed)}
    return found | {
        "streams": found["streams"].with_columns(**about),
        "jobs": found["jobs"].drop(UNUSED),
        "priorities": found["priorities"].drop(FACTORS),
    }


def results(folder: Path = FILES) -> list[Result]:
    """Return the result of each pair whose recordings are all in a folder; announced is the mean of both logs of the site as it is."""
    streams = pl.read_csv(folder / "streams.csv", infer_schema_length=None)
    jobs = pl.read_csv(folder / "jobs.csv", infer_schema_length=None, schema_overrides={"job_id": pl.String})
    found = []
    for name in streams["stream"].str.strip_suffix("-own").str.strip_suffix("-changed").unique(maintain_order=True):
        rows = {}
        for side in SIDES:
            of_side = jobs.filter(stream=f"{name}-{side}")
            rows[side] = [of_side.filter(recording=number) for number in RECORDINGS]
        if any(frame.is_empty() for side in SIDES for frame in rows[side]):
            continue
        about = streams.filter(stream=f"{name}-own").sort("recording")
        diff = about["diff"][0]
        gains = []
        for epoch, frame in zip(about["epoch"], rows["own"], strict=True):
            with tempfile.TemporaryDirectory() as place:
                gains.append(announced(site_of(recorded_log(frame, epoch), Path(place)), diff).difference)
        waits = {side: tuple(mean_wait(frame) for frame in rows[side]) for side in SIDES}
        found.append(Result(name, diff, waits["own"], waits["changed"], sum(gains) / len(gains)))
    return found


def mean_wait(jobs: pl.DataFrame) -> float:
    """Mean wait (s) of recorded jobs."""
    return float((jobs["start"] - jobs["submit"]).mean())


def table(found: list[Result]) -> list[str]:
    """Return the rows of the table of the page *Checked against Slurm*."""
    lines = [
        "| pair | change | mean wait before, twice (s) | after, twice (s) | announced difference (s) | realised (s) | sign | size |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for pair in found:
        own = ", ".join(f"{wait:.1f}" for wait in pair.own)
        changed = ", ".join(f"{wait:.1f}" for wait in pair.changed)
        realised = ", ".join(f"{value:+.1f}" for value in pair.differences)
        sign = "right" if pair.sign_is_right else "wrong"
        size = "right" if pair.size_is_right else "wrong"
        lines.append(
            f"| {pair.pair} | `{pair.diff}` | {own} | {changed} | {pair.announced:+.1f} | {realised} | {sign} | {size} |"
        )
    return lines


def main() -> None:
    """Record pairs, and print what was announced beside what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("diff", nargs="?", default="", help="changes, as whatif takes them; 'seeded': one of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of the jobs, and of the changes that are taken")
    parser.add_argument("--jobs", type=int, default=Draw(0).jobs)
    parser.add_argument("--folder", type=Path, default=Path("runs/referee"), help="where recordings are kept")
    parser.add_argument("--workers", type=int, default=4, help="recordings at once")
    parser.add_argument("--port", type=int, default=recorder.PORT + 1000, help="the first port")
    parser.add_argument("--only-print", action="store_true", help="print the table of the recordings that are there")
    given = parser.parse_args()
    if not given.only_print:
        if reason := recorder.why_not(counted=True):
            return print(f"skipped: {reason}")
        given.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as place:
            if given.diff == "seeded":
                pairs = seeded(given.seed, Path(place))
            else:
                pairs = [Pair("pair", given.diff, Draw(100 * given.seed, jobs=given.jobs))]
            for pair in pairs:
                site = site_of(log_of(drawn(pair.draw)), Path(place) / f"site-{pair.name}")
                gain = announced(site, pair.diff)
                print(
                    f"{pair.name}: {pair.diff}, announced {gain.own:.1f} to {gain.changed:.1f} s, {gain.difference:+.1f}"
                )
                print(back_of(site, pair.diff), flush=True)
        record_all(pairs, given)
    print("\n".join(table(results(given.folder))))


def record_all(pairs: list[Pair], given: argparse.Namespace) -> None:
    """Record each side of each pair twice, some at once; both sides of a pair run at the same time."""
    tasks = [(pair, side, number) for pair in pairs for number in RECORDINGS for side in SIDES]
    with ThreadPoolExecutor(given.workers) as pool:
        going = [pool.submit(record, *task, given.port + 50 * i) for i, task in enumerate(tasks)]
        for (pair, side, number), one in zip(tasks, going, strict=True):
            try:
                found = one.result()
            except (RuntimeError, recorder.subprocess.CalledProcessError) as wrong:
                print(f"{pair.name} {side} {number}: {wrong}", flush=True)
                continue
            recorder.keep(found, given.folder)
            print(f"{pair.name} {side} {number}: mean wait {mean_wait(found['jobs']):.1f} s", flush=True)


if __name__ == "__main__":
    main()
