"""The site of the pairs: its files with a log beside them, and its slurm.conf as a real slurmctld plays it."""

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab import Slurm
from gpuschedlab.papers.clusters.changes import changes_of
from gpuschedlab.papers.clusters.files.sacctmgr_lines import commands
from gpuschedlab.papers.clusters.playing.eligible import play
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.way_back import WayBack, way_back
from reproduce.papers.clusters.slurmctld.recorder import FOLDER

FILES = FOLDER / "pairs"
OF_SITE = ("slurm.conf", "assoc.txt", "qos.txt", "site.toml")
PLAYS = 20
"""Plays whose submissions are shifted by 0 or 1 s, of which the mean is announced: single ones scatter as recordings do."""


@dataclass(frozen=True)
class Announced:
    """Mean waits (s) that the site predicts, of its own configuration and of the changed one, and how they scatter between plays."""

    own: float
    changed: float
    spread: float

    @property
    def difference(self) -> float:
        """How much longer jobs wait after the change (s)."""
        return self.changed - self.own


def log_of(jobs: list[dict]) -> pl.DataFrame:
    """Return drawn jobs as the log of a site, which has no starts."""
    rows = []
    for number, job in enumerate(jobs):
        row = {"job_id": f"{number}", "submit": round(job["at"]), "gpus": job["nodes"] * job["each"]}
        row |= {"n_nodes": job["nodes"], "duration": job["seconds"], "requested_time": 60 * job["minutes"]}
        rows.append(row | {"user": job["user"], "account": job["account"], "qos": job["qos"], "vc": job["partition"]})
    return pl.DataFrame(rows)


def recorded_log(rows: pl.DataFrame, epoch: int) -> pl.DataFrame:
    """Return the rows of a recording as the log of a site, with its clock and its starts."""
    columns = ["job_id", "submit", "gpus", "duration", "requested_time", "user", "account", "qos", "nodelist"]
    clock = pl.from_epoch(pl.col("submit") + epoch).dt.strftime("%Y-%m-%dT%H:%M:%S")
    return rows.select(*columns, n_nodes="nodes", vc="partition", started="start", clock=clock)


def site_of(log: pl.DataFrame, folder: Path, files: Path = FILES) -> Site:
    """Return the site of the files of a folder, with a log, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in OF_SITE:
        shutil.copy(files / name, folder)
    log.write_csv(folder / "jobs.csv")
    return Site(str(folder / "site.toml"))


def words_of(diff: str) -> dict[str, str]:
    """Return changes by name from words such as "weight_age=0 limit.account.b=16"."""
    return dict(word.split("=", 1) for word in diff.split())


def announced(site: Site, diff: str, plays: int = PLAYS) -> Announced:
    """Return the mean waits that a site predicts of its log before and after a change."""
    found = changes_of(site, words_of(diff))
    other = replace(site)
    other.__dict__["log"] = site.log
    limits = found.get("within", site.description.limits)
    other.__dict__["description"] = replace(site.description, limits=limits)
    own = _waits(site, site.own, plays)
    changed = _waits(site, other.within(found.get("policy", site.rule)), plays)
    return Announced(own.mean(), changed.mean(), float(np.std(changed - own)))


def _waits(site: Site, policy: Slurm, plays: int) -> np.ndarray:
    """Mean waits (plays,) of the jobs of a site's log whose submissions are shifted by 0 or 1 s."""
    scenario = site.recorded()
    submit = scenario.trace["submit"].to_numpy()
    waits = []
    for seed in range(plays):
        later = submit + np.random.default_rng(seed).integers(0, 2, len(submit))
        trace = scenario.trace.with_columns(submit=later)
        jobs = play(scenario.replace(trace=trace), policy).jobs
        waits.append(float((jobs["start"] - jobs["submit"]).mean()))
    return np.array(waits)


def on_this_machine(text: str) -> str:
    """Return a site's slurm.conf without its nodes: the recorder's stand in their place."""
    lines = [line for line in text.splitlines() if not re.match(r"(?i)\s*NodeName=", line)]
    return "\n".join(lines)


def limit_commands(site: Site) -> list[str]:
    """Return the commands of sacctmgr that give a fresh slurmdbd the limits of a site."""
    said, unsaid = commands(replace(site.description, limits=()), site.description.limits)
    if unsaid:
        raise ValueError(f"{site.file}: found the limits {', '.join(unsaid)}; expected those that sacctmgr can set.")
    return said


def back_of(site: Site, diff: str) -> WayBack:
    """Return the lines of slurm.conf and the commands of sacctmgr of a change.

    Raises
    ------
    ValueError
        The site's files cannot say the change.
    """
    back = way_back(site, words_of(diff))
    if back.notes or not back:
        raise ValueError(f"{diff}: found {'; '.join(back.notes) or 'no change'}; expected what Slurm's files can say.")
    return back
