"""What bounds a log's jobs besides its nodes: limits, windows, hours and tiers, found one by one, what explains most first."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from gpuschedlab.papers.clusters.explains.record import Record
from gpuschedlab.papers.clusters.explains.sweep import DAY, HALF_HOUR, NONE, UNLIMITED, WINDOW, Rules, Seen, sweep

CHANCE = 1e-4
SHARE = 0.0001
LEAST = (5, 3)
"""Of a limit: how often held jobs would start as their owner's end by chance; share of all waiting below which nothing is named; jobs
that it holds, of a user or others, and of an array."""
TRIED = 6
STEPS = 8
SCOPES = (
    *(((name,), False, alike) for name in ("user", "account") for alike in ("all", "")),
    (("user", "qos"), False, "qos"),
    *(((name,), False, "") for name in ("qos", "vc")),
    *((("user",), True, alike) for alike in ("all", "")),
    (("user", "qos"), True, "qos"),
    *(((name,), True, "") for name in ("account", "qos", "array")),
)
"""Columns that name the owners of limits, whether jobs are counted, and which owners have one value."""


class Found(NamedTuple):
    """A limit, throttle, window, hours or tier that a log shows: whose, its value, seconds that jobs wait for it, and lines of TOML."""

    kind: str
    of: str
    value: object
    seconds: float
    toml: str

    def __str__(self) -> str:
        hours = f": {self.seconds / 3600:,.1f} h of waiting" if self.seconds else ""
        value = self.value
        if self.kind == "throttle":
            value = throttles(self.value)
        return f"{self.kind} of {self.of}, {value}{hours}"


class Scope(NamedTuple):
    """Owners of limits of one kind: that of each job (n,), the most that each, or those alike, ever held (M,), and which are (M,)."""

    columns: tuple[str, ...]
    jobs: bool
    alike: str
    owner: np.ndarray
    most: np.ndarray
    group: np.ndarray


class State(NamedTuple):
    """Rules so far, what a pass by them saw, and what was found."""

    rules: Rules
    seen: Seen
    found: tuple[Found, ...] = ()

    @property
    def left(self) -> float:
        """Unexplained seconds."""
        return float(self.seen.seconds[:, NONE].sum())


def infer(log: Record) -> State:
    """Find what a log shows beyond its site's rules; without node lists no limits."""
    scopes = [scope_of(log, *s) for s in SCOPES if log.listed and log.codes(*s[0]).max() >= 0]
    rules = with_limits(log.rules, [(s.owner, s.jobs, s.most, False) for s in scopes])
    rows = len(rules.most) - len(scopes)
    state = State(rules, sweep(log.jobs, rules))
    waiting = float((log.jobs.start - log.jobs.submit).sum())
    if len(spans := closed_spans(log, state.seen)):
        state = min(state, windowed(log, state, spans), key=lambda s: s.left)
    state = tiered(log, state)
    for _ in range(STEPS):
        if state.left < SHARE * waiting:
            break
        best = None
        gain = max(SHARE / 2 * waiting, 0.1 * state.left)
        for rules, found, own in (*limits(log, state, scopes, rows, waiting), *hours(log, state, waiting)):
            tried = State(rules, sweep(log.jobs, rules), (*state.found, found))
            below = own is not None and tried.seen.free[own].sum()  # s that its owners' jobs wait free below the value
            gained = state.left - tried.left + 0.02 * state.left * found.of.startswith("each")
            if below <= 0.05 * found.seconds and gained > gain:
                best = tried
                gain = gained
        if best is None:
            break
        state = best
    return tiered(log, state)


def scope_of(log: Record, columns: tuple[str, ...], jobs: bool, alike: str) -> Scope:
    """Owners and the most that they ever held."""
    owner = log.codes(*columns)
    events = log.jobs.kind != 1
    events &= owner[log.jobs.job] >= 0
    job = log.jobs.job[events]
    change = np.where(log.jobs.kind[events] == 0, -1, 1) * (1 if jobs else log.jobs.slots[job])
    order = np.argsort(owner[job], kind="stable")  # at one instant ends stand before starts
    whose = owner[job][order]
    total = np.cumsum(change[order])
    most = np.zeros(owner.max() + 1, np.int64)
    group = np.arange(owner.max() + 1)
    np.maximum.at(most, whose, total - np.append(0, total)[np.searchsorted(whose, group)][whose])
    if alike:
        there = owner >= 0
        group[owner[there]] = 0 if alike == "all" else log.codes(alike)[there]
        top = np.zeros(group.max() + 1, np.int64)
        np.maximum.at(top, group, most)
        most = top[group]
    return Scope(columns, jobs, alike, owner, most, group)


