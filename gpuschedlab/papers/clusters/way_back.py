"""From a change of a site back into its files: lines of slurm.conf to replace, and commands of sacctmgr."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.changes import changes_of
from gpuschedlab.papers.clusters.files.sacctmgr_lines import commands
from gpuschedlab.papers.clusters.files.slurm_lines import ConfChange, conf_with, unsayable
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.schedulers.slurm import Slurm


@dataclass(frozen=True)
class WayBack:
    """What turns a site's files into those of the changed site; `notes` say what they cannot."""

    conf: ConfChange
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.conf.lines or self.commands or self.notes)

    def __str__(self) -> str:
        way_back_parts = [f"slurm.conf:\n{self.conf}"] if self.conf.lines else []
        way_back_parts += ["\n".join(self.commands)] if self.commands else []
        way_back_parts += [f"not in Slurm's files: {note}" for note in self.notes]
        return "\n".join(way_back_parts)


def _tables(site: Site) -> dict:
    """Return a dict of the tables of a site's TOML; empty for a log alone."""
    if not site.file.endswith(".toml"):
        return {}
    return tomllib.loads(Path(site.file).read_text(encoding="utf-8"))


def names_conf(site: Site) -> bool:
    """Whether a site's TOML names a slurm.conf."""
    return "conf" in _tables(site).get("slurm", {})


def conf_of(site: Site) -> Path:
    """Return the path of the slurm.conf that a site's TOML names.

    Raises
    ------
    TraceError
        It names none.
    """
    conf = _tables(site).get("slurm", {}).get("conf")
    if conf is None:
        raise TraceError(f'way_back {site.file}: found no slurm.conf; expected [slurm] conf = "slurm.conf".')
    return Path(site.file).parent / conf


def way_back(site: Site, changes: Mapping[str, object]) -> WayBack:
    """Return a `WayBack`: lines of slurm.conf and commands of sacctmgr for changes of a site, as `whatif` takes them.

    Only values that differ from the site's are written, and its other words stay as they are. A key of a table [scheduler] of the
    site's TOML goes before that of slurm.conf: a note says so.

    Raises
    ------
    TraceError
        The site names no slurm.conf, or a change is not known.

    Examples
    --------
    >>> print(way_back(Site.sample(), {"weight_age": 500, "depth": 4}))
    slurm.conf:
    + PriorityWeightAge=500
    + PriorityType=priority/multifactor
    - SchedulerParameters=bf_interval=30,bf_window=2880,bf_job_part_count_reserve=8
    + SchedulerParameters=bf_interval=30,bf_window=2880,bf_job_part_count_reserve=4
    not in Slurm's files: keys of [scheduler] in site.toml, which go before those of slurm.conf: change them there as well
    """
    path = conf_of(site)
    slurm_conf = path.read_text(encoding="utf-8", errors="replace")
    site_changes = changes_of(site, changes)
    was = replace(site.slurm, limits=())
    wanted = site_changes.get("policy", was)
    notes = [
        f"{change_name}: it is no setting" for change_name in site_changes if change_name not in ("policy", "within")
    ]
    conf = ConfChange(slurm_conf)
    if not isinstance(wanted, Slurm):
        notes.append(f"policy={wanted.name}: slurm.conf has Slurm's own rule alone")
    elif wrong := unsayable(was, replace(wanted, limits=())):
        notes += wrong
    else:
        conf = conf_with(slurm_conf, was, replace(wanted, limits=()))
    if conf.lines and "scheduler" in _tables(site):
        notes.append("keys of [scheduler] in site.toml, which go before those of slurm.conf: change them there as well")
    sacctmgr_commands = ()
    if "within" in site_changes:
        sacctmgr_commands, unsaid_limits = commands(site.description, site_changes["within"])
        notes += unsaid_limits
    return WayBack(conf, tuple(sacctmgr_commands), tuple(notes))
