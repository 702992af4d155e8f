"""Compiling ahead, beside a process that compiles the engine in the order in which it is called."""


def compile_rest() -> None:
    """Compile what that process comes to last: how jobs are reordered, and how answers of rounds are put into force."""
    from gpuschedlab.sim.engine.jobs.state import STATE
    from gpuschedlab.sim.engine.preemption import reorder

    reorder.compile((STATE,))
    from gpuschedlab.sim.engine import apply  # noqa: F401 -- compiled by being imported
