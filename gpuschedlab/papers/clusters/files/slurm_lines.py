"""The way back: lines of slurm.conf for a changed rule."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuschedlab.errors import TraceError
from gpuschedlab.papers.clusters.files.description import INF, Description
from gpuschedlab.papers.clusters.files.slurm_files import PAIR, PLAN, TYPES, read_conf
from gpuschedlab.papers.clusters.schedulers.slurm import MOST, Slurm

WEIGHTS = {
    "weight_age": "PriorityWeightAge",
    "weight_fairshare": "PriorityWeightFairshare",
    "weight_size": "PriorityWeightJobSize",
    "weight_partition": "PriorityWeightPartition",
    "weight_qos": "PriorityWeightQOS",
}
SPANS = {"max_age": "PriorityMaxAge", "half_life": "PriorityDecayHalfLife", "recalculated": "PriorityCalcPeriod"}
FLAGS = {"relative": "SMALL_RELATIVE_TO_TIME", "fairshare": "NO_FAIR_TREE"}
OF_PARTITIONS = {"tiers": "PriorityTier", "partitions": "PriorityJobFactor"}
UNSAID = ("own", "gres", "epoch", "placement", "tree")
"""Fields of the rule for which slurm.conf has no key."""
POSITIVE = ("damping", "depth", "tested", "every", "resolution")
"""Knobs that slurm.conf has from 1 on."""
HIGHEST = {
    "damping": 65_535,
    "depth": 100_000,
    "tested": 1_000_000,
    "every": 10_800,
    "resolution": 3_600,
    "min_age": 2_592_000,
    "window": 2_592_000,
}
"""Highest values that slurmctld 22.05 takes; beyond those of the plan it goes on with its own, though it prints the value."""
HIGHEST_OF_PARTITION = 65_535
LONGEST = 2_147_483_580
"""Longest span (s) that slurmctld reads; longer ones become others, or stop it."""
MULTIFACTOR = "priority/multifactor"


@dataclass(frozen=True)
class ConfChange:
    """A slurm.conf with lines replaced: its text, and pairs of old and new lines; an old one is "" where a line is new."""

    text: str
    lines: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        conf_rows = []
        for old_line, new_line in self.lines:
            if old_line:
                conf_rows.append(f"- {old_line}")
            conf_rows.append(f"+ {new_line}")
        return "\n".join(conf_rows)


def dhms(seconds: float) -> str:
    """Return a span (s) as a text, written as slurm.conf has it: days-hours:minutes:seconds.

    Examples
    --------
    >>> dhms(93_780.0)
    '1-02:03:00'
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days}-{hours:02}:{minutes:02}:{seconds:02}"


def unsayable(was: Slurm, wanted: Slurm) -> list[str]:
    """Return a list of the values of a rule that slurm.conf cannot say, in words.

    It is empty if it can say all that differs from the site's rule.
    """
    problems = [
        f"{knob_name}: it has no key" for knob_name in UNSAID if getattr(was, knob_name) != getattr(wanted, knob_name)
    ]
    for plan_name in ("keep", "whole"):
        if getattr(was.plan, plan_name) != getattr(wanted.plan, plan_name):
            problems.append(f"plan.{plan_name}: it has no key")
    if wanted.backfill != was.backfill and wanted.backfill not in TYPES.values():
        problems.append(f"backfill={wanted.backfill}: it has plan and none")
    knob_values = {
        knob_name: (getattr(was, knob_name), getattr(wanted, knob_name)) for knob_name in (*WEIGHTS, *SPANS, "damping")
    }
    if wanted.backfill == "plan":
        before = _plan_of(was)
        knob_values |= {
            knob_name: (before[knob_name], knob_value) for knob_name, knob_value in _plan_of(wanted).items()
        }
    for knob_name, (old_value, new_value) in knob_values.items():
        if old_value != new_value and not _sayable(knob_name, new_value):
            problems.append(
                f"{knob_name}={new_value:g}: it has {_expected(knob_name)}, the nearest is {_nearest(knob_name, new_value):g}"
            )
    for pair_name, conf_key in OF_PARTITIONS.items():
        before = dict(getattr(was, pair_name))
        for partition, knob_value in getattr(wanted, pair_name):
            if knob_value != before.get(partition) and not (knob_value % 1 == 0 and knob_value <= HIGHEST_OF_PARTITION):
                problems.append(
                    f"{conf_key} of {partition}={knob_value:g}: it has whole numbers to {HIGHEST_OF_PARTITION}"
                )
    return problems


