"""Random settings, printed onto the sample's slurm.conf, and read back from a real slurmctld and slurmdbd: `make referee SETTINGS=50`.

Of each setting of the rule and of limits: slurmctld starts with the printed file, refuses nothing of it, gives back every printed value and
has no other value changed; the file's other words are as they were; the package reads the same rule from it and from what slurmctld prints;
and slurmdbd has the limits that the printed commands set, and no other.
"""

import argparse
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gpuschedlab import Slurm
from gpuschedlab.papers.clusters.files.conf_lines import numbered_lines
from gpuschedlab.papers.clusters.files.description import Description, Limit, seconds
from gpuschedlab.papers.clusters.files.sacctmgr_files import rows_of
from gpuschedlab.papers.clusters.files.sacctmgr_lines import commands
from gpuschedlab.papers.clusters.files.slurm_files import pairs_of, read_conf
from gpuschedlab.papers.clusters.files.slurm_lines import SPANS, ConfChange, conf_with
from gpuschedlab.papers.clusters.recipe import Site
from reproduce.papers.clusters.random_settings import drawn, words
from reproduce.papers.clusters.slurmctld.controller import Controller
from reproduce.papers.clusters.slurmctld.recorder import recorder

CHANGING = ("BOOT_TIME", "NEXT_JOB_ID")
"""Keys of `scontrol show config` that no setting says."""
LIMITS = (
    Limit("qos", ("normal",), gpus=1),
    Limit("qos", ("normal",), jobs=1),
    Limit("qos", ("normal",), wall=60),
    Limit("qos", ("normal",), size=1),
    Limit("user", qos=("normal",), gpus=1),
    Limit("user", qos=("normal",), gpus=1, gpu_type="a100"),
    Limit("user", qos=("normal",), jobs=1),
    Limit("account", qos=("normal",), gpus=1),
    Limit("account", ("research",), gpus=1),
    Limit("account", ("product",), jobs=1),
    Limit("member", ("research/ada",), jobs=1),
    Limit("member", ("product/eli",), wall=60),
    Limit("member", ("research/ben",), size=1),
)
"""Kinds of limits of the sample's accounts and users, of which each setting has some with other amounts."""
LIKELY = 0.3
"""Share of the kinds of limits that a setting has."""
LIMITED = re.compile(r"(grp|max)(tres|jobs|wall)(p[ua])?")
"""Columns of sacctmgr of which the printed commands set some; others must stay empty."""


@dataclass
class Sample:
    """The sample's files without its table [scheduler]: the rule is that of its slurm.conf alone."""

    folder: Path

    def __post_init__(self):
        own = Path(Site.sample().file).parent
        for name in ("slurm.conf", "assoc.txt", "jobs.csv"):
            (self.folder / name).write_text((own / name).read_text())
        lines = '[log]\npath = "jobs.csv"\n[slurm]\nconf = "slurm.conf"\nassoc = "assoc.txt"\n'
        (self.folder / "site.toml").write_text(lines)
        self.text = (self.folder / "slurm.conf").read_text()
        self.site = self._read()

    def _read(self) -> Site:
        return Site(str(self.folder / "site.toml"))

    def rule_of(self, text: str) -> Slurm:
        """Rule of the site with another slurm.conf."""
        (self.folder / "slurm.conf").write_text(text)
        return self._read().slurm


@dataclass(frozen=True)
class Own:
    """The site's own slurm.conf, and the values that slurmctld has of it."""

    text: str
    shown: dict[tuple[str, str], str]


def limits_drawn(dice: np.random.Generator) -> tuple[Limit, ...]:
    """Some kinds of limits, with random amounts."""
    limits = []
    for limit in LIMITS:
        if dice.random() < LIKELY:
            amount = float(dice.integers(1, 2_000))
            unit = 60.0 if "wall" in limit.amounts else 1.0
            limits.append(replace(limit, **dict.fromkeys(limit.amounts, unit * amount)))
    return tuple(limits)


def same(key: str, written: str, shown: str) -> bool:
    """Whether a value of `scontrol show config` is the one that was written."""
    key = key.lower()
    if key in {name.lower() for name in SPANS.values()}:
        return seconds(written, key) == seconds(shown, key)
    if key == "priorityflags":
        return {*filter(None, written.upper().split(","))} == {*shown.upper().split(",")} - {"", "(NULL)"}
    if not written:
        return shown in ("", "(null)")
    return written.lower() == shown.lower()


def shown_by(controller: Controller) -> dict[tuple[str, str], str]:
    """Values that slurmctld has, by partition ("" for its config) and key in lower case."""
    values = {("", key.lower()): value for key, value in controller.config().items() if key not in CHANGING}
    for name, row in controller.partitions().items():
        values |= {(name, key.lower()): value for key, value in row.items()}
    return values


def printed_by(change: ConfChange, before: str) -> dict[tuple[str, str], str]:
    """Values that the new lines of a slurm.conf say and its lines before did not, by partition and key in lower case."""
    old = set()
    for _, line in numbered_lines(before):
        old |= {*values_of(line).items()}
    new = set()
    for _, line in change.lines:
        new |= {*values_of(re.sub(r"#.*", "", line)).items()}
    return dict(new - old)


def values_of(line: str) -> dict[tuple[str, str], str]:
    """Values of a line by partition and key in lower case; empty for a line of nodes."""
    pairs = pairs_of(line, "slurm.conf")
    if "nodename" in pairs:
        return {}
    partition = pairs.pop("partitionname", "")
    return {(partition, key): value for key, value in pairs.items()}


