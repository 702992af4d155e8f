"""Jobs with deadlines: who held GPUs in which lease, deadlines missed against best effort delayed, and when a curve gets there."""

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import slo_violation
from gpuschedlab.plots.kinds.charts import Lanes, Lines, Points
from gpuschedlab.plots.kinds.style import COLOURS, HOUR, IDLE, INK, SYMBOLS, as_runs, axis, marks
from gpuschedlab.plots.nodes.job_lanes import held_by
from gpuschedlab.plots.plotter import plotter
from gpuschedlab.traces.deadlines import value_table

LIKELY = 3
"""Families of curves that are drawn, of the largest weights."""

KINDS = ("strict", "soft", "best_effort", "profiling", "planned")
WORDS = ("strict deadline", "soft deadlines", "best effort", "profiling", "planned")


def _board(name: str, lease: float, stretches: tuple, dates: tuple) -> Lanes:
    """Lanes of stretches (jobs, row, kind, gpus, begin, end) and a mark per date (owner, due, value, met), larger where worth more."""
    jobs, *_, ends = stretches
    owner, due, reward, in_time = dates
    over = []
    edge = {"width": 1, "color": INK}
    for met, deadline_words, which in ((True, "deadline met", (3, 2)), (False, "missed", (4, 1))):
        mine = in_time == met
        points = {"y": [jobs[r] for r in owner[mine]], "x": due[mine] / HOUR}
        points |= {"text": [f"{v:.0f}" for v in reward[mine]], "marker_size": 6 + reward[mine] / 12}
        marker = {"symbol": SYMBOLS[which[0]], "color": COLOURS[which[1]], "line": edge}
        hover = f"<b>%{{y}}</b>: worth %{{text}} by %{{x:.2f}} h, {deadline_words}<extra></extra>"
        over.append((points, marks(marker, hover, name=deadline_words)))
    all_jobs = set(owner.tolist())
    jobs_in_time = set(owner[in_time].tolist())
    title = f"Leases under {name}: {len(all_jobs - jobs_in_time)} of {len(all_jobs)} jobs missed every deadline"
    # A lease between two lines of the grid, or several where there would be more than 7.
    last_instant = max(ends.max(initial=0.0), due.max(initial=0.0))
    leases_per_line = max(1, int(np.ceil(last_instant / lease / 7)))
    side = {"tick0": 0, "tickformat": ".2~f", "dtick": lease / HOUR * leases_per_line}
    hover = "<b>%{y}</b>, NAME, on %{customdata:.3~g} GPUs from %{base:.2f} h, for %{x:.2f} h<extra></extra>"
    return Lanes(title, jobs, WORDS, *stretches[1:], hover, {"planned": IDLE}, tuple(over), side)


def lease_board(run, lease: float = 600.0, jobs: int = 30, name: str | None = None) -> Lanes:
    """Return a run as `Lanes`: the stretches and deadlines of its first jobs, a colour per kind of job and a mark per deadline.

    Parameters
    ----------
    run : Run
        Of a trace with `kind`.
    lease : float
        Grid that is drawn, s.
    jobs : int
        The first so many.
    name : str, optional
        Name of the run; its policy's without.

    Raises
    ------
    RunError
        The trace has no `kind`.
    """
    ((default, run),) = as_runs(run).items()
    if "kind" not in run.jobs.columns:
        raise RunError("lease_board: found a run of a trace without kind; expected one with deadlines: with_deadlines.")
    shown_jobs = run.jobs.head(jobs)
    job_stretches = held_by(run, jobs, "profiling")
    job_kind = np.array([KINDS.index(kind) for kind in shown_jobs["kind"].fill_null("strict")], int)
    job_row = job_stretches["job"].to_numpy()
    deadlines, rewards = value_table(shown_jobs)
    deadlines = np.where((job_kind == KINDS.index("best_effort"))[:, None], np.inf, deadlines)
    owner, step = np.nonzero(np.isfinite(deadlines))
    due = shown_jobs["submit"].to_numpy()[owner] + deadlines[owner, step]
    end = shown_jobs["end"].fill_null(np.inf).to_numpy()[owner]
    kind = np.where(job_stretches["profiling"].to_numpy(), KINDS.index("profiling"), job_kind[job_row])
    times = (job_stretches[column].to_numpy() for column in ("gpus", "start", "end"))
    dates = (owner, due, rewards[owner, step], end <= due * (1 + 1e-9))
    return _board(name or default, lease, (tuple(shown_jobs["job_id"]), job_row, kind, *times), dates)