def _sayable(name: str, value: float) -> bool:
    """Whether slurm.conf can say a value of a knob."""
    if value == INF:
        return name == "depth"
    if name in SPANS or name == "window":
        return value >= 60 and value % 60 == 0 and value <= _highest(name)
    return value % 1 == 0 and _least(name) <= value <= _highest(name)


def _least(name: str) -> int:
    """Return the least whole number that slurm.conf can say for a knob, if that is no span."""
    if name in POSITIVE:
        return 1
    return 0


def _highest(name: str) -> int:
    """Return the highest whole number that slurm.conf can say for a knob."""
    if name in SPANS:
        return LONGEST
    return HIGHEST.get(name, MOST)


def _expected(name: str) -> str:
    """Values of a knob that slurm.conf can say, in words."""
    if name in SPANS or name == "window":
        return f"whole minutes, in seconds to {_highest(name)}"
    return f"whole numbers to {_highest(name)}"


def conf_with(text: str, was: Slurm, wanted: Slurm) -> ConfChange:
    """Return the `ConfChange` of a slurm.conf to say another rule than the site's, of which it is the file; other words stay.

    Raises
    ------
    TraceError
        The file cannot say a value: `unsayable` lists such.
    """
    if wrong := unsayable(was, wanted):
        raise TraceError(
            f"slurm.conf: found values that it cannot say: {'; '.join(wrong)}. Round them, or leave them as they are."
        )
    conf = _Conf(text)
    for conf_key, conf_value in _changed_keys(was, wanted):
        conf.put(conf_key, conf_value)
    if (
        conf.lines
        and any(getattr(wanted, weight_name) for weight_name in WEIGHTS)
        and conf.value("PriorityType") != MULTIFACTOR
    ):
        conf.put("PriorityType", MULTIFACTOR)
    if wanted.backfill == "plan":
        conf.put_words("SchedulerParameters", *_changed_plan(was, wanted, text))
    conf.put_words("PriorityFlags", *_changed_flags(was, wanted))
    for knob_name, conf_key in OF_PARTITIONS.items():
        before = dict(getattr(was, knob_name))
        for partition, conf_value in getattr(wanted, knob_name):
            if before.get(partition) != conf_value:
                conf.put_of_partition(partition, conf_key, f"{conf_value:.0f}")
    return ConfChange("".join(conf.rows), tuple(conf.lines.values()))


def _changed_keys(was: Slurm, wanted: Slurm) -> Iterator[tuple[str, str]]:
    """Yield (key, value) for keys of their own whose values differ: the key and the new value as texts."""
    for knob_name, conf_key in WEIGHTS.items():
        if getattr(was, knob_name) != getattr(wanted, knob_name):
            yield conf_key, f"{getattr(wanted, knob_name):.0f}"
    for knob_name, conf_key in SPANS.items():
        conf_value = getattr(wanted, knob_name)
        if getattr(was, knob_name) != conf_value:
            yield conf_key, dhms(conf_value)
    if was.damping != wanted.damping:
        yield "FairShareDampeningFactor", f"{wanted.damping:.0f}"
    if was.small != wanted.small:
        small = "NO"
        if wanted.small:
            small = "YES"
        yield "PriorityFavorSmall", small
    if was.backfill != wanted.backfill:
        types = [knob_name for knob_name, backfill in TYPES.items() if backfill == wanted.backfill]
        yield "SchedulerType", types[0]


def _changed_plan(was: Slurm, wanted: Slurm, text: str) -> tuple[dict[str, str], set[str]]:
    """Return a dict of words of SchedulerParameters to be set, by key, and a set of keys to be taken out, as a tuple."""
    new_words = {}
    removed_keys = set()
    before = _plan_of(was)
    if was.backfill != "plan":  # a rule without backfill has forgotten what the file says of it
        scheduler = read_conf(text, "slurm.conf", Description()).scheduler
        before = {plan_field: getattr(scheduler, plan_field) for plan_field in before}
    after = _plan_of(wanted)
    for conf_key, (plan_field, unit) in PLAN.items():
        old_value = before[plan_field]
        plan_value = after[plan_field]
        if old_value != plan_value and plan_value == INF:
            removed_keys.add(conf_key)
        elif old_value != plan_value:
            new_words[conf_key] = f"{conf_key}={plan_value / unit:.0f}"
    return new_words, removed_keys


def _plan_of(rule: Slurm) -> dict[str, float]:
    """Return a dict of the values of a rule's plan, by the fields of a `Scheduler`."""
    plan_values = {
        plan_field: getattr(rule.plan, plan_field) for plan_field, _ in PLAN.values() if plan_field != "depth"
    }
    return plan_values | {"depth": rule.depth}


