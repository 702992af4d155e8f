"""The short form of a run, and the two forms in which functions take a scenario: whole, or in parts."""

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.errors import RunError
from gpuschedlab.sim.policy import Policy
from gpuschedlab.sim.run import Run
from gpuschedlab.sim.scenario import Scenario


def scenario_of(
    trace: pl.DataFrame | Scenario,
    cluster: Cluster | object = None,
    subject: object = None,
    *,
    rng: int | None = None,
    **parts,
) -> tuple[Scenario, object]:
    """Return a pair, the `Scenario` and the policy to be simulated in it or None, from either form of the arguments."""
    if rng is not None:
        parts["seed"] = rng
    if not isinstance(trace, Scenario):
        return Scenario(trace, cluster, **parts), subject
    subjects = [extra for extra in (cluster, subject) if extra is not None]
    if parts or len(subjects) > 1:
        extra_parts = ", ".join(parts) or f"{type(subjects[0]).__name__}, {type(subjects[1]).__name__}"
        raise RunError(
            f"found a Scenario and beside it {extra_parts}; expected all parts in the scenario, and one thing to simulate: "
            "scenario.replace(delays=...) is a scenario with another part."
        )
    return trace, subjects[0] if subjects else None


def simulate(
    trace: pl.DataFrame | Scenario,
    cluster: Cluster | Policy | None = None,
    policy: Policy | None = None,
    *,
    log: bool | str = False,
    **parts,
) -> Run:
    """Run a policy: `simulate(scenario, policy)`, or `simulate(trace, cluster, policy, **parts)`.

    Parameters
    ----------
    trace : polars.DataFrame or Scenario
    cluster : Cluster, or Policy after a scenario
    policy : Ordered or Round
    log : bool or str
        Whether to log why each waiting job waits, for `Run.explain`, which costs seconds for a week of 10,000 jobs; or the one job
        for which to do so, in less than one.
    **parts
        Of the scenario, if it is not given: `history, speeds, estimator, delays, limits, over, until, seed`.

    Returns
    -------
    Run

    Examples
    --------
    >>> import gpuschedlab as lab
    >>> run = lab.simulate(lab.generate("venus", days=1, rng=1), lab.Cluster.homogeneous(20, 8), lab.Srtf())
    >>> run.jobs["end"].null_count()
    0
    """
    scenario, policy = scenario_of(trace, cluster, policy, **parts)
    return scenario.run(policy, log=log)
