"""Clauses about averages: which of two runs is better, by how much, and how sure that is."""

import numpy as np
from clauses import CLOSE, FEWEST, SLACK, Reading, clause
from frames_of_pair import Pair
from written_figures import is_factor, is_money, is_percent, is_share, is_span, plain

POINT = 0.01
NOUNS = {"late": "late jobs", "unfair": "jobs that are treated unfairly", "wait": "waits", "cost": "cost"}
WHAT = {"late": "late", "unfair": "treated unfairly"}


def check_job(reading: Reading, pair: Pair, jobs: str | None, of: str | None):
    """Of which jobs an average is: all that were asked for, or so many of them, for a reason that is right."""
    everything = len(pair.rows) == pair.asked.sum() and not reading.context.of
    reading.hold(everything == (jobs is None), "it is not said that jobs are left out, or it is and none is")
    if jobs is None:
        return
    reading.hold(plain(jobs) == len(pair.rows), f"of {len(pair.rows)} jobs")
    check_of(reading, pair, of)


def check_of(reading: Reading, pair: Pair, of: str):
    """Why jobs are left out."""
    asked = reading.context.of
    reading.hold(of.startswith(asked), f"jobs {asked}")
    reason = of.removeprefix(asked).strip()
    both = " under both" if len(pair.frames) > 1 else ""
    left_out = len(pair.rows) < pair.asked.sum()
    if reading.context.measure == "late":
        reasons = {f"that ended or were late{both}"}
    else:
        reasons = {f"that ended{both}", f"that ended{both} and in the log"}
    if not reading.names:  # nothing is said of the runs: it may be one alone
        reasons = {*reasons, *(each.replace(both, "") for each in reasons)}
    reading.hold(reason in reasons if left_out else not reason, "another reason")
    if reason.endswith(" in the log") or reading.context.measure == "late":
        return
    ended = pair.asked.copy()
    for frame in pair.frames:
        ended &= frame["end"].is_not_null().to_numpy() & ~frame["end"].is_nan().fill_null(False).to_numpy()
    reading.hold(ended.sum() == len(pair.rows), f"{ended.sum()} jobs ended")


def ratio_of(pair: Pair) -> float:
    """Average before over that now."""
    now, before = pair.means
    return before / now if now else float("inf")


def hold_sure(reading: Reading, pair: Pair):
    """A side that is said without a doubt: of a place a fact, otherwise the interval is clear of no change, or the doubt follows."""
    if reading.context.place or "Too short to tell how sure." in reading.text:
        return
    low, high = pair.interval
    center = 0.0 if reading.context.measure in ("late", "unfair") else 1.0
    reading.hold(low > center - SLACK or high < center + SLACK, f"the interval is {low:.4g} to {high:.4g}")


def hold_means(reading: Reading, pair: Pair, *texts: str):
    """Averages as they are written."""
    is_right = {"late": is_share, "unfair": is_share, "cost": is_money}.get(reading.context.measure, is_span)
    for text, mean in zip(texts, pair.means, strict=True):
        reading.hold(is_right(text, mean), f"{text} is {mean:.6g}")


@clause(r"BEGIN the JOB is done (?:COUNT %|([\d,.]+) times) sooner than under NAME: after SPAN instead of SPAN\.")
def _sooner(reading, now, jobs, of, percent, times, before, *texts):
    pair = reading.pair(now, before)
    check_job(reading, pair, jobs, of)
    hold_means(reading, pair, *texts)
    ratio = ratio_of(pair)
    reading.hold(ratio > 1, f"the ratio is {ratio:.4g}")
    right = is_factor(times, ratio) if times else is_percent(percent, 100 * (1 - 1 / ratio))
    reading.hold(right, f"the ratio is {ratio:.4g}")
    hold_sure(reading, pair)


@clause(r"BEGIN the JOB takes (?:COUNT % longer than|([\d,.]+) times as long as) under NAME: SPAN instead of SPAN\.")
def _later(reading, now, jobs, of, percent, times, before, *texts):
    pair = reading.pair(now, before)
    check_job(reading, pair, jobs, of)
    hold_means(reading, pair, *texts)
    ratio = 1 / ratio_of(pair)
    reading.hold(ratio > 1, f"the ratio is {ratio:.4g}")
    right = is_factor(times, ratio) if times else is_percent(percent, 100 * (ratio - 1))
    reading.hold(right, f"the ratio is {ratio:.4g}")
    hold_sure(reading, pair)


@clause(r"BEGIN the JOB is done after SPAN, under NAME after SPAN: within 3 %\.")
def _near(reading, now, jobs, of, first, before, second):
    pair = reading.pair(now, before)
    check_job(reading, pair, jobs, of)
    hold_means(reading, pair, first, second)
    reading.hold(1 / CLOSE < ratio_of(pair) < CLOSE, f"the ratio is {ratio_of(pair):.4g}")


