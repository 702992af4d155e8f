"""Small uses of compiled code that no policy with its usual knobs needs: run once, they have it compiled ahead."""

from collections.abc import Callable

import polars as pl

from gpuschedlab.parse import loaded_of_papers


def use_decisions() -> None:
    """Log what was decided, plan ahead with backfill, change the policy of a run, and start from the jobs that one left."""
    import gpuschedlab as lab
    from gpuschedlab.check.samples import small_trace

    trace = small_trace()
    cluster = lab.Cluster.homogeneous(2, 8)
    for policy in (lab.Fifo(backfill="easy"), lab.Fifo(), lab.Tiresias()):
        lab.simulate(trace, cluster, policy, log=True)
    simulation = lab.Simulation(lab.Scenario(trace, cluster), lab.Fifo())
    simulation.advance(float(trace["submit"].median()))
    simulation.under(lab.Tiresias()).run()
    unfinished = simulation.unfinished()
    is_left = pl.col("job_id").is_in(unfinished["job_id"].to_list())
    jobs_left = trace.filter((pl.col("submit") > simulation.now) | is_left)
    lab.Simulation(lab.Scenario(jobs_left, cluster), lab.Fifo(), start=simulation.now, initial=unfinished).run()


def use_speeds() -> None:
    """Ask a table of speeds for rates, for the time to some progress, and for the end of an epoch."""
    from gpuschedlab import Cluster
    from gpuschedlab.speeds.elapsed import seconds_to, segment_end
    from gpuschedlab.speeds.spread import default_speeds

    speed_table = default_speeds(Cluster.homogeneous(2, 8))
    speed_table.rates([0], [0.0], types=[0], nodes=[1], gpus=[8])
    seconds_to(speed_table, [0], [5.0], types=[0], nodes=[1], gpus=[8])
    segment_end(speed_table, [0], [1.0])


def small_uses() -> dict[str, Callable[[], None]]:
    """Return a dict of functions by the name of a part: each runs code of that part, so that it is compiled.

    Papers whose own code is compiled have a module `compiled` with a function `use_compiled_code`.
    """
    uses = {"decisions": use_decisions, "speeds": use_speeds}
    for module in loaded_of_papers("compiled"):
        paper = module.__name__.split(".")[-2]
        uses[f"{paper}, other code"] = module.use_compiled_code
    return uses
