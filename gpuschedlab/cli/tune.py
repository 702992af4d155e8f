"""`gpuschedlab tune`: a closed loop that tunes a scheduler while it runs, compared with other methods."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl

from gpuschedlab.cli.inputs import DAY, add_scenario, named, one_in, positive, read_scenario, whole
from gpuschedlab.cli.parser import add_json, policies_help
from gpuschedlab.cli.text import as_json, grid
from gpuschedlab.errors import RunError

COMPARED = ("default", "selftune", "autosched")
SAME = (
    "policy", "trace", "days", "jobs", "load", "seed", "history", "cluster", "mtbf", "mttr", "speeds", "restart", "switch",
    "checkpoint", "estimator", "rounds", "threshold", "horizon", "similarity",
    "predictor",
)  # fmt: skip
"""Options that a resumed run must share."""
HOUR = 3600.0
SIMILARITIES = ("manhattan", "euclidean", "cosine", "pearson")
PREDICTORS = ("xgboost", "lightgbm", "forest", "mlp", "logistic")
"""What `GlobalGenerator` and `RangePredictor` take, which are not loaded to show help."""


def add(parser):
    """Add the arguments."""
    parser.set_defaults(command=tune)
    parser.closing = policies_help
    parser.add_argument("--policy", default="tiresias", metavar="POLICY", help="policy to tune (default tiresias)")
    parser.add_argument("--hours", type=positive, metavar="H", help="length of the trace (instead of --days)")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=list(COMPARED),
        metavar="METHOD",
        help="default (never tuned), fixed (best configuration on this very trace), autosched, selftune, optimal, "
        "no-causal, no-aggregator, no-controller, no-future (default: default selftune autosched)",
    )
    add_scenario(parser)
    group = parser.add_argument_group("tuning")
    group.add_argument("--rounds", type=whole, metavar="T", help="rounds of a wide search (default: the method's)")
    group.add_argument("--threshold", type=positive, default=1.03, help="gain above which to switch (default 1.03)")
    group.add_argument("--horizon", type=positive, default=72.0, metavar="H", help="hours of the forecast (default 72)")
    group.add_argument(
        "--similarity",
        choices=SIMILARITIES,
        default="manhattan",
        help="how past hours are compared (default manhattan)",
    )
    group.add_argument(
        "--predictor", choices=PREDICTORS, default="xgboost", help="what predicts durations (default xgboost)"
    )
    group = parser.add_argument_group("answer")
    group.add_argument("--out", default="runs/tune", metavar="FOLDER", help="where decisions are kept (runs/tune)")
    group.add_argument("--resume", action="store_true", help="resume a stopped run with the same options")
    add_json(group)


def tune(args) -> int:
    """Run the loops, print decisions as they are taken and the comparison; Ctrl-C keeps what was decided."""
    from gpuschedlab.autosched import METHODS

    wrong = [m for m in args.methods if m not in (*METHODS, "default", "fixed")]
    if wrong:
        raise RunError(f"--methods {wrong[0]}: expected some of default, fixed, {', '.join(METHODS)}.")
    if args.hours:
        args.days = args.hours * HOUR / DAY
    policies = named([args.policy])
    _, policy, scenario = one_in(policies, read_scenario(args)[0])
    causal = [m for m in args.methods if m in METHODS and METHODS[m].causal]
    if causal and (scenario.history is None or not scenario.history.height):
        raise RunError(
            f"--methods {causal[0]}: found no history to learn from; expected some. Give --history DAYS, which are cut from the "
            "beginning of the trace, or --history FILE; or other --methods, such as default selftune."
        )
    bench = _Loops(args, scenario.replace(history=_before(scenario.history)), policy)
    rows = []
    try:
        for method in dict.fromkeys(args.methods):
            rows.append(bench.run(method))
    except KeyboardInterrupt:
        print(f"gpuschedlab: interrupted; decisions are in {args.out}. Add --resume to continue.", file=sys.stderr)
        return 130
    if args.json:
        print(as_json({"policy": policy.name, "objective": policy.goal, "methods": rows}))
    else:
        print("\n" + _table(rows, policy.goal))
    return 0


class _Loops:
    """The same trace under one method after the other."""

    def __init__(self, args, scenario, policy):
        from gpuschedlab.autosched import Space

        self.args, self.scenario, self.space = args, scenario, Space(scenario.fitted(policy))
        self._samples = None

    def model(self):
        """A causal model as the offline phase leaves it; a fresh one for each method."""
        from gpuschedlab.autosched import gather, train

        if self._samples is None:
            self._say("offline phase: measuring configurations on the history")
            self._samples = gather(self.scenario.past, self.space, horizon=self.args.horizon * HOUR)
        return train(self._samples, self.space, rng=self.scenario.seed)

    def run(self, method: str) -> dict:
        """One row of the comparison."""
        from gpuschedlab.autosched import METHODS, best_fixed, score

        found, policy, decisions = None, self.space.policy, []
        if method == "fixed":
            found = best_fixed(self.scenario, self.space)
            policy = found.best.policy
            self._say(f"fixed: best of {found.measured} configurations measured on the trace itself")
        simulation = self.scenario.simulation(policy)
        if method in METHODS:
            decisions = self._loop(method, simulation)
        worth = score(simulation)
        return {
            "method": method,
            **worth,
            "decisions": len(decisions),
            "switches": sum(d.switched for d in decisions),
            "measured": sum(d.measured for d in decisions),
            "seconds": sum(d.seconds for d in decisions),
            "knobs": simulation.policy.knobs,
        }

    def _loop(self, method: str, simulation) -> list:
        from gpuschedlab.autosched import METHODS, Journal, attach

        args = self.args
        identity = {"method": method, "what files and classes hold": self._content()}
        identity |= {k: str(getattr(args, k)) for k in SAME}
        journal = Journal(Path(args.out) / f"{method}.jsonl", identity, resume=args.resume)
        loop = attach(
            method,
            simulation,
            history=self.scenario.history,
            model=self.model() if METHODS[method].causal else None,
            tuner=METHODS[method].tuner
            if args.rounds is None
            else replace(METHODS[method].tuner, iterations=args.rounds),
            horizon=args.horizon * HOUR,
            similarity=args.similarity,
            predictor=args.predictor,
            threshold=args.threshold,
            seed=self.scenario.seed,
            journal=journal,
        )
        if journal.records:
            loop.resume(journal.records)
            self._say(f"{method}: resumed after {len(journal.records)} decisions")
        for decision in loop.steps(float(self.scenario.trace["submit"].max())):
            self._report(method, decision)
        return loop.decisions

    def _content(self) -> str:
        """Hash of what the options led to: files may change, and so may a policy of one's own."""
        from gpuschedlab.sweep.identity import digest

        return digest([self.scenario, self.space.policy])[:8]

    def _report(self, method: str, decision) -> None:
        knobs = {k: v for k, v in decision.policy.knobs.items() if k in self.space.names}
        then = f"switched to {knobs}" if decision.switched else "kept"
        self._say(f"{method} {decision.now / HOUR:7.1f} h ({decision.cause}): {decision.reason}; {then}")

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr if self.args.json else sys.stdout, flush=True)


def _before(history):
    """The history on the clock of the trace: whole days before it."""
    if history is None or not history.height:
        return None
    days = math.ceil((history["submit"].max() + 1) / DAY)
    return history.with_columns(pl.col("submit") - days * DAY)


def _table(rows: list[dict], objective: str) -> str:
    """The comparison: objectives, decisions, and what they cost."""
    base = rows[0][objective]
    ratio = [(r[objective] / base if objective == "fair" else base / r[objective]) if base else 1.0 for r in rows]
    columns = {
        "method": [r["method"] for r in rows],
        "average JCT (h)": [f"{r['jct'] / HOUR:.3f}" for r in rows],
        "rho <= 1": [f"{r['fair']:.1%}" for r in rows],
        f"times {rows[0]['method']}": [f"{x:.3f}" for x in ratio],
        "decisions": [str(r["decisions"]) for r in rows],
        "switches": [str(r["switches"]) for r in rows],
        "measured": [str(r["measured"]) for r in rows],
        "s taken": [f"{r['seconds']:.1f}" for r in rows],
    }
    return grid([[name, *cells] for name, cells in columns.items()])