@clause(r"BEGIN the JOB is done after SPAN\.")
def _alone(reading, now, jobs, of, text):
    pair = reading.pair(now)
    check_job(reading, pair, jobs, of)
    hold_means(reading, pair, text)


@clause(r"No difference: under NAME each job ends when it did under NAME\.")
def _same(reading, now, before):
    pair = reading.pair(now, before)
    change = np.abs(pair.sooner)
    reading.hold(bool((change <= pair.rounding).all()), f"an end moves by {change.max():.4g} s")


@clause(r"(No difference|Too close to call) for the JOB: SPAN under NAME, SPAN under NAME\.")
def _no_side(reading, verdict, jobs, of, first, now, second, before):
    pair = reading.pair(now, before)
    check_job(reading, pair, jobs, of)
    hold_means(reading, pair, first, second)
    hold_no_side(reading, pair, verdict)


def hold_no_side(reading: Reading, pair: Pair, verdict: str):
    """Hold "no difference", for which the interval must lie within the zone, and "too close", for which it must say no side."""
    reading.hold(not reading.context.place, "the place is known")
    if reading.context.measure == "cost":
        value = ratio_of(pair)
        reading.hold(verdict == "Too close to call" and 1 / CLOSE < value < CLOSE, f"the ratio is {value:.4g}")
        return
    low, high = pair.interval
    value = ratio_of(pair)
    zone = (1 / CLOSE, CLOSE)
    center = 1.0
    if reading.context.measure in ("late", "unfair"):
        value = pair.means[1] - pair.means[0]
        zone = (-POINT, POINT)
        center = 0.0
    inside = zone[0] - SLACK < low and high < zone[1] + SLACK
    if verdict == "No difference":
        reading.hold(inside, f"the interval is {low:.4g} to {high:.4g}")
        return
    near = zone[0] < value < zone[1]
    clear = (low > center or high < center) and not near
    reading.hold(not inside and not clear and (near or not np.isnan(low)), f"{value:.4g}, from {low:.4g} to {high:.4g}")


@clause(r"NAME is compared with itself\.")
def _itself(reading, name):
    reading.pair(name)


@clause(r"COUNT jobs?( with deadlines)?(?: (.+?))?: too few to compare\.")
def _few(reading, jobs, with_deadlines, of):
    pair = Pair(reading.context, *both_of(reading))
    reading.hold(not reading.context.place, "the place is known")
    reading.hold(plain(jobs) == len(pair.rows) < FEWEST, f"there are {len(pair.rows)}")
    reading.hold(len(pair.rows) > 0, "there is none")
    reading.hold(bool(with_deadlines) == (reading.context.measure == "late"), "of other jobs")
    if of:
        check_of(reading, pair, of)


@clause(r"There are no jobs( with deadlines)?(?: (.+?))?: nothing to compare\.")
def _none(reading, with_deadlines, of):
    pair = Pair(reading.context, *both_of(reading))
    reading.hold(not len(pair.rows), f"there are {len(pair.rows)}")
    reading.hold(bool(with_deadlines) == (reading.context.measure == "late"), "of other jobs")
    if of:
        check_of(reading, pair, of)


def both_of(reading: Reading) -> list:
    """The two runs that a text is about which names none: the first two."""
    return list(reading.context.runs.values())[:2]


@clause(r"On average: ([^ ]+ [^ ]+) under NAME, ([^ ]+ [^ ]+) under NAME\.")
def _on_average(reading, first, now, second, before):
    hold_means(reading, reading.pair(now, before), first, second)


@clause(r"The average is SPAN under both\.")
def _average(reading, text):
    hold_means(reading, reading.known_pair, text, text)


@clause(r"Too short to tell how sure\.")
def _short(reading):
    pair = reading.known_pair
    reading.hold(not reading.context.place, "the place is known")
    if reading.context.measure != "cost":
        reading.hold(bool(np.isnan(pair.interval[0])), f"the interval is {pair.interval}")


@clause(r"Choose another policy, or move its knob\.")
def _choose(reading):
    reading.hold(len(reading.names) == 1, "two are compared")


OF_SHARE = r"SHARE of the (?:COUNT )?(jobs with deadlines|jobs)(?: (.+?))? are (late|treated unfairly)"
OF_AMOUNT = r"(?:the JOB waits SPAN|the jobs cost MONEY)"


def check_share(reading: Reading, pair: Pair, jobs, whose, of, what):
    """Of which jobs a share is, and what they are."""
    measure = reading.context.measure
    reading.hold(WHAT.get(measure) == what, "another measure")
    reading.hold((whose == "jobs") == (what != "late"), "of other jobs")
    check_job(reading, pair, jobs, of)


