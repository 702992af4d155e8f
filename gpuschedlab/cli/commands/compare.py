"""`gpuschedlab compare`: run policies on one trace; a table and a report."""

import shlex
import sys
import textwrap
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from gpuschedlab.cli.parser import add_json, policies_help, whole
from gpuschedlab.cli.progress import Progress
from gpuschedlab.cli.recipe_words import add_scenario, informed, recipe_in
from gpuschedlab.cli.text import as_json, grid, intake_line, metrics_table
from gpuschedlab.errors import PolicyError, RunError
from gpuschedlab.parse import contenders_of, in_words, loaded_of_papers

LINEUP = (
    "fifo:backfill=easy@oracle",
    "fifo",
    "fifo:backfill=easy",
    "sjf",
    "srtf",
    "srtf@oracle",
    "tiresias",
    "tiresias:metric=gittins",
    "themis",
    "lucid",
    *(word for module in loaded_of_papers("lineup") for word in module.LINEUP),
)
"""Policies that are compared when none is named; of papers, those of their module `lineup`."""
HEADLINE = "tiresias"
"""Policy of the line-up that the first sentence is about: it uses no durations, true or predicted."""

SOON = 2.0
"""Seconds after which the runs that are finished are shown."""


def add(parser):
    """Add the arguments."""
    parser.closing = policies_help
    parser.add_argument(
        "policies", nargs="*", metavar="POLICY", help=f"policies to compare (default: {' '.join(LINEUP)})"
    )
    add_scenario(parser)
    group = parser.add_argument_group("answer")
    group.add_argument(
        "--headline",
        metavar="POLICY",
        help=f"the policy that the first sentence is about (default: the best, but none that knows true durations while others do "
        f"not; {HEADLINE} when no policy is named)",
    )
    group.add_argument(
        "--out", default="report.html", metavar="FILE", help="the report (default report.html; none: '')"
    )
    group.add_argument("--runs", metavar="FOLDER", help="store each run there as parquet as soon as it is finished")
    group.add_argument("--png", metavar="FILE", help="a picture of the report's top, too (needs a Chromium)")
    group.add_argument(
        "--seeds",
        type=whole,
        default=1,
        metavar="N",
        help="seeds, from --seed on: means with intervals, too (default 1)",
    )
    group.add_argument(
        "--weeks",
        type=whole,
        metavar="N",
        help="weeks like a generated one in which the two policies of the first sentence are played, at most (default 12; 6 with "
        "estimators that learn anew for each; 1 if one of them decides by rounds)",
    )
    add_json(group)


def compare(args) -> int:
    """Run the policies, print the table, write the report, and return the exit code.

    It is 130 after Ctrl-C, and 1 if a policy failed or a file could not be stored.
    """
    from gpuschedlab.comparison import place_of

    recipe = recipe_in(args)
    progress = Progress(sys.stderr)
    recipe_policies = (
        {} if args.policies else {policy_name: (policy, None) for policy_name, policy in recipe.policies.items()}
    )
    policies = recipe_policies or contenders_of(args.policies or list(LINEUP))
    headline = _headline(args, policies)
    with progress.phase("jobs and estimates", announced=False):
        scenario = recipe(args.seed)
        recipe_facts = recipe.about(scenario)
        policies = informed(policies, scenario)
    if not args.json:
        print(caption(scenario, recipe_facts) + "\n", flush=True)
    unstored = {}
    comparison = _run(scenario, policies, progress, None if args.json else recipe, _store(args.runs, unstored))
    policy_names = {} if recipe_policies else _in_words(policies)
    comparison = replace(comparison, place=place_of(recipe), headline=headline, words=policy_names)
    # The table comes before the report and other weeks: whatever happens to these, the numbers are there.
    measure = "late" if "late" in recipe.metrics[:1] else "jct"  # what the recipe is about
    compare_sentence = comparison.sentence(measure)
    if not args.json:
        answer = f"{textwrap.fill(compare_sentence, 100)}\n\n{_table(comparison, recipe)}"
        print(answer.lstrip() + intake_line(recipe_facts), flush=True)
    comparison = replace(
        comparison,
        weeks=_weeks_like(recipe, scenario, policies, comparison, args) if measure == "jct" else None,
    )
    if args.json:
        print(
            _json(comparison, scenario, recipe_facts | {"sentence": comparison.sentence(measure)}),
            flush=True,
        )
    elif comparison.weeks is not None and comparison.weeks.text:
        of_weeks = comparison.weeks.called(policy_names).text
        print(f"\n{textwrap.fill(of_weeks, 100)}", flush=True)
    seeds = range(args.seed + 1, args.seed + args.seeds)
    seeds_rows = (
        _over_seeds(recipe, policies, seeds, comparison)
        if seeds and comparison.runs and not comparison.stopped
        else None
    )
    if seeds_rows and not args.json:
        print(_seeds_table(seeds_rows), flush=True)
    for policy_name, why in (comparison.failed | unstored).items():
        print(f"gpuschedlab: {policy_name} failed: {why}", file=sys.stderr)
    if comparison.runs and args.out:
        _report(comparison, recipe_facts, args, seeds_rows)
    if comparison.stopped:
        unfinished_policies = len(policies) - len(comparison.runs) - len(comparison.failed)
        print(
            f"gpuschedlab: interrupted; {len(comparison.runs)} policies finished, {unfinished_policies} did not.",
            file=sys.stderr,
        )
        return 130
    return 1 if comparison.failed or unstored else 0