def with_limits(rules: Rules, rows: list[tuple[np.ndarray, bool, np.ndarray, bool]]) -> Rules:
    """Rules with more rows: owner of each job, whether jobs are counted, the most of each owner, and whether the limit holds."""
    if not rows:
        return rules
    owners, counts, most, holds = zip(*rows, strict=True)
    width = max(rules.most.shape[1], *map(len, most))
    wider = [np.pad(m, (0, width - len(m)), constant_values=UNLIMITED) for m in (*rules.most, *most)]
    added = {"counts": np.append(rules.counts, counts), "holds": np.append(rules.holds, holds), "most": np.stack(wider)}
    return rules._replace(owner=np.concatenate([rules.owner, np.stack(owners)]), **added)


def held(log: Record, seen: Seen) -> np.ndarray:
    """Whether a job could have started for some time (n,)."""
    return seen.seconds[:, NONE] > max(60.0, 5 * log.rules.lag)


def follows_own(log: Record, owner: np.ndarray) -> np.ndarray:
    """Whether each job (n,) starts as one of its owner's has just ended."""
    lag = 2 * log.rules.lag + 1
    end = log.jobs.end
    start = log.jobs.start
    span = float(end.max()) + 2 * lag
    ends = np.sort(owner * span + end)
    at = owner * span + start
    return (np.searchsorted(ends, at, side="right") > np.searchsorted(ends, at - lag)) & (owner >= 0)


def limits(log: Record, state: State, scopes: list[Scope], rows: int, waiting: float) -> Iterator[tuple]:
    """Limits at the most ever held, of owners whose jobs wait free and start as one of their own ends: rules, found, and its row."""
    seen = state.seen
    jobs = log.jobs
    lag = log.rules.lag
    candidates = []
    late = held(log, seen) & (seen.last >= jobs.start - lag - 1e-6)
    starts = 1 + 2 * lag * len(jobs.start) / (jobs.end.max() - jobs.submit.min())
    for row, s in enumerate(scopes, rows):
        array = s.columns == ("array",)
        member = seen.above[row, : len(s.most)] > 0
        free, above = (np.bincount(s.group, x[row, : len(member)] * member) for x in (seen.free, seen.above))
        counted = np.flatnonzero(late & (s.owner >= 0) & member[s.owner])
        group = s.group[s.owner[counted]]
        rate = np.bincount(s.owner[s.owner >= 0], minlength=len(member)) / len(late)
        number, follow, rate = (
            np.bincount(group, x, len(free)) for x in (None, follows_own(log, s.owner)[counted], rate[s.owner[counted]])
        )
        chance = binom.sf(follow - 1, number, np.minimum(0.98, rate / np.maximum(number, 1) * starts))
        sound = (free >= (600.0 if array else SHARE / 2 * waiting)) & (above >= 0.2 * free) & (chance < CHANCE)
        sound &= (number >= LEAST[array]) & (follow >= 0.5 * number)
        which = [sound[s.group]] * bool(sound.any()) if array else [s.group == g for g in np.flatnonzero(sound)]
        candidates += [(above[s.group[w]].max() + 1e18 * array, row, w, member & w) for w in which]
    for _, row, alike, member in sorted(candidates, key=lambda c: -c[0])[:TRIED]:
        s = scopes[row - rows]
        seconds = float(seen.above[row, : len(member)][member].sum())
        new = with_limits(state.rules, [(s.owner, s.jobs, np.where(alike, s.most, UNLIMITED), True)])
        own = None if s.columns == ("array",) else (row, np.flatnonzero(member))
        yield new, limit_found(log, s, np.flatnonzero(member), seconds), own