@clause(rf"BEGIN {OF_SHARE}, under NAME SHARE(?:: ([\d.]+) points (fewer|more))?\.")
def _shares(reading, now, first, jobs, whose, of, what, before, second, points, way):
    pair = reading.pair(now, before)
    check_share(reading, pair, jobs, whose, of, what)
    hold_means(reading, pair, first, second)
    less = pair.means[1] - pair.means[0]
    if points is None:
        reading.hold(abs(less) < POINT + SLACK, f"the difference is {less:.4g}")
        return
    half = 0.05 if "." in points else 0.5
    reading.hold(abs(plain(points) - abs(100 * less)) <= half + SLACK, f"the difference is {less:.4g}")
    reading.hold((less > 0) == (way == "fewer"), f"the difference is {less:.4g}")
    hold_sure(reading, pair)


@clause(rf"BEGIN {OF_SHARE}\.")
def _share_alone(reading, now, first, jobs, whose, of, what):
    pair = reading.pair(now)
    check_share(reading, pair, jobs, whose, of, what)
    hold_means(reading, pair, first)


@clause(rf"(No difference in (.+?)|Too close to call): under NAME {OF_SHARE}, under NAME SHARE\.")
def _no_side_of_shares(reading, verdict, noun, now, first, jobs, whose, of, what, before, second):
    pair = reading.pair(now, before)
    check_share(reading, pair, jobs, whose, of, what)
    hold_means(reading, pair, first, second)
    reading.hold(noun in (None, NOUNS[reading.context.measure]), "another measure")
    hold_no_side(reading, pair, verdict.partition(" in ")[0])


@clause(r"No difference in (.+?): (SPAN|SHARE|MONEY) under both\.")
def _same_in(reading, noun, text, *_):
    pair = Pair(reading.context, *both_of(reading))
    reading.names = list(reading.context.runs)[:2]
    reading.hold(noun == NOUNS[reading.context.measure], "another measure")
    hold_means(reading, pair, text, text)
    if reading.context.measure == "cost":
        low, high = sorted(pair.means)
        reading.hold(high - low <= 1e-9 * high, f"costs are {pair.means}")
        return
    change = np.abs(pair.sooner)
    reading.hold(bool((change <= pair.rounding).all()), f"one changes by {change.max():.4g}")


def check_amount(reading: Reading, pair: Pair, jobs, of, wait):
    """Of which jobs an amount is."""
    reading.hold((wait is not None) == (reading.context.measure == "wait"), "another measure")
    if wait is not None:
        check_job(reading, pair, jobs, of)


@clause(
    rf"BEGIN {OF_AMOUNT}, under NAME (?:SPAN|MONEY)(?:: (?:([\d,.]+) times as much|(\d+) % (less|more)|(less|more)))?\."
)
def _amounts(reading, now, jobs, of, wait, paid, before, waited, costs, times, percent, way, from_none):
    pair = reading.pair(now, before)
    check_amount(reading, pair, jobs, of, wait)
    hold_means(reading, pair, wait or paid, waited or costs)
    mine, theirs = pair.means
    if from_none:
        reading.hold(theirs == 0 and (mine > 0) == (from_none == "more"), f"{mine:.4g} and {theirs:.4g}")
        return
    ratio = mine / theirs if theirs else 1.0
    if times is None and percent is None:
        reading.hold(1 / CLOSE - SLACK < ratio < CLOSE + SLACK, f"the ratio is {ratio:.4g}")
        return
    if times:
        reading.hold(is_factor(times, ratio), f"the ratio is {ratio:.4g}")
    else:
        reading.hold(is_percent(percent, 100 * abs(1 - ratio)), f"the ratio is {ratio:.4g}")
        reading.hold((ratio < 1) == (way == "less"), f"the ratio is {ratio:.4g}")
    if reading.context.measure != "cost":
        hold_sure(reading, pair)


@clause(rf"BEGIN {OF_AMOUNT}\.")
def _amount_alone(reading, now, jobs, of, wait, paid):
    pair = reading.pair(now)
    check_amount(reading, pair, jobs, of, wait)
    hold_means(reading, pair, wait or paid)


@clause(rf"(No difference in (.+?)|Too close to call): under NAME {OF_AMOUNT}, under NAME (?:SPAN|MONEY)\.")
def _no_side_of_amounts(reading, verdict, noun, now, jobs, of, wait, paid, before, waited, costs):
    pair = reading.pair(now, before)
    check_amount(reading, pair, jobs, of, wait)
    hold_means(reading, pair, wait or paid, waited or costs)
    reading.hold(noun in (None, NOUNS[reading.context.measure]), "another measure")
    hold_no_side(reading, pair, verdict.partition(" in ")[0])
