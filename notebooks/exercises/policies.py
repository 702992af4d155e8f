"""Exercises on traces, policies and placement (notebooks 00 to 04)."""

import numpy as np
import polars as pl

from exercises.verdict import Mistake, call, checked, compare, number, require

HOUR = 3600.0


@checked
def waiting_avoided(answer: float, runs: dict) -> str:
    """00: the share of the average waiting under FIFO that SRTF avoids.

    The check counts waiting jobs, not times: their number, summed over time, is the waiting of all jobs together.

    Parameters
    ----------
    answer : float
        From 0 to 1.
    runs : dict of str to Run
        "Fifo" and "Srtf", of the same trace.
    """
    found, right = number(answer), 1 - _waited(runs["Srtf"]) / _waited(runs["Fifo"])
    jct = {name: run.summary()["jct_mean"] for name, run in runs.items()}
    require(0 <= found <= 1, f"Found {found:g}; expected a share, from 0 to 1.")
    mistakes = {
        "This is the share that is left under SRTF; what it avoids is the rest.": 1 - right,
        "This is the share of the JCT. A JCT is waiting and running: look at queueing_mean alone.": 1
        - jct["Srtf"] / jct["Fifo"],
    }
    compare(found, right, mistakes, "Divide the average queueing under one policy by that under the other.")
    return f"The scheduler makes {right:.1%} of the waiting; only {1 - right:.1%} is the price of a busy cluster."


def _waited(run) -> float:
    """GPU-less time of all jobs (s): the area under the number of waiting jobs."""
    time, waiting = (run.timeline[c].to_numpy() for c in ("time", "waiting"))
    return float((np.diff(time) * waiting[:-1]).sum())


@checked
def dispersion(answer) -> str:
    """01: variance of hourly arrivals over their mean, tried on arrivals with a known answer.

    Parameters
    ----------
    answer : callable
        ``dispersion(submit, hours)``: submission times (n,) in s from 0 on; the number of hours.
    """
    rng = np.random.default_rng(0)
    even, hours = np.arange(48) * 0.5 * HOUR, 24
    require(abs(number(call(answer, even, hours))) < 1e-9, "Two jobs in each hour, evenly: nothing varies, expected 0.")
    submit = np.sort(rng.uniform(0, 1, 60) * HOUR + rng.choice([2, 3, 17], 60) * HOUR)
    counts = [int(((submit >= h * HOUR) & (submit < (h + 1) * HOUR)).sum()) for h in range(hours)]
    mean = sum(counts) / hours
    right = sum(c * c for c in counts) / hours / mean - mean
    busy = np.array([c for c in counts if c])
    found = number(call(answer, submit, hours))
    mistakes = {
        "Hours without arrivals count, too: with them left out, bursts look even. Count with np.bincount and minlength.": (
            busy.var() / busy.mean()
        ),
        "That is the standard deviation over the mean; expected the variance.": np.sqrt(right / mean),
    }
    if abs(found - right * hours / (hours - 1)) > 1e-3 * right:  # the variance of a sample is as good
        compare(found, right, mistakes, f"60 jobs in 3 of 24 hours: found {found:.3g}, expected {right:.3g}.")
    return f"60 jobs in 3 of 24 hours have {right:.3g}; independent arrivals would have about 1."


@checked
def paired_interval(answer) -> str:
    """02: the 95 % interval of a mean difference, from pairs.

    Parameters
    ----------
    answer : callable
        ``interval(a, b)``: (low, high) of the mean of b - a; a and b (n,) are the same metric on the same seeds.
    """
    from scipy import stats

    rng = np.random.default_rng(1)
    for n in (4, 12):
        a = rng.normal(100, 30, n)
        b = a - rng.normal(5, 2, n)
        low, high = _two(call(answer, a, b))
        right = stats.ttest_rel(b, a).confidence_interval(0.95)
        wide = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
        half, normal = (right.high - right.low) / 2, 1.96 * np.std(b - a, ddof=1) / np.sqrt(n)
        require(low <= high, f"Found ({low:.3g}, {high:.3g}); expected the lower end first.")
        middle = (low + high) / 2
        require(
            abs(middle + (right.low + right.high) / 2) > 1e-6, "The sign is turned round: expected b - a, not a - b."
        )
        compare(middle, float(np.mean(b - a)), {}, "The middle of the interval is the mean of b - a.")
        mistakes = {
            "Each column has its own spread here. The seeds are the same: take the differences first.": (
                (wide.high - wide.low) / 2
            ),
            "1.96 is for many seeds. For a few, Student's t with n - 1 degrees of freedom is wider.": normal,
            "np.std divides by n; a sample's deviation needs ddof=1.": half * np.sqrt((n - 1) / n),
            "That is the spread of single differences; that of their mean is sqrt(n) times smaller.": half * np.sqrt(n),
        }
        say = f"For {n} pairs the half width is {(high - low) / 2:.3g}, expected {half:.3g}."
        compare((high - low) / 2, half, mistakes, say, 1e-2)
    return f"Paired, {n} seeds give ± {half:.1f}; the same numbers unpaired ± {(wide.high - wide.low) / 2:.0f}."