def limit_found(log: Record, s: Scope, member: np.ndarray, seconds: float) -> Found:
    """What is said of a limit of some owners."""
    of = s.columns[0]
    what = "jobs" if s.jobs else "gpus"
    first = [log.trace.row(int(np.argmax(s.owner == m)), named=True) for m in member]
    value = (s.most[member] / (1 if s.jobs else log.unit)).tolist()
    if of == "array":
        values = {job["array"]: v for job, v in zip(first, value, strict=True)}
        others = np.delete(s.most, member)
        if len({*value}) == 1 and others.max(initial=0) <= value[0]:  # no array of the log contradicts one rule
            return Found("throttle", "arrays", values, seconds, lines_of(of, what, value[0]))
        some = (lines_of(of, what, v, names=ranges([a for a in values if values[a] == v])) for v in sorted({*value}))
        return Found("throttle", "arrays", values, seconds, "\n".join(some))
    names = [] if s.alike else [first[0][of]]
    qos = [first[0]["qos"]] if len(s.columns) > 1 else []
    whose = " ".join(["each"] * bool(s.alike) + [of, *names, *(f"of qos {q}" for q in qos)])
    return Found("limit", whose, (value[0], what), seconds, lines_of(of, what, value[0], names=names, qos=qos))


def throttles(values: dict[str, float]) -> str:
    """How many arrays have which throttles, in words.

    Examples
    --------
    >>> throttles({"7": 2.0, "9": 2.0, "12": 4.0})
    '2 jobs at once in 2 arrays, 4 in 1'
    """
    count = Counter(values.values())
    first, *rest = sorted(count)
    words = [f"{first:g} jobs at once in {count[first]} arrays"] + [f"{value:g} in {count[value]}" for value in rest]
    return ", ".join(words)


def ranges(names: list[str]) -> list[str]:
    """Numbers of arrays as one list of ranges, which a site's TOML reads as their names.

    Examples
    --------
    >>> ranges(["12", "7", "8", "9"])
    ['[7-9,12]']
    """
    numbers = sorted(map(int, names))
    spans = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    words = [f"{first}-{last}" if last > first else f"{first}" for first, last in spans]
    return [f"[{','.join(words)}]"] if len(numbers) > 1 else names


def lines_of(of: str, what: str, value: float | str, **some: list[str]) -> str:
    """A limit as lines of TOML."""
    value = f'"{value}"' if isinstance(value, str) else f"{value:g}"
    return "\n".join(
        ["[[limits]]", f'of = "{of}"', *(f"{k} = {words}" for k, words in some.items() if words), f"{what} = {value}"]
    )


def closed_spans(log: Record, seen: Seen) -> np.ndarray:
    """Spells in which nothing ran and jobs waited (W, 2), each from the roundest time that lets run what ran, not what waited."""
    jobs = log.jobs
    lag = log.rules.lag
    zero = log.rules.zero
    spans = []
    ends = jobs.start + jobs.asked
    # Between the last end before a start and that start nothing runs, if as many ended as had started.
    starts = np.unique(jobs.start)
    over = np.sort(jobs.end)
    begun = np.searchsorted(np.sort(jobs.start), starts)
    done = np.searchsorted(over, starts, side="right")
    idle = (begun == done) & (done > 0)
    previous = over[np.maximum(done - 1, 0)]
    waiting = np.searchsorted(np.sort(jobs.eligible), starts, side="right") - begun
    for empty, end in np.stack([previous, starts], 1)[
        idle & (waiting > 2) & (starts - previous > max(600.0, 10 * lag))
    ]:
        before = (jobs.start < empty + 1) & (jobs.start > empty - 14 * DAY) & (ends <= end)
        low = max(empty, float(ends[before].max(initial=0.0)))
        kept = (seen.last > empty - 2 * DAY) & (jobs.start >= end - 1) & (jobs.eligible < empty)
        would = np.maximum(jobs.eligible, empty - 3 * DAY) + jobs.asked
        high = float(would[kept & (would > low)].min(initial=end - lag))
        steps = (np.ceil((low - lag + zero) / unit) * unit - zero for unit in (3600, 1800, 900, 300, 60))
        spans.append((next((x for x in steps if x <= high), empty), np.floor((end + zero) / 60) * 60 - zero))
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans, key=lambda span: span[0] - span[1]):
        # The run-up to a longer window, in which each waiting job would have run into it, is none.
        waits = (jobs.eligible <= begin) & (jobs.start >= end - lag)
        after = [a for a, _ in found if begin < a < end + 3 * DAY]
        if not any((end - 60 + jobs.asked[waits] > a - lag).all() for a in after):
            found.append((float(begin), float(end)))
    return np.array(sorted(found)).reshape(-1, 2)


