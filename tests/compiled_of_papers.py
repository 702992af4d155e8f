"""Functions of papers that run compiled code of their own, each of a simulation that has run; they return what JSON holds."""

from present import present


def traffic(simulation) -> float:
    """Most flow through a small network, by COpter's solver."""
    from gpuschedlab.optim import solve
    from gpuschedlab.papers.copter.traffic.networks import bimodal_demands, generated_network
    from gpuschedlab.papers.copter.traffic.program import flow_program, network_routes

    network = generated_network(8, 12, 0)
    pairs, demand = bimodal_demands(network, 20, (0, 200), (400, 900), 0)
    return solve(flow_program(network_routes(network, pairs), network.capacity, demand), "copter").objective


def features(simulation) -> list:
    """Features from which AutoSched forecasts durations."""
    import numpy as np

    from gpuschedlab.autosched.forecast.features import Seen
    from gpuschedlab.autosched.forecast.repository import observe
    from gpuschedlab.check.samples import recurring_sample

    jobs = recurring_sample(60, 0).head(5).with_columns(executed=0.0)
    values = Seen(observe(simulation)).features(jobs, np.full(5, 20_000.0), 2)
    return np.nan_to_num(values, nan=-1).tolist()


COMPILED = present({"copter": {"copter": traffic}, "autosched": {"features": features}})
"""Functions by a name that says what runs."""
