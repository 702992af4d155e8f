"""Several policies on one trace: each is run separately, so that an error in one does not stop the others."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from html import escape
from typing import TYPE_CHECKING

import polars as pl

from gpuschedlab._extras import need
from gpuschedlab.errors import PolicyError, RunError, interrupts
from gpuschedlab.metrics.columns import check_flag, check_runs, check_text, check_texts, check_whole, shown
from gpuschedlab.metrics.like_weeks import MOST
from gpuschedlab.metrics.summaries import FIRST
from gpuschedlab.parse import blame, word_of
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.sim.scenario import MOST_SEED, Scenario

if TYPE_CHECKING:
    from gpuschedlab.metrics import MetricTable
    from gpuschedlab.metrics.like_weeks import Weeks
    from gpuschedlab.metrics.sentence import Difference
    from gpuschedlab.sim import Run

MOST_WEEKS = 10_000
OF_WEEK = "In this week"
OF_TRACE = "In this trace"
OF_LOG = "In this log"
OF_CONTEST = "In this contest"
PLACES = ("", OF_WEEK, OF_TRACE, OF_LOG, OF_CONTEST)
COLUMNS = (*FIRST, "unfair_fraction", "seconds")
"""Metrics that a comparison shows first."""


@dataclass(frozen=True)
class Comparison:
    """Runs of several policies on one trace.

    Parameters
    ----------
    runs : dict of str to Run
        By the name of the policy, in the order requested.
    failed : dict of str to str
        The errors of the policies that have no run.
    stopped : bool
        Whether it was interrupted (Ctrl-C) before all policies had run.
    place : str
        Whose facts the first sentence says: "In this week" of a generated one, "In this log" of a recorded one, "In this trace" of any
        other; "" of runs that nothing is known of: then an interval along their trace says how sure a difference is.
    weeks : Weeks, optional
        Results of weeks like this one on the two policies of the sentence.
    headline : str
        Name of the policy that the sentence is about; "": the best, but none that knows true durations while others do not.
    words : dict of str to str
        Names in sentences, if they differ: {"fifo:backfill=easy": "EASY backfill"}.
    """

    runs: dict
    failed: dict[str, str] = field(default_factory=dict)
    stopped: bool = False
    place: str = ""
    weeks: "Weeks | None" = None
    headline: str = ""
    words: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        from gpuschedlab.metrics.like_weeks import Weeks

        check_runs("Comparison", "runs", self.runs)
        check_texts("Comparison", "failed", self.failed)
        check_texts("Comparison", "words", self.words)
        check_flag("Comparison", "stopped", self.stopped)
        check_text("Comparison", "headline", self.headline)
        if self.place not in PLACES:
            known_places = ", ".join(map(repr, PLACES))
            raise RunError(f"Comparison: found place={shown(self.place)}; expected one of {known_places} for place.")
        if self.weeks is not None and not isinstance(self.weeks, Weeks):
            raise RunError(f"Comparison: found weeks={shown(self.weeks)}; expected Weeks, or None.")

    def pair(self, measure: str = "jct", **options) -> tuple[str, ...]:
        """Return a tuple of the names of the two policies that the sentence compares; of one, or none, if no more have run."""
        from gpuschedlab.metrics.who_pays import pair_of

        return pair_of(self.runs, measure, self.headline, **options)

    def table(self, metrics: Iterable[str] = COLUMNS, **options) -> pl.DataFrame:
        """Return a frame with one row per policy; options as in `gpuschedlab.metrics.compare`."""
        from gpuschedlab.metrics import compare

        return compare(self.runs, metrics, **options)

    def show(self, metrics: Iterable[str] = COLUMNS, **options) -> "MetricTable":
        """Return the table as a person reads it, a `MetricTable` ("average JCT", "2.30 h"); parameters as of `table`."""
        from gpuschedlab.metrics import MetricTable

        return MetricTable(self.table(metrics, **options))

    def sentence(self, measure: str = "jct", **options) -> str:
        """Compare the headline with the first policy, or the first, if it is the headline, with the next best, and say which jobs pay.

        Parameters
        ----------
        measure : str
            "jct", "late" (jobs that end after their first deadline), "unfair" (rho above 1), or "cost".
        **options
            `censored` as in `metrics.measured`; `prices` as of `metrics.cost`.

        Returns
        -------
        str
            Two sentences, and one of weeks like this one, or of the weeks of a log; "" if no policy has run.
        """
        main_sentence = str(self._difference(measure, **options) or "")
        weeks_sentence = self._of_weeks(options.get("censored", False)) if measure == "jct" else ""
        return f"{main_sentence} {weeks_sentence}".strip()

    def html(self, **options) -> str:
        """The sentences as HTML paragraphs; options as of `sentence`."""
        difference = self._difference(**options)
        if difference is None:
            return ""
        weeks_html = escape(self._of_weeks(options.get("censored", False)))
        if self.weeks is not None:
            return difference.html + self.weeks.called(self.words).html
        if weeks_html:
            return f"{difference.html}<p>{weeks_html}</p>"
        return difference.html

    def _difference(self, measure: str = "jct", **options) -> "Difference | None":
        """Return the numbers of the sentence, a `Difference`; None if no policy has run."""
        from gpuschedlab.metrics.who_pays import Scope, best_of

        scope = Scope(place=self.place)
        return best_of(self.runs, measure, scope, headline=self.headline, words=self.words, **options)

    def _of_weeks(self, censored: bool) -> str:
        """The sentence of other weeks, or the weeks of a log; "" if there are none."""
        from gpuschedlab.metrics.log_weeks import log_in_words, weeks_of

        if self.weeks is not None:
            return self.weeks.called(self.words).text
        compared_names = self.pair(censored=censored) if self.place == OF_LOG else ()
        if len(compared_names) < 2:
            return ""
        return log_in_words(weeks_of(self.runs[compared_names[0]], self.runs[compared_names[1]], censored))

    def summary(self) -> dict[str, dict]:
        """Return a dict of all metrics, a dict each, by policy."""
        return {policy_name: run.summary() for policy_name, run in self.runs.items()}

    def raise_if_failed(self) -> "Comparison":
        """Return itself, the `Comparison`, if every policy has run.

        Raises
        ------
        RunError
            Some failed: the message holds the error of each.
        """
        if self.failed:
            reasons = " ".join(f"{policy_name}: {why}" for policy_name, why in self.failed.items())
            raise RunError(f"{len(self.failed)} of {len(self.failed) + len(self.runs)} policies failed. {reasons}")
        return self

    def _repr_html_(self) -> str:
        from gpuschedlab.sim.run import left_of

        failure_lines = [f"{policy_name} failed: {why}" for policy_name, why in self.failed.items()] + left_of(
            self.runs
        )
        failed = "".join(f"<p>{escape(failure_line)}</p>" for failure_line in failure_lines)
        sentence_html = escape(self.sentence())
        return f"<p><b>{sentence_html}</b></p>{self.show()._repr_html_()}{failed}"

    def __repr__(self) -> str:
        failed = "".join(f"\n{policy_name} failed: {why}" for policy_name, why in self.failed.items())
        return f"{self.show()}{failed}"


def compare(
    what: "Recipe | Scenario | pl.DataFrame | Mapping[str, Run]", *more, **options
) -> "Comparison | pl.DataFrame":
    """Compare policies in a scenario, a `Comparison`, or runs that are there already, a frame.

    Parameters
    ----------
    what, *more
        `compare(scenario, policies)` runs the policies, and so does `compare(trace, cluster, policies, **parts)`, with the
        parts of `Scenario`. `compare(recipe, policies, seed=0, weeks=12)` runs them in the scenario of a seed, and the two that the
        sentence compares in weeks of other seeds (`gpuschedlab.weeks`). `compare(runs, metrics)` of a dict of runs is
        `gpuschedlab.metrics.compare`.
    policies : dict of str to Policy or (Policy, Estimator), or iterable of Policy
        With a pair, the knowledge of that policy comes from its own estimator; a policy without a name is called by its word
        ("tiresias:queues=3").
    seed, weeks : int
        Of a recipe: the seed, and how many weeks like it are played at most; 1: it alone.
    headline : str
        Name of the policy that the sentence is about; without it the best, but none that knows true durations while others do not.
    progress : bool
        Whether a bar on standard error shows how far it is.
    each : callable, optional
        Called with (name, run) as soon as a policy has run, so that it can be stored.

    Returns
    -------
    Comparison or polars.DataFrame
        A policy that raises is in `.failed`; Ctrl-C ends the comparison with the finished runs. Of runs: one row each.

    Raises
    ------
    TraceError, ClusterError, PolicyError, ...
        No policy has run: the first one's error.

    Examples
    --------
    >>> import polars as pl
    >>> from gpuschedlab import Cluster, Fifo, Scenario, Srtf
    >>> trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1, 1], "duration": [10.0, 2.0]})
    >>> found = compare(Scenario(trace, Cluster.homogeneous(1, 1)), [Fifo(), Srtf()])
    >>> found.table(["jct_mean"])["jct_mean"].to_list()
    [10.5, 7.0]
    >>> compare(found.runs, ["jct_mean"]).equals(found.table(["jct_mean"]))
    True
    """
    if isinstance(what, Mapping):
        from gpuschedlab.metrics import compare as tabulate

        return tabulate(what, *more, **options)
    if isinstance(what, Recipe):
        return _in_weeks(what, *more, **options)
    if not isinstance(what, Scenario | pl.DataFrame):
        raise RunError(f"compare: found {shown(what)}; expected a Scenario, a Recipe, a trace, or a dict of runs.")
    return _run_all(what, *more, **options)


def place_of(recipe: Recipe) -> str:
    """Return whose facts a comparison in a scenario of a recipe says, one word of `PLACES`."""
    if not isinstance(recipe, Recipe):
        raise RunError(f"place_of: found {shown(recipe)} for recipe; expected a Recipe, such as SyntheticCluster().")
    if not recipe.drawn:
        return OF_LOG
    return OF_WEEK if recipe.noun == "weeks" else OF_TRACE


def _in_weeks(
    recipe: Recipe, policies=None, *, seed: int = 0, weeks: int = MOST, headline: str = "", **options
) -> "Comparison":
    """Return a `Comparison` of several policies in the scenario of a seed, and of the two that matter in others like it."""
    from gpuschedlab.weeks import of_comparison

    check_whole("comparison", "seed", seed, 0, MOST_SEED - 1)
    check_whole("comparison", "weeks", weeks, 1, MOST_WEEKS)
    contenders = recipe.policies if policies is None else policies
    compared_policies = replace(
        _run_all(recipe(seed), None, contenders, headline=headline, **options), place=place_of(recipe)
    )
    if not recipe.drawn or compared_policies.stopped or weeks < 2:
        return compared_policies
    return replace(
        compared_policies,
        weeks=of_comparison(recipe, _named(contenders), compared_policies.runs, seed, weeks, headline),
    )


def _run_all(
    trace, cluster=None, policies=None, *, progress=False, each: Callable | None = None, headline: str = "", **parts
):
    """Run several policies in one scenario, and return the `Comparison`."""
    from gpuschedlab.sim.entry import scenario_of

    check_flag("comparison", "progress", progress)
    check_text("comparison", "headline", headline)
    if each is not None and not callable(each):
        raise RunError(
            f"comparison: found each={shown(each)}; expected a function of a name and a run for each, or None."
        )
    scenario, policies = scenario_of(trace, cluster, policies, **parts)
    contenders = _knowing(scenario, policies)
    if headline and headline not in contenders:
        raise PolicyError(f"comparison: found headline {headline!r}; expected one of {', '.join(contenders)}.")
    runs = {}
    failed = {}
    first_error = None
    bar = contenders.items()
    if progress:
        bar = need("tqdm.auto", "progress bars").tqdm(bar, unit="policy", leave=False, disable=None)
    try:
        for policy_name, (policy, own_scenario) in bar:
            bar.set_description(policy_name) if progress else None
            try:
                with interrupts():
                    runs[policy_name] = own_scenario.run(policy)
            except Exception as raised:  # a policy may be anybody's code, and must not take the others with it
                failed[policy_name] = blame(raised)
                first_error = first_error or raised
                continue
            if each is not None:
                each(policy_name, runs[policy_name])
    except KeyboardInterrupt:
        return Comparison(runs, failed, stopped=True, place=OF_TRACE, headline=headline)
    if first_error is not None and not runs:
        raise first_error
    return Comparison(runs, failed, place=OF_TRACE, headline=headline)


def _knowing(scenario, policies) -> dict[str, tuple]:
    """Return a dict by name of (policy, scenario): policies that share an estimator share the knowledge that it has learnt."""
    contenders: dict[str, tuple] = {}
    knowing = {id(None): scenario}
    for policy_name, (policy, own_estimator) in _named(policies).items():
        if id(own_estimator) not in knowing:
            knowing[id(own_estimator)] = scenario.replace(estimator=own_estimator)
        contenders[policy_name] = (policy, knowing[id(own_estimator)])
    return contenders


def _named(policies) -> dict[str, tuple]:
    """Return a dict by name of (policy, its own estimator or None)."""
    contenders: dict[str, tuple] = {}
    if isinstance(policies, Mapping):
        pairs = list(policies.items())
    elif policies is None or (isinstance(policies, Iterable) and not isinstance(policies, str | bytes)):
        pairs = [(None, policy) for policy in policies or ()]
    else:
        raise PolicyError(f"comparison: found policies={shown(policies)}; expected policies such as [Fifo(), Srtf()].")
    for policy_name, contender in pairs:
        policy, own_estimator = contender if isinstance(contender, tuple) else (contender, None)
        if policy_name is None and (isinstance(policy, type) or not is_dataclass(policy)):
            raise PolicyError(f"comparison: found {shown(policy)} among policies; expected such as [Fifo(), Srtf()].")
        policy_name = word_of(policy) if policy_name is None else policy_name
        if policy_name in contenders:
            raise PolicyError(
                f"comparison: found {policy_name!r} twice; expected each policy once. Give them names: a dict."
            )
        contenders[policy_name] = (policy, own_estimator)
    if not contenders:
        raise PolicyError("comparison: found no policies; expected at least one, such as [Fifo(), Srtf()].")
    return contenders


__all__ = ["COLUMNS", "Comparison", "compare"]