def problems_of(controller: Controller, change: ConfChange, own: Own) -> list[str]:
    """Return in words the printed values that slurmctld does not have, and those that it has changed beside."""
    problems = [f"refused: {line}" for line in controller.refusals()]
    shown = shown_by(controller)
    printed = printed_by(change, own.text)
    for place, written in printed.items():
        if not same(place[1], written, shown.get(place, "")):
            problems.append(f"{' '.join(place)}={written}: shown as {shown.get(place)!r}")
    for place in own.shown.keys() & shown.keys() - printed.keys():
        if own.shown[place] != shown[place]:
            problems.append(f"{' '.join(place)} was {own.shown[place]!r}, is {shown[place]!r}")
    return problems


def limits_shown(controller: Controller) -> dict[tuple[str, str, str], str]:
    """Limits of slurmdbd by owner, column and TRES, as sacctmgr shows them."""
    shown = {}
    for kind, needed in (("qos", ("name",)), ("assoc", ("account", "user"))):
        for _, row in rows_of(controller.ask("sacctmgr", "-P", "show", kind), kind, needed, {}):
            if kind == "qos":
                owner = f"qos {row['name']}"
            elif row["user"]:
                owner = f"user {row['account']}/{row['user']}"
            else:
                owner = f"account {row['account']}"
            for column, value in row.items():
                if LIMITED.fullmatch(column) and value:
                    for entry in value.split(","):
                        tres, _, amount = entry.rpartition("=")
                        shown[owner, column, tres] = amount
    return shown


def limits_wanted(limits: tuple[Limit, ...]) -> dict[tuple[str, str, str], str]:
    """The same of limits that are wanted, by the columns of Slurm's documentation."""
    of_each = {"user": "pu", "account": "pa"}
    wanted = {}
    for limit in limits:
        ((what, amount),) = limit.amounts.items()
        tres = ""
        text = f"{amount:.0f}"
        if what in ("gpus", "size"):
            tres = ":".join(filter(None, ("gres/gpu", limit.gpu_type)))
        if what == "wall":
            text = f"{amount:.0f} s"
        column = {"gpus": "grptres", "jobs": "grpjobs", "wall": "maxwall", "size": "maxtres"}[what]
        owner = f"{limit.of} {' '.join(limit.names)}".replace("member", "user")
        if limit.qos:
            owner = f"qos {limit.qos[0]}"
            column = {"gpus": "maxtres", "jobs": "maxjobs"}[what] + of_each[limit.of]
        elif limit.of == "member" and what == "jobs":
            column = "maxjobs"
        wanted[owner, column, tres] = text
    return wanted


def limit_problems(controller: Controller, wanted: tuple[Limit, ...]) -> list[str]:
    """Return in words the limits that slurmdbd has otherwise than wanted."""
    shown = limits_shown(controller)
    shown = {key: f"{seconds(text, 'wall'):.0f} s" if key[1] == "maxwall" else text for key, text in shown.items()}
    expected = limits_wanted(wanted)
    wrong = [key for key in {**shown, **expected} if shown.get(key) != expected.get(key)]
    return [f"{' '.join(key)}: shown {shown.get(key)}, wanted {expected.get(key)}" for key in wrong]


def checked(count: int, seed: int, port: int, say=print) -> int:
    """Print random settings, give them to a real Slurm, and return how many came back whole; `say` is called with each problem."""
    dice = np.random.default_rng(seed)
    whole = 0
    with tempfile.TemporaryDirectory(prefix="slurm-settings-") as place:
        folder = Path(place)
        (folder / "site").mkdir()
        sample = Sample(folder / "site")
        was = sample.site.slurm
        limits: tuple[Limit, ...] = ()
        with Controller(sample.site, folder / "slurm", port) as controller:
            controller.count()
            controller.restart(with_priorities(sample.text))
            own = Own(sample.text, shown_by(controller))
            for number in range(count):
                wanted = drawn(dice, was)
                after = limits_drawn(dice)
                change = conf_with(sample.text, was, wanted)
                controller.restart(change.text)
                problems = problems_of(controller, change, own)
                if words(change.text) != words(sample.text):
                    problems.append("other words of slurm.conf changed")
                if sample.rule_of(change.text) != wanted:
                    problems.append("read again, the printed file has another rule")
                shown = read_conf(controller.ask("scontrol", "show", "config"), "config", Description()).scheduler
                shown = replace(shown, gres=was.gres)  # the server's own line
                if shown != read_conf(change.text, "slurm.conf", Description()).scheduler:
                    problems.append("read again, what slurmctld prints has another rule")
                said, _ = commands(replace(sample.site.description, limits=limits), after)
                for command in said:
                    controller.ask(*command.split())
                limits = after
                problems += limit_problems(controller, limits)
                for problem in problems:
                    say(f"setting {number}: {problem}")
                whole += not problems
    return whole


def with_priorities(text: str) -> str:
    """A slurm.conf with the plugin of priorities, which `scontrol show config` says nothing of where it is not used."""
    return f"{text}\nPriorityType=priority/multifactor\n"


def main() -> None:
    """Check settings, and say how many came back whole."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=50, help="settings")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=recorder.PORT + 3000, help="the first port")
    given = parser.parse_args()
    if reason := recorder.why_not(counted=True):
        return print(f"skipped: {reason}")
    whole = checked(given.count, given.seed, given.port)
    print(
        f"{whole} of {given.count} settings of seed {given.seed}: a real Slurm gives back every printed value, and no other has changed."
    )


if __name__ == "__main__":
    main()