def _headline(args, policies: dict[str, tuple]) -> str:
    """Return the name of the policy that the sentence is about; "" for the best."""
    if args.headline:
        if args.headline not in policies:
            raise PolicyError(f"--headline: found {args.headline!r}; expected one of {', '.join(policies)}.")
        return args.headline
    if tuple(policies) == LINEUP:
        return HEADLINE
    return ""


def _in_words(policies: dict[str, tuple]) -> dict[str, str]:
    """Return a dict of the names of policies in sentences; those that would have the same keep their words."""
    spoken = {policy_word: in_words(policy, estimator) for policy_word, (policy, estimator) in policies.items()}
    times = Counter(spoken.values())
    return {policy_word: policy_name for policy_word, policy_name in spoken.items() if times[policy_name] == 1}


def _run(scenario, policies: dict, progress: Progress, shown_recipe, store):
    """Run the policies, store each when it ends, and return the `Comparison`; a first table comes while slower ones run."""
    from gpuschedlab.comparison import Comparison
    from gpuschedlab.comparison import compare as run_all

    finished = {}
    first_start = time.monotonic()

    def so_far():
        nonlocal shown_recipe
        if shown_recipe is not None and 0 < len(finished) < len(policies) and time.monotonic() - first_start > SOON:
            early_table = _table(Comparison(dict(finished)), shown_recipe)
            shown_recipe = None
            progress.say(f"so far:\n{textwrap.indent(early_table, '  ')}\n", sys.stdout)

    with progress.phase("policies", len(policies), "done", announced=False, each=so_far) as advance:

        def each(policy_name, run):
            finished[policy_name] = run
            advance(len(finished))
            store(policy_name, run)

        finished_comparison = run_all(scenario, dict(sorted(policies.items(), key=_needs_more_code)), each=each)
    return replace(
        finished_comparison,
        runs={
            policy_name: finished_comparison.runs[policy_name]
            for policy_name in policies
            if policy_name in finished_comparison.runs
        },
    )


def _needs_more_code(item: tuple[str, tuple]) -> bool:
    """Return whether a policy plans, preempts or decides by rounds: others need less machine code, and their results come sooner."""
    _, (policy, _) = item
    return getattr(policy, "preemptive", True) or getattr(policy, "backfill", None) not in ("none", "greedy")


def _weeks_like(recipe, scenario, policies: dict, comparison, args):
    """Return the `Weeks` like this one, of the sentence's two policies; None if no seed makes another or none is asked for."""
    from gpuschedlab.weeks import refine_comparison

    policy_pair = comparison.pair()
    most_weeks = args.weeks or _usual_weeks([policies[policy_name] for policy_name in policy_pair], scenario)
    if not recipe.drawn or len(policy_pair) < 2 or most_weeks < 2 or comparison.stopped:
        return None
    weeks = None
    with Progress(sys.stderr).phase("weeks like this one", most_weeks, "played", announced=False) as advance:
        try:
            for weeks in refine_comparison(
                recipe, policies, comparison.runs, args.seed, most_weeks, comparison.headline
            ):
                advance(len(weeks.seeds))
        except KeyboardInterrupt:  # what has been played is said
            pass
    return weeks


def _usual_weeks(contenders: list[tuple], scenario) -> int:
    """Number of weeks that are played by default: fewer of those that take long."""
    from gpuschedlab.metrics.like_weeks import FEWEST, MOST
    from gpuschedlab.sim import Ordered

    if not all(isinstance(policy, Ordered) for policy, _ in contenders):
        return 1
    estimators = [estimator or scenario.estimator for _, estimator in contenders]
    if any(getattr(estimator, "needs_history", False) for estimator in estimators):
        return FEWEST
    return MOST


def _store(folder: str | None, unstored: dict[str, str]):
    """Return a function that stores a run; a run that cannot be stored is noted, and stays in the table."""

    def store(policy_name, run):
        if not folder:
            return
        file_name = "".join(letter if letter.isalnum() or letter in "-_.=,@" else "_" for letter in policy_name)
        try:
            run.to_parquet(Path(folder) / file_name)
        except RunError as error:
            unstored[policy_name] = str(error)

    return store


