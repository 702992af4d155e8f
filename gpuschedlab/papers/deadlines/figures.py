"""Jobs with deadlines: who held GPUs in which lease, deadlines missed against best effort delayed, and when a curve gets there."""

from typing import NamedTuple

import numpy as np

from gpuschedlab.errors import RunError
from gpuschedlab.metrics import slo_violation
from gpuschedlab.plots.kinds import style
from gpuschedlab.plots.kinds.charts import Lines
from gpuschedlab.plots.kinds.style import Drawing, as_runs, axis, bar, bars, marks, time_axis
from gpuschedlab.plots.nodes.job_lanes import held_by, job_axis, stretches
from gpuschedlab.plots.plotter import plotter
from gpuschedlab.traces.deadlines import value_table

LIKELY = 3
"""Families of curves that are drawn, of the largest weights."""

KINDS = ("strict", "soft", "best_effort", "profiling", "planned")
WORDS = ("strict deadline", "soft deadlines", "best effort", "profiling", "planned")


class LeaseBoard(NamedTuple):
    """Stretches of jobs by kind, one row per job, with their deadlines.

    name : name of the run; lease : s; jobs : (J,) names in order of submission; row, kind : (k,) job and index into
    `KINDS` of each stretch; gpus : (k,) GPUs; begin, end : (k,) s; owner : (d,) job of each deadline; due, value : (d,)
    instant, s, and what the job is worth by then; met : (d,) whether it ended by then.
    """

    name: str
    lease: float
    jobs: tuple[str, ...]
    row: np.ndarray
    kind: np.ndarray
    gpus: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    owner: np.ndarray
    due: np.ndarray
    value: np.ndarray
    met: np.ndarray

    def draw(self) -> Drawing:
        """A colour per kind, a mark per deadline, the larger the more it is worth, the grid of leases behind."""
        traces = []
        for i, words in enumerate(WORDS):
            mine = self.kind == i
            hover = f"<b>%{{y}}</b>, {words}, on %{{customdata:.3~g}} GPUs from %{{base:.2f}} h, for %{{x:.2f}} h"
            marker = bar(i, style.IDLE if words == "planned" else None)
            traces.append((stretches(self, mine), bars(marker, f"{hover}<extra></extra>", name=words)))
        edge = {"width": 1, "color": style.INK}
        for met, words, which in ((True, "deadline met", (3, 2)), (False, "missed", (4, 1))):
            mine = self.met == met
            dates = {"y": [self.jobs[r] for r in self.owner[mine]], "x": self.due[mine] / style.HOUR}
            dates |= {"text": [f"{v:.0f}" for v in self.value[mine]], "marker_size": 6 + self.value[mine] / 12}
            marker = {"symbol": style.SYMBOLS[which[0]], "color": style.COLOURS[which[1]], "line": edge}
            hover = f"<b>%{{y}}</b>: worth %{{text}} by %{{x:.2f}} h, {words}<extra></extra>"
            traces.append((dates, marks(marker, hover, name=words)))
        all_jobs, in_time = set(self.owner.tolist()), set(self.owner[self.met].tolist())
        missed = f"{len(all_jobs - in_time)} of {len(all_jobs)} jobs missed every deadline"
        live = {"title_text": f"Leases under {self.name}: {missed}", "yaxis_categoryarray": list(self.jobs)}
        # A lease between two lines of the grid, or several where there would be more than 12.
        last = max(self.end.max(initial=0.0), self.due.max(initial=0.0))
        live["xaxis_dtick"] = self.lease / style.HOUR * max(1, int(np.ceil(last / self.lease / 12)))
        return Drawing.of(traces, live, barmode="overlay", x=time_axis(tick0=0, tickformat=".2~f"), y=job_axis())


class TradeOff(NamedTuple):
    """What runs lose of deadlines, and what best effort waits.

    names : (n,) of the runs; violation : (n,) weighted, %; best_effort : (n,) mean completion time, s; chosen : index of
    the one that is marked, -1: none.
    """

    names: tuple[str, ...]
    violation: np.ndarray
    best_effort: np.ndarray
    chosen: int = -1

    def draw(self) -> Drawing:
        """A mark per run; the nearer to the lower left, the better."""
        traces = []
        for i, name in enumerate(self.names):
            point = {"x": self.best_effort[i : i + 1] / style.HOUR, "y": self.violation[i : i + 1], "name": name}
            point["marker_size"] = 18 if i == self.chosen else 11
            look = {"color": style.COLOURS[i % len(style.COLOURS)], "symbol": style.SYMBOLS[i % len(style.SYMBOLS)]}
            hover = f"<b>{name}</b>: %{{y:.2f}} % of the value lost, best effort ends after %{{x:.2f}} h<extra></extra>"
            traces.append((point, marks(look, hover)))
        titles = ("average completion time of best effort (h)", "weighted violations (%)")
        x, y = (axis(title, rangemode="tozero") for title in titles)
        return Drawing.of(traces, "Deadlines against best effort", showlegend=True, x=x, y=y)


