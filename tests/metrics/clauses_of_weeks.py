"""Clauses about weeks like the one that is shown, which are played again from the seeds that the text names, and about weeks of a log."""

import re

import numpy as np
from clauses import CLOSE, Reading, clause
from frames_of_pair import cut_off, jobs_of, numbers
from scipy.stats import binom
from written_figures import is_share, is_times, plain

DAY = 86_400.0
WEEK = 7 * DAY
FEWEST = 30
NUMBERED = 9
START = r"In (\d+) such (\w+)(, each of which begins empty,)?"
TIMES = r"([\d,.]+)"
MIDDLE = (
    rf"{TIMES} times (sooner|later) under NAME in the middle \w+ \(95 %: {TIMES} to {TIMES}\), from {TIMES} to {TIMES}"
    r"(?:; this \w+ is number (\d+) of (\d+))?"
)


def seeds_in(text: str) -> list[int]:
    """Seeds that a text names, in order: "Seeds: 0, and 10,000 to 10,004."."""
    words = re.search(r"Seeds: (.*)\.$", text)[1].replace(",", "").replace(" and ", " ")
    seeds = []
    for part in re.sub(r"(\d) (?=\d)", r"\1;", words.replace(" to ", "-")).split(";"):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def played(reading: Reading) -> dict[int, list]:
    """Runs of both policies by seed."""
    context = reading.context
    runs = {}
    for seed in seeds_in(reading.text):
        scenario = context.recipe(seed)
        runs[seed] = [scenario.run(context.contenders[name]) for name in reading.names]
    return runs


def mean_of(run) -> float:
    """Mean time to finish of the jobs that count."""
    jobs = run.jobs
    took = (numbers(jobs["end"]) - numbers(jobs["submit"]))[numbers(jobs["submit"]) >= 0]
    return float(np.nanmean(took))


def ratios_of(reading: Reading, weeks: str, empty: str | None) -> np.ndarray:
    """How many times sooner jobs end under the first, by seed; how many weeks there are, and how they begin."""
    runs = played(reading)
    reading.hold(int(weeks) == len(runs), f"{len(runs)} seeds are named")
    reading.hold(bool(empty) == (not getattr(reading.context.recipe, "warm", True)), "weeks begin otherwise")
    return np.array([mean_of(before) / mean_of(now) for now, before in runs.values()])