def _two(found) -> tuple[float, float]:
    """Two numbers out of an answer."""
    try:
        low, high = found
    except (TypeError, ValueError) as raised:
        raise Mistake(f"Found {found!r}; expected two numbers, (low, high).") from raised
    return number(low), number(high)


@checked
def consolidated(answer) -> str:
    """03: whether a job starts at once under the rule *consolidate*, tried against the simulator.

    Parameters
    ----------
    answer : callable
        ``starts(free, gpus, size)``: whether a job of `gpus` GPUs starts on nodes of `size` GPUs, of which `free` (list) are
        free on each.
    """
    rng, cases = np.random.default_rng(2), [([4, 4], 6, 8), ([8, 8], 12, 8), ([8, 3], 12, 8), ([6, 6], 12, 8)]
    cases += [(rng.integers(0, 9, 3).tolist(), int(rng.integers(1, 21)), 8) for _ in range(12)]
    for free, gpus, size in cases:
        right, found = _starts(free, gpus, size), call(answer, list(free), gpus, size)
        require(isinstance(found, bool | np.bool_), f"Found {found!r}; expected True or False.")
        if found and not right:
            enough = "are free in all, but scattered" if sum(free) >= gpus else "are not there"
            raise Mistake(
                f"{gpus} GPUs, free {free}: it waits. {gpus} GPUs {enough}: whole nodes, and one for the rest."
            )
        require(found == right, f"{gpus} GPUs, free {free}: it starts, on {-(-gpus // size)} of the nodes.")
    return f"As the simulator decides in {len(cases)} cases."


def _starts(free: list[int], gpus: int, size: int) -> bool:
    """Whether the simulator starts a job where so many GPUs are free."""
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.policies import Fifo
    from gpuschedlab.sim import simulate

    rows = [(0.0, held, 1e4) for f in free for held in (size - f, f)]  # the free part of each node is released at 10 s
    rows = [(t, g, 10.0 if i % 2 else d) for i, (t, g, d) in enumerate(rows) if g] + [(20.0, gpus, 1.0)]
    columns = dict(zip(("submit", "gpus", "duration"), map(list, zip(*rows)), strict=True))
    trace = pl.DataFrame({"job_id": [str(i) for i in range(len(rows))]} | columns)
    run = simulate(trace, Cluster.homogeneous(len(free), size), Fifo(placement="consolidate"))
    return run.jobs["start"][-1] == 20.0


@checked
def response_ratio(answer) -> str:
    """04: a policy that starts the waiting job with the highest response ratio, tried on one GPU.

    The response ratio of a job is (time since submission + duration) / duration (Brinch Hansen, 1971).

    Parameters
    ----------
    answer : Ordered or type
        A policy without preemption.
    """
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.sim import Ordered, simulate

    policy = answer() if isinstance(answer, type) else answer
    require(isinstance(policy, Ordered), f"Found {policy!r}; expected a subclass of lab.Ordered.")
    require(not policy.preemptive, "Leave preemptive at False: a job that runs stays.")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        submit, duration = np.sort(rng.uniform(0, 60, 8)), rng.integers(1, 60, 8).astype(float)
        names = list("ABCDEFGH")
        trace = pl.DataFrame({"job_id": names, "submit": submit, "gpus": 1, "duration": duration})
        start = call(lambda t: simulate(t, Cluster.homogeneous(1, 1), policy), trace).jobs["start"].to_numpy()
        now, left = submit[0], set(range(8))
        while left:
            there = [i for i in left if submit[i] <= now] or [min(left, key=lambda i: submit[i])]
            now = max(now, submit[there].min())
            ratio = {i: (now - submit[i] + duration[i]) / duration[i] for i in there}
            best, mine = max(there, key=ratio.get), min(left, key=lambda i: start[i])
            require(
                mine == best,
                f"At {now:.0f} s job {names[best]} ({ratio[best]:.2f}) has the highest ratio; your policy starts {names[mine]}"
                f"{f' ({ratio[mine]:.2f})' if mine in ratio else ''}. The lowest key goes first.",
            )
            now += duration[best]
            left.remove(best)
    return "It took the right job each time, in four traces of eight jobs."