def windowed(log: Record, state: State, spans: np.ndarray) -> State:
    """The state with windows as well."""
    rules = state.rules._replace(windows=np.concatenate([state.rules.windows, np.pad(spans, ((0, 0), (0, 1)))]))
    seen = sweep(log.jobs, rules)
    lines = "\n".join(f"[[windows]]\nstart = {a:.0f}\nend = {b:.0f}" for a, b in spans)
    found = Found("window", "all nodes", [*map(tuple, spans.tolist())], float(seen.seconds[:, WINDOW].sum()), lines)
    return State(rules, seen, (*state.found, found))


def hours(log: Record, state: State, waiting: float) -> Iterator[tuple]:
    """Half hours of the day in which jobs of a QOS never start though they could: as `limits`."""
    free = state.seen.hours
    half = (((log.jobs.start + log.rules.zero) % DAY) // HALF_HOUR).astype(int)
    starts = np.bincount(log.jobs.qos * 48 + half, minlength=free.size).reshape(free.shape)
    for c in np.flatnonzero(~state.rules.closed.any(axis=1) & (free.sum(axis=1) > SHARE * waiting)):
        some = np.flatnonzero(starts[c])
        lengths = np.diff(np.append(some, some[:1] + 48)) - 1
        first = some[lengths.argmax()] + 1
        length = lengths.max()
        spell = np.arange(first, first + length) % 48
        if 2 <= length < 47 and starts[c].sum() * length / 48 >= 12 and free[c, spell].sum() >= 0.9 * free[c].sum():
            closed = state.rules.closed.copy()
            name = name_of(log, c)
            closed[c, spell] = True
            value = "-".join(f"{x % 48 // 2:02}:{x % 2 * 30:02}" for x in (first + length, first))
            lines = lines_of("qos", "hours", value, names=[name])
            said = Found("hours", f"qos {name}", value, float(free[c].sum()), lines)
            yield state.rules._replace(closed=closed), said, None


def name_of(log: Record, qos: int) -> str:
    """Name of a QOS by its number."""
    return log.trace["qos"][int(np.argmax(log.jobs.qos == qos))] if "qos" in log.trace.columns else ""


def tiered(log: Record, state: State) -> State:
    """The state with the order test, and with tiers of QOS if jobs of some pass equal ones of others, and never the other way round."""
    again = sweep(log.jobs, state.rules._replace(held=held(log, state.seen)))
    passed = again.passed
    order = again.order
    beats = (passed.T >= 20) & (passed <= 0.02 * passed.T) & ~np.eye(len(passed), dtype=bool)
    tiers = beats.sum(axis=1)
    state = state._replace(seen=state.seen._replace(order=order))
    if not tiers.any() or order[0] <= 0.02 * order.sum() or any(f.kind == "tier" for f in state.found):
        return state
    rules = state.rules._replace(place=np.argsort(np.argsort(-tiers[log.jobs.qos], kind="stable")) * 1.0)
    seen = sweep(log.jobs, rules)
    then = sweep(log.jobs, rules._replace(held=held(log, seen))).order
    if then[0] >= 0.2 * order[0] or seen.seconds[:, NONE].sum() > 1.02 * state.left + 3600:
        return state
    values = {name_of(log, c): int(tier) for c, tier in enumerate(tiers)}
    some = {tier: [name for name in values if values[name] == tier] for tier in sorted({*values.values()} - {0})}
    lines = "\n".join(lines_of("qos", "tier", tier, names=names) for tier, names in some.items())
    return State(rules, seen._replace(order=then), (*state.found, Found("tier", "qos", values, 0.0, lines)))