def interval_of(ratios: np.ndarray) -> tuple[float, float]:
    """Interval of 95 % of the median, by interpolated order statistics."""
    ordered = np.sort(ratios)
    count = len(ordered)
    reached = {depth: 1 - 2 * binom.cdf(depth - 1, count, 0.5) for depth in range(1, count // 2 + 2)}
    depth = max(d for d, level in reached.items() if level >= 0.95)
    part = (reached[depth] - 0.95) / (reached[depth] - reached[depth + 1])
    share = (count - depth) * part / (depth + (count - 2 * depth) * part)
    low = ordered[depth - 1] * (1 - share) + ordered[depth] * share
    return low, ordered[count - depth] * (1 - share) + ordered[count - depth - 1] * share


def hold_middle(reading: Reading, ratios: np.ndarray, parts: tuple) -> tuple[float, float, float]:
    """The middle week, its interval, the range and the number of this week; return the first three as ratios."""
    middle, way, name, low, high, least, most, number, count = parts
    reading.hold(name == reading.names[0], "under the other")
    said = 1 / ratios if way == "later" else ratios
    ends = interval_of(said)
    figures = zip((middle, low, high, least, most), (np.median(said), *ends, said.min(), said.max()), strict=True)
    for words, value in figures:
        reading.hold(is_times(words, value), f"{words} is {value:.6g}")
    reading.hold((number is not None) == (len(ratios) >= NUMBERED), "the number of this week")
    if number is not None:
        larger = (said > said[0] * (1 + 1e-12)).sum()
        reading.hold(int(number) == 1 + larger and int(count) == len(ratios), f"it is number {1 + larger}")
    median = np.median(said)
    if way == "later":
        return 1 / median, 1 / ends[1], 1 / ends[0]
    return median, *ends


@clause(rf"{START} the average job is done {MIDDLE}\.")
def _side(reading, weeks, _, empty, *parts):
    ratios = ratios_of(reading, weeks, empty)
    median, low, high = hold_middle(reading, ratios, parts)
    reading.hold(median >= CLOSE or median <= 1 / CLOSE, f"the middle is {median:.4g}")
    reading.hold((low > 1) if parts[1] == "sooner" else (high < 1), f"from {low:.4g} to {high:.4g}")


@clause(
    rf"{START} (it makes no difference|it makes little difference|neither is surely sooner) for the average job(?: under NAME)?: {MIDDLE}\."
)
def _no_side(reading, weeks, _, empty, verdict, name, *parts):
    ratios = ratios_of(reading, weeks, empty)
    median, low, high = hold_middle(reading, ratios, parts)
    inside = low > 1 / CLOSE and high < CLOSE
    if verdict == "it makes no difference":
        reading.hold(inside, f"from {low:.4g} to {high:.4g}")
    elif verdict == "it makes little difference":
        small = 1 / CLOSE < median < CLOSE
        reading.hold(small and not inside and (low > 1 or high < 1), f"{median:.4g} from {low:.4g} to {high:.4g}")
    else:
        reading.hold(low <= 1 <= high and not inside, f"from {low:.4g} to {high:.4g}")


@clause(rf"{START} the average job is done after the same time under NAME and NAME in each\.")
def _same(reading, weeks, _, empty, *names):
    ratios = ratios_of(reading, weeks, empty)
    reading.hold(bool((np.abs(ratios - 1) < 1e-12).all()), f"ratios from {ratios.min()} to {ratios.max()}")


@clause(rf"{START} the average job is done {TIMES} to {TIMES} times sooner under NAME than under NAME\.")
def _few(reading, weeks, _, empty, least, most, now, before):
    ratios = ratios_of(reading, weeks, empty)
    reading.hold([now, before] == reading.names, "under others")
    reading.hold(int(weeks) < 6, f"{weeks} weeks have an interval")
    for words, value in ((least, ratios.min()), (most, ratios.max())):
        reading.hold(is_times(words, value), f"{words} is {value:.6g}")


GROWS = r"under NAME the queue grows without end: while it is long it keeps SHARE of the GPUs busy, and the jobs bring work for SHARE"


@clause(
    rf"{START} {GROWS}(?:; {GROWS})?\. How much later jobs end depends on how long one looks, so there is no ratio\."
)
def _grows(reading, weeks, _, empty, *parts):
    runs = played(reading)
    reading.hold(int(weeks) == len(runs), f"{len(runs)} seeds are named")
    growing = [parts[:3], parts[3:]] if parts[3] else [parts[:3]]
    for name, busy, work in growing:
        place = reading.names.index(name)
        queues = [queue_of(pair[place]) for pair in runs.values()]
        crowded = sum(queue[0] for queue in queues)
        served = sum(queue[1] for queue in queues) / crowded
        brought = float(np.mean([queue[2] for queue in queues]))
        reading.hold(is_share(busy, served), f"it is {served:.4g}")
        reading.hold(is_share(work, brought), f"it is {brought:.4g}")
        reading.hold(served < brought and crowded >= DAY, f"{served:.4g} of {brought:.4g} in {crowded:.4g} s")
        reading.hold(float(np.median([queue[3] for queue in queues])) > 0, "the queue is no longer than before")


def queue_of(run) -> tuple[float, float, float, float]:
    """Seconds for which a cluster is crowded before the last submission, clusters busy then times seconds, work that comes, growth."""
    jobs = run.jobs
    submit = numbers(jobs["submit"])
    last = float(submit.max())
    line = run.timeline
    gpus = float(sum(int(n) * int(g.split(":")[0]) for n, g in (x.split("x") for x in run.info["cluster"].split(","))))
    enough = max(2 * gpus, 4 * float(jobs["gpus"].max()))
    begins = line["time"].to_list()
    crowded = 0.0
    busy = 0.0
    demand = {last: 0.0, 0.0: 0.0}
    for begin, end, used, demanded in zip(begins, [*begins[1:], max(last, begins[-1])], line["used"], line["demanded"]):
        seconds = max(0.0, min(end, last) - begin)
        if demanded >= enough:
            crowded += seconds
            busy += seconds * used / gpus
        for until in demand:
            demand[until] += max(0.0, min(end, until) - max(begin, until - DAY)) * demanded / (DAY * gpus)
    days = max(1.0, np.ceil(last / DAY))
    work = float(numbers(jobs["attained"])[submit >= 0].sum()) / (gpus * days * DAY)
    return crowded, busy, work, demand[last] - demand[0.0]


@clause(r"Seeds: [\d, andto]+\.")
def _seeds(reading):
    reading.hold(len(seeds_in(reading.text)) > 1, "one week")


@clause(rf"By week of submission: sooner in (\d+) of (\d+) weeks, from {TIMES} to {TIMES} times\.")
def _of_log(reading, won, weeks, least, most):
    frames = [jobs_of(reading.context.runs[name]) for name in reading.names]
    submit = numbers(frames[0]["submit"])
    takes = []
    ended = submit >= 0
    for frame in frames:
        took = numbers(frame["end"]) - submit
        ended &= ~np.isnan(took)
        if not reading.context.censored:
            ended &= ~cut_off(frame)
        takes.append(took)
    week = ((submit - submit.min()) // WEEK).astype(int)
    ratios = []
    for number in range(int(week.max()) + 1):
        rows = ended & (week == number)
        whole = number < week.max() or submit.max() - submit.min() >= (number + 1) * WEEK - DAY
        if rows.sum() >= FEWEST and whole:
            ratios.append(takes[1][rows].sum() / takes[0][rows].sum())
    reading.hold(int(weeks) == len(ratios), f"there are {len(ratios)}")
    if not ratios:
        return
    reading.hold(int(won) == sum(ratio > 1 for ratio in ratios), f"ratios {ratios}")
    for words, value in ((least, min(ratios)), (most, max(ratios))):
        reading.hold(is_times(words, value), f"{plain(words)} is {value:.6g}")