def planned_leases(jobs, capacity: float, lease: float = 600.0, names: tuple[str, ...] | None = None) -> Lanes:
    """Return the plan of jobs that are all there now as `Lanes`: who has the first lease, and which are planned for the others.

    Parameters
    ----------
    jobs : gpuschedlab.papers.deadlines.leases.program.LeaseJobs
    capacity : float
        GPUs.
    lease : float
        s.
    names : tuple of str, optional
        Of the jobs.

    Examples
    --------
    >>> from gpuschedlab.papers.deadlines.leases.program import LeaseJobs
    >>> jobs = LeaseJobs.of(gpus=[8, 8], need=[1, 1], due=[[1, 2], [2, 0]], value=[[100, 80], [100, 0]])
    >>> board = planned_leases(jobs, 8.0)
    >>> [(j, KINDS[k]) for j, k in zip(board.row.tolist(), board.group.tolist())], board.over[1][0]["y"]
    ([(0, 'soft'), (1, 'planned')], [])
    """
    from gpuschedlab.papers.deadlines.leases.plan import plan_leases, timetable

    plan = plan_leases(jobs, capacity)
    job_row, lease_number = np.nonzero(timetable(jobs, plan.step, capacity))
    owner, step = np.nonzero(jobs.due > 0)
    soft = (jobs.due > 0).sum(axis=1) > 1
    plan_words = f"a plan worth {plan.objective:.0f}, at most {plan.bound:.0f}"
    kind = np.where(lease_number == 0, soft[job_row].astype(int), KINDS.index("planned"))
    labels = tuple(names or map(str, range(len(jobs.gpus))))
    lease_rows = (labels, job_row, kind, jobs.gpus[job_row], lease_number * lease, (lease_number + 1) * lease)
    meets_deadline = (plan.step[owner] >= 0) & (plan.step[owner] <= step)
    return _board(
        plan_words, lease, lease_rows, (owner, jobs.due[owner, step] * lease, jobs.value[owner, step], meets_deadline)
    )


def trade_off(runs, chosen: str | None = None) -> Points:
    """Return `Points`: weighted violations and completion times of best effort, of runs by name; the `chosen` one is marked."""
    policy_points = {}
    for run_name, run in as_runs(runs).items():
        wait = run.jobs.filter(kind="best_effort")["jct"].mean()
        point = {"x": np.array([wait], float) / HOUR, "y": np.array([100 * slo_violation(run)])}
        policy_points[run_name] = point | {"marker_size": 18 if run_name == chosen else 11}
    titles = ("average completion time of best effort (h)", "weighted violations (%)")
    sides = (axis(title, rangemode="tozero") for title in titles)
    hover = "<b>NAME</b>: %{y:.2f} % of the value lost, best effort ends after %{x:.2f} h<extra></extra>"
    return Points("Deadlines against best effort", *sides, None, policy_points, hover)


def arrival(metric: np.ndarray, seen: int, target: float, *, most: int | None = None) -> Lines:
    """Extrapolate a learning curve from its beginning, and return the `Lines`: by the likeliest families, and by the mixture of all.

    They also show when it gets to the target.

    Parameters
    ----------
    metric : (n,) float array
        In [0, 1], by epoch, rising.
    seen : int
        Epochs that are known.
    target : float
        Level at which training stops.
    most : int, optional
        Epochs after which it stops anyhow; default: n.

    References
    ----------
    Domhan et al., IJCAI 2015; Gao, PhD thesis, NTU 2025, section 5.3.2.

    Examples
    --------
    >>> curve = arrival(0.9 - 0.6 / np.arange(1.0, 61.0), 20, 0.88)
    >>> curve.title
    'After 20 epochs: 0.88 expected at 31; in truth at 30'
    """
    from gpuschedlab.papers.deadlines.estimators.families import FAMILIES, fit_curve
    from gpuschedlab.papers.deadlines.estimators.learning_curve import measurements_to

    metric, most = np.asarray(metric, float), most or len(metric)
    x = np.arange(1.0, len(metric) + 1)
    known_metric = metric[:seen]
    ensemble = fit_curve(x[:seen], known_metric, horizon=most)
    expected = measurements_to(tuple(known_metric.tolist()), float(target), float(most))
    at_target = np.flatnonzero(metric >= target)
    truth = f"in truth at {at_target[0] + 1}" if len(at_target) else f"in truth not by {len(metric)}"
    metric_lines = {"seen": np.where(x <= seen, metric, np.nan), "truth": np.where(x >= seen, metric, np.nan)}
    if ensemble.members:
        ahead = x >= seen
        metric_lines["all families"] = np.where(ahead, ensemble.mean(x), np.nan)
        metric_lines["chance that it is there"] = np.where(ahead, ensemble.above(target, x), np.nan)
        for i, m in enumerate(sorted(ensemble.members, key=lambda m: -m.weight)[:LIKELY]):
            metric_lines[f"family {i + 1} by weight"] = np.where(ahead, FAMILIES[m.name][0](x, *m.parameters), np.nan)
    title = f"After {seen} epochs: {target:g} expected at {expected:.0f}; {truth}"
    return Lines(title, "epoch", "metric, probability", x, metric_lines)


plot_lease_board = plotter(lease_board)
plot_planned_leases = plotter(planned_leases)
plot_trade_off = plotter(trade_off)
plot_arrival = plotter(arrival)
