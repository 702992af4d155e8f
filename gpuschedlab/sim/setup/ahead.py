"""Compiling ahead, beside a process that compiles the engine in the order in which it is called; as a module, with two cores or more."""

import os


def compile_rest() -> None:
    """Compile that process's later needs: plans of backfill, then preemption, then how answers of rounds are put into force."""
    from numba import types

    from gpuschedlab._compiled import compile_now
    from gpuschedlab.sim.engine.apply import ANSWERS, CELLS, apply_answer
    from gpuschedlab.sim.engine.jobs.state import DECISION, STATE
    from gpuschedlab.sim.engine.preemption import decide_by_preemption
    from gpuschedlab.sim.engine.reservations import decide_by_plan

    compile_now(decide_by_plan, DECISION.signature)
    compile_now(decide_by_preemption, DECISION.signature)
    compile_now(apply_answer, types.int64(STATE, ANSWERS, CELLS, types.float64))


if __name__ == "__main__" and os.cpu_count() > 1:
    compile_rest()
