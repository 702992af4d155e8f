"""Rounds: the view of a policy at an instant, its answer, and how that is put into force and logged."""

import time

import numpy as np

from gpuschedlab._compiled import records
from gpuschedlab.errors import LabError, PolicyError
from gpuschedlab.sim.engine.apply import apply_answer
from gpuschedlab.sim.engine.jobs.logs import refresh_active
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.answer import Check
from gpuschedlab.sim.rounds.view import View


def decide(simulation):
    """Ask the policy of a simulation at a round that is due, and put its answer into force."""
    view = view_now(simulation)
    answer_begin = time.perf_counter()
    answer = _answer(simulation, view)
    put_into_force(simulation, view, answer, time.perf_counter() - answer_begin)


def view_now(simulation) -> View:
    """Return the `View` of the policy now, once the estimator has renewed its estimates."""
    s = simulation
    active_jobs = refresh_active(simulation.state)
    round_state = {"memory": s.memory, "reserved": s.reserved, "learnt": s.learnt}
    if s.estimator.learns_speeds:
        _learn(s.learnt, View(s.state, s.prepared, active_jobs, **round_state))
    view = View(s.state, s.prepared, active_jobs, **round_state)
    renewed = s.estimator.renewed(view)
    if renewed is None:
        return view
    s.state.job["estimate"][active_jobs] = renewed
    return View(s.state, s.prepared, active_jobs, **round_state)  # what the first has read, it keeps


def _learn(learnt: np.ndarray, view: View):
    """Keep which types jobs have run on, and whether on one GPU or on several."""
    ran = np.flatnonzero((view.gpu_type >= 0) & (view.effort > 0))
    job_and_type = (view.index[ran], view.gpu_type[ran])
    learnt[job_and_type] = np.maximum(learnt[job_and_type], np.where(view.running_gpus[ran] > 1, 2, 1))


def _answer(simulation, view: View) -> Allocation:
    """Return the policy's answer, an `Allocation`; its name and the time are added to its own exceptions."""
    try:
        return simulation.policy.allocate(view)
    except LabError:
        raise
    except Exception as error:
        raise PolicyError(
            f"{simulation.policy.name} at t={view.now:g} s: allocate raised {type(error).__name__}: {error}"
        ) from error


def put_into_force(simulation, view: View, answer: Allocation, seconds: float):
    """Check an answer that took some seconds, put it into force, and log it."""
    checked = Check(answer, view, simulation.policy.name).checked()
    simulation.answered = (view.now, checked.jobs, answer.why)
    changed = reserve(simulation, checked.reserved)
    # Once all jobs are done, a policy may still give back what it reserved: rounds end with the second that changes nothing.
    simulation.quiet = 0 if changed or not simulation.finished else simulation.quiet + 1
    goes_on = simulation.quiet < 2 and (simulation.reserved or not simulation.finished)
    wake = checked.wake if goes_on else np.nan
    short = apply_answer(simulation.state, records(checked.jobs), records(checked.cells), wake)
    simulation.raise_fault()
    # What a program proved is not of a round in which some of its jobs found no place.
    objective, status = (np.nan, f"{short} not placed") if short else (float(answer.objective), answer.status)
    simulation.rounds.append((view.now, seconds, objective, float(answer.bound), status, float(answer.seconds)))


def reserve(simulation, reserved: dict[str, np.ndarray]) -> bool:
    """Log the reservations from now on, GPUs (T,) by name, in the place of earlier ones; return whether that changes anything."""
    s = simulation
    pools_before = len(simulation.pools)
    none = np.zeros(len(simulation.cluster.gpu_types))
    for pool_name in sorted(s.reserved.keys() | reserved.keys()):
        old_gpus = s.reserved.get(pool_name, none)
        new_gpus = reserved.get(pool_name, none)
        s.pools.extend(
            (s.now, pool_name, s.cluster.gpu_types[type_number], float(new_gpus[type_number]))
            for type_number in np.flatnonzero(old_gpus != new_gpus)
        )
    s.reserved = reserved
    return len(s.pools) > pools_before