def caption(scenario, about: dict[str, str]) -> str:
    """Return text of three lines on trace, cluster, policies and their knowledge; in a fourth, that no job can wait."""
    summary = scenario.summary()
    load = ""
    if summary["load"] is not None:
        load = f", {summary['load']:.0%} of the cluster's GPU-time"
    outages = ""
    if summary["outages"]:
        outages = f", {summary['outages']} node failures"
    knows = "the true durations"
    if about["estimator"] != "oracle":
        knows = f"of durations what {about['estimator']} predicts"
    if scenario.history is not None:
        knows += f", having learnt from {about['history']} (so have Gittins indices)"
    if about["estimator"] != "oracle":
        knows += "; those with @oracle know the truth"
    demand = scenario.trace["gpus"].ceil().sum()
    idle = ""
    if demand <= summary["GPUs"]:
        idle = f"\nAll jobs together ask for {demand:,.0f} GPUs: none ever waits for others. Name a smaller cluster: --cluster 2x8."
    speed = "changes"
    if scenario.speeds is None:
        speed = "does not change"
    source = ""
    if about.get("cluster_from"):
        source = f" ({about['cluster_from']}; --cluster names another)"
    return (
        f"{summary['jobs']:,} jobs over {summary['days']:.3g} days ({about['trace']}){load}.\n"
        f"{summary['GPUs']:,} GPUs: {summary['cluster']}{source}{outages}; placement {speed} how fast a job goes.\n"
        f"Policies know {knows}.{recorded_waits(scenario.trace)}{idle}"
    )


def recorded_waits(trace) -> str:
    """How long jobs waited in the log, as a line; "" if it does not say."""
    if "started" not in trace.columns or trace["started"].null_count() == trace.height:
        return ""
    import polars as pl

    from gpuschedlab.table_display import cell

    since = pl.max_horizontal(column_name for column_name in ("submit", "eligible") if column_name in trace.columns)
    waited = trace.select(wait=pl.col("started") - since).drop_nulls()
    waits = waited["wait"].clip(lower_bound=0.0)
    average = cell(waits.mean(), "s")
    median = cell(waits.median(), "s")
    late = cell(waits.quantile(0.99), "s")
    return f"\nIn the log jobs waited {average} on average, {median} in the median, {late} at p99."


def _table(comparison, recipe) -> str:
    from gpuschedlab.sim.run import left_of

    if not comparison.runs:
        return "no policy has run"
    left_notes = "".join(f"\n{line}" for line in left_of(comparison.runs))
    if not recipe.metrics:
        return metrics_table(comparison.table()) + left_notes
    price = {}
    dollars = ""
    if recipe.price is not None:
        price = {"prices": recipe.price}
        dollars = f"\ncost: dollars, at {recipe.price:g} per GPU-hour held by jobs, warming, or idle in warm pools"
    return metrics_table(comparison.table(recipe.metrics, **price)) + dollars + left_notes


def _json(comparison, scenario, recipe_facts: dict[str, str]) -> str:
    runs = {policy_name: {"info": run.info, "metrics": run.summary()} for policy_name, run in comparison.runs.items()}
    weeks = {"weeks": None}
    if comparison.weeks is not None:
        weeks = {"weeks": comparison.weeks.summary()}
    answer = (
        recipe_facts | weeks | {"jobs": scenario.trace.height, "cluster": str(scenario.cluster), "seed": scenario.seed}
    )
    return as_json(answer | {"policies": runs, "failed": comparison.failed, "stopped": comparison.stopped})


def _over_seeds(recipe, policies: dict, seeds: range, first_comparison) -> list[dict]:
    """Return a list of dicts: means and paired differences over the first seed, whose runs are there already, and others."""
    from gpuschedlab.comparison import compare as run_all
    from gpuschedlab.report import over_seeds

    summaries = [first_comparison.summary()]
    with Progress(sys.stderr).phase("seeds", len(seeds) + 1, "done", announced=False) as advance:
        for seed in seeds:
            advance(len(summaries))
            scenario = recipe(seed)
            seed_comparison = run_all(scenario, informed(policies, scenario))
            summaries.append(seed_comparison.summary())
            if seed_comparison.stopped:
                break
    return over_seeds(summaries)


def _seeds_table(seeds_rows: list[dict]) -> str:
    """Means with intervals and paired differences, as text."""
    from gpuschedlab.metrics import METRICS
    from gpuschedlab.report.html_tables import words

    policy_names = list(dict.fromkeys(row["policy"] for row in seeds_rows))
    seeds = max(row["seeds"] for row in seeds_rows)
    seed_columns = [["policy", *policy_names]]
    for metric in dict.fromkeys(row["metric"] for row in seeds_rows):
        means, changes = zip(*(words(row) for row in seeds_rows if row["metric"] == metric))
        seed_columns += [[METRICS[metric].label, *means], ["paired", *changes]]
    return f"\n{seeds} seeds: means with 95 % intervals; paired: difference from {policy_names[0]} on the same seeds\n{grid(seed_columns)}"


def _report(comparison, recipe_facts: dict[str, str], args, seeds: list[dict] | None):
    from gpuschedlab.report import screenshot, write_report

    title = f"{len(comparison.runs)} policies on {recipe_facts['trace']}"
    command = shlex.join(["gpuschedlab", *sys.argv[1:]])
    with Progress(sys.stderr).phase("report", announced=False):
        path = write_report(comparison, args.out, title=title, command=command, seeds=seeds)
        megabytes = path.stat().st_size / 1e6
        pages = [f"{path} ({megabytes:.1f} MB)"]
        if args.png:
            pages.append(str(screenshot(path, args.png, width=1280, height=1060)))
    print(f"\nreport: {', '.join(pages)}", file=sys.stderr if args.json else sys.stdout)