def lease_board(run, lease: float = 600.0, jobs: int = 30, name: str | None = None) -> LeaseBoard:
    """Reduce a run to the stretches and deadlines of its first jobs.

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
    table = run.jobs.head(jobs)
    held = held_by(run, jobs, "profiling")
    own = np.array([KINDS.index(kind) for kind in table["kind"].fill_null("strict")], int)
    row = held["job"].to_numpy()
    deadlines, rewards = value_table(table)
    deadlines = np.where((own == KINDS.index("best_effort"))[:, None], np.inf, deadlines)
    owner, step = np.nonzero(np.isfinite(deadlines))
    due = table["submit"].to_numpy()[owner] + deadlines[owner, step]
    end = table["end"].fill_null(np.inf).to_numpy()[owner]
    return LeaseBoard(
        *(name or default, float(lease), tuple(table["job_id"]), row),
        np.where(held["profiling"].to_numpy(), KINDS.index("profiling"), own[row]),
        *(held[column].to_numpy() for column in ("gpus", "start", "end")),
        *(owner, due, rewards[owner, step], end <= due * (1 + 1e-9)),
    )


def planned_leases(jobs, capacity: float, lease: float = 600.0, names: tuple[str, ...] | None = None) -> LeaseBoard:
    """Plan of jobs that are all there now: who has the first lease, and which leases are planned for the others.

    Parameters
    ----------
    jobs : gpuschedlab.papers.deadlines.program.LeaseJobs
    capacity : float
        GPUs.
    lease : float
        s.
    names : tuple of str, optional
        Of the jobs.

    Examples
    --------
    >>> from gpuschedlab.papers.deadlines.program import LeaseJobs
    >>> jobs = LeaseJobs.of(gpus=[8, 8], need=[1, 1], due=[[1, 2], [2, 0]], value=[[100, 80], [100, 0]])
    >>> board = planned_leases(jobs, 8.0)
    >>> [(j, KINDS[k]) for j, k in zip(board.row.tolist(), board.kind.tolist())], board.met.tolist()
    ([(0, 'soft'), (1, 'planned')], [True, True, True])
    """
    from gpuschedlab.papers.deadlines.plan import plan_leases, timetable

    plan = plan_leases(jobs, capacity)
    row, at = np.nonzero(timetable(jobs, plan.step, capacity))
    owner, step = np.nonzero(jobs.due > 0)
    soft = (jobs.due > 0).sum(axis=1) > 1
    return LeaseBoard(
        f"a plan worth {plan.objective:.0f}, at most {plan.bound:.0f}",
        float(lease),
        tuple(names or (f"{i}" for i in range(len(jobs.gpus)))),
        row,
        np.where(at == 0, soft[row].astype(int), KINDS.index("planned")),
        jobs.gpus[row],
        at * lease,
        (at + 1) * lease,
        owner,
        jobs.due[owner, step] * lease,
        jobs.value[owner, step],
        (plan.step[owner] >= 0) & (plan.step[owner] <= step),
    )


def trade_off(runs, chosen: str | None = None) -> TradeOff:
    """Weighted violations and completion times of best effort, of runs by name; the `chosen` one is marked."""
    runs = as_runs(runs)
    waits = [run.jobs.filter(kind="best_effort")["jct"].mean() for run in runs.values()]
    lost = np.array([100 * slo_violation(run) for run in runs.values()])
    names = tuple(runs)
    return TradeOff(names, lost, np.array(waits, float), names.index(chosen) if chosen else -1)


def arrival(metric: np.ndarray, seen: int, target: float, *, most: int | None = None) -> Lines:
    """Extrapolate a learning curve from what has been seen of it: by the likeliest families, by the mixture of all, and when it gets there.

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
    from gpuschedlab.estimators.ensemble import FAMILIES, fit_curve
    from gpuschedlab.estimators.learning_curve import measurements_to

    metric, most = np.asarray(metric, float), most or len(metric)
    x = np.arange(1.0, len(metric) + 1)
    known = metric[:seen]
    ensemble = fit_curve(x[:seen], known, horizon=most)
    expected = measurements_to(tuple(known.tolist()), float(target), float(most))
    there = np.flatnonzero(metric >= target)
    truth = f"in truth at {there[0] + 1}" if len(there) else f"in truth not by {len(metric)}"
    values = {"seen": np.where(x <= seen, metric, np.nan), "truth": np.where(x >= seen, metric, np.nan)}
    if ensemble.members:
        ahead = x >= seen
        values["all families"] = np.where(ahead, ensemble.mean(x), np.nan)
        values["chance that it is there"] = np.where(ahead, ensemble.above(target, x), np.nan)
        for i, m in enumerate(sorted(ensemble.members, key=lambda m: -m.weight)[:LIKELY]):
            values[f"family {i + 1} by weight"] = np.where(ahead, FAMILIES[m.name][0](x, *m.parameters), np.nan)
    title = f"After {seen} epochs: {target:g} expected at {expected:.0f}; {truth}"
    return Lines(title, "epoch", "metric, probability", x, values)


plot_lease_board = plotter(lease_board)
plot_planned_leases = plotter(planned_leases)
plot_trade_off = plotter(trade_off)
plot_arrival = plotter(arrival)
