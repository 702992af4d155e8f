"""Faults that the engine found in a job, in words."""

from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.errors import PolicyError, SpeedError
from gpuschedlab.sim.engine.jobs import records

NUMBERS = {
    records.BAD_KEY: ("key", ("not finite", "a finite number: the lower, the earlier")),
    records.BAD_CHANGE: ("change", ("no number", "an instant (s), or inf")),
    records.BAD_GATE: ("gate", ("no number", "a number: the lower, the earlier")),
}
"""Function of a policy, what is wrong with its value, and what was expected."""


def fault_of(simulation) -> SpeedError | PolicyError:
    """Return the error of the job that the engine blames: a `SpeedError` if the table lacks a speed, else a `PolicyError`."""
    scalar = simulation.state.scalar[0]
    blamed_job = int(scalar["culprit"])
    fault = int(scalar["fault"])
    body = simulation.state.body[blamed_job]
    who = f"job {simulation.trace['job_id'][blamed_job]}"
    models = simulation.state.job["model"]
    model_words = "without a model"
    if models[blamed_job] >= 0:
        model_words = f"model {simulation.speeds.models[models[blamed_job]]}"
    if fault == records.NO_SPEED:
        return SpeedError(
            f"{who} ({model_words}) was given {body['got'] / SLOTS:g} GPUs of "
            f"{simulation.cluster.gpu_types[body['type']]} on {body['nodes']} "
            "nodes, which its speed table lacks. Allow only configurations of speeds.configurations(), or extend the table."
        )
    if fault in NUMBERS:
        function, (wrong_words, expected) = NUMBERS[fault]
        return PolicyError(
            f"{simulation.policy.name}.{function} gave {who} at t={simulation.now:g} s a value that is "
            f"{wrong_words}; expected {expected}. "
            "Mind divisions by zero (a job is just submitted, has no estimate) and logarithms."
        )
    if fault == records.BAD_STANDING:
        return PolicyError(
            f"{simulation.policy.name}.standing at t={simulation.now:g} s: found another number of values than accounts; expected "
            f"{len(simulation.state.ledger)}, one for each usage. Return an array as long as `usage`."
        )
    if fault == records.TAKEN:
        return PolicyError(
            f"{simulation.policy.name} at t={simulation.now:g} s: nodes names GPUs for {who} that other jobs hold, or that its node "
            "cannot give as one cell. See view.free; jobs without named nodes stay where they are."
        )
    second = int(body["source"])
    if fault == records.NO_PAIR:
        second = int(body["partner"])
    pair_table = "sharing"
    relation = "shares GPUs with"
    if fault == records.NO_TRANSFER:
        pair_table = "transfer"
        relation = "started from the result of"
    elif body["joint"]:
        pair_table = "merged"
    return SpeedError(
        f"{who} ({model_words}) {relation} job {simulation.trace['job_id'][second]}, and Speeds.{pair_table} has "
        "no row for the two models. "
        "Extend the table, or do not bring them together."
    )