def _changed_flags(was: Slurm, wanted: Slurm) -> tuple[dict[str, str], set[str]]:
    """Return a dict of flags to be set, and a set of flags to be taken out, as a tuple."""
    new_flags = {}
    removed_flags = set()
    on = {"relative": wanted.relative, "fairshare": wanted.fairshare == "classic"}
    for knob_name, flag in FLAGS.items():
        if getattr(was, knob_name) == getattr(wanted, knob_name):
            continue
        if on[knob_name]:
            new_flags[flag.lower()] = flag
        else:
            removed_flags.add(flag.lower())
    if "no_fair_tree" in new_flags:
        removed_flags.add("fair_tree")
    return new_flags, removed_flags


class _Conf:
    """A slurm.conf whose values are replaced in place: its lines as they stand, and what was changed."""

    def __init__(self, text: str):
        self.rows = text.splitlines(keepends=True)
        self.lines: dict[int, tuple[str, str]] = {}

    def _pairs(self) -> Iterator[tuple[int, str, re.Match]]:
        """Yield tuples: row, first key of its line, match, of each KEY=VALUE outside comments; a line may go on in the next."""
        first_key = ""
        goes_on = False
        for conf_row, conf_text in enumerate(self.rows):
            body = re.sub(r"(?<!\\)#.*", "", conf_text).rstrip()
            more = body.endswith("\\")
            body = body.removesuffix("\\")
            end = 0
            if not goes_on:
                first_key = ""
            while match := PAIR.match(body, end):
                first_key = first_key or match[1].lower()
                yield conf_row, first_key, match
                end = match.end()
            goes_on = more

    def _find(self, key: str) -> tuple[int, re.Match | None]:
        """Return a tuple: row and match of a key's last pair on a line that names no node or partition; or (-1, None)."""
        last_row = -1
        last = None
        for conf_row, first_key, match in self._pairs():
            if match[1].lower() == key.lower() and first_key not in ("nodename", "partitionname"):
                last_row = conf_row
                last = match
        return last_row, last

    def value(self, key: str) -> str:
        """Return the value of a key; "" without one."""
        _, match = self._find(key)
        if match is None:
            return ""
        return match[2].strip('"').lower()

    def put(self, key: str, value: str):
        """Give a key a value, where it stands, or else in a new line at the end."""
        conf_row, match = self._find(key)
        if match:
            self._exchange(conf_row, match.span(2), value)
        else:
            self._append(f"{key}={value}")

    def _exchange(self, row: int, span: tuple[int, int], value: str):
        """Put a value in the place of a part of a row."""
        old_line = self.rows[row]
        self.rows[row] = old_line[: span[0]] + value + old_line[span[1] :]
        self.lines[row] = (self.lines.get(row, (old_line.rstrip("\n"),))[0], self.rows[row].rstrip("\n"))

    def _append(self, line: str):
        """Add a line."""
        if self.rows and not self.rows[-1].endswith("\n"):
            self.rows[-1] += "\n"
        self.lines[len(self.rows)] = ("", line)
        self.rows.append(f"{line}\n")

    def put_words(self, key: str, new: Mapping[str, str], out: set[str]):
        """Set and take out words of a list; the others stay, in their order."""
        if not new and not out:
            return
        _, match = self._find(key)
        listed = ""
        if match:
            listed = match[2].strip('"')
        unplaced = dict(new)
        conf_words = []
        for conf_word in listed.split(","):
            conf_word = conf_word.strip()
            word_name = conf_word.partition("=")[0].lower()
            if conf_word and word_name not in out:
                conf_words.append(unplaced.pop(word_name, conf_word))
        conf_words += unplaced.values()
        if conf_words or match:
            self.put(key, ",".join(conf_words))

    def put_of_partition(self, partition: str, key: str, value: str):
        """Give a key of a partition's line a value."""
        of_partition = False
        last = None
        for conf_row, first_key, match in self._pairs():
            if first_key != "partitionname":
                continue
            if match[1].lower() == "partitionname":
                of_partition = match[2] == partition
            if of_partition:
                last = (conf_row, match)
                if match[1].lower() == key.lower():
                    self._exchange(conf_row, match.span(2), value)
                    return
        if last is None:
            raise TraceError(
                f"slurm.conf: found no line of the partition {partition!r}; expected PartitionName={partition}."
            )
        end = last[1].end()
        self._exchange(last[0], (end, end), f" {key}={value}")


def _nearest(name: str, sayable_value: float) -> float:
    """Nearest value of a knob that slurm.conf can say."""
    sayable_value = min(sayable_value, _highest(name))
    if name in SPANS or name == "window":
        minutes = min(round(sayable_value / 60), _highest(name) // 60)
        return 60.0 * max(1, minutes)
    return float(max(_least(name), round(sayable_value)))
