"""Runs of the arena: a process for each problem, in which each solver is measured and its answers are checked."""

import importlib.util
import multiprocessing
import time
from multiprocessing.connection import Connection

from gpuschedlab.errors import LabError
from gpuschedlab.papers.copter.solver.bound import proved_bound
from reproduce.papers.copter.arena_check import checked, faults
from reproduce.papers.copter.arena_problems import TINY, Instance, stream
from reproduce.papers.copter.arena_solvers import ALONE, Answer, Way, share_of, ways_of

STREAMS = ("rounds", "shards", "flows")
"""Kinds of which a program is like the one before."""

LITTLE = 0.05
"""Work on the tiny problem."""

HERE = "reproduce.papers.copter.arena_runs"

PROGRAMS = {True: 2, False: 3}
"""Programs of a stream, in the quick run and in the full one."""

WORK = {True: 3.0, False: 20.0}
MIXED_WORK = {True: 0.07, False: 3.0}
"""Work of each solve, and of each solve of an integer program, in the quick run and in the full one."""


def measure(data_dir, kind: str, size: int, variant: str, quick: bool) -> dict:
    """Every solver on the first so many programs of a stream, cold on each (quick: the first), and warm from each to the next.

    Returns
    -------
    dict
        `answers`: a list of dicts with `program, form, solver, start, status, cpu` (s), what `checked` gives, `bound` (of
        linear programs that of the prices, else what the solver says), `steps, wrong` (what `faults` finds), or `status` of what
        failed, and `reason`; `cpu`: seconds of all processes.
    """
    ways = [(way.form, way.name) for way in ways_of(kind, quick)]
    answers = []
    cpu = 0.0
    case = (kind, size, variant, quick)
    for lane in ([way for way in ways if ALONE not in way[1]], [way for way in ways if ALONE in way[1]]):
        if lane and ALONE in lane[0][1] and importlib.util.find_spec("ortools") is None:
            reason = 'not installed: pip install "gpuschedlab[arena]"'
            answers += [failure(*way, "missing", reason) for way in lane]
            continue
        while lane:
            found, begun, spent, code = _in_a_process(data_dir, case, lane)
            answers = answers + found
            cpu = cpu + spent
            if begun is None:  # it ended before the first solver
                raise LabError(
                    f"arena: {kind} {size} {variant}: the process ended by itself ({code}) while it built the problem."
                )
            if code:
                answers.append(failure(*begun, "crashed", f"the solver ended its process ({code})"))
            lane = lane[lane.index(begun) + 1 :]
    return {"answers": answers, "cpu": cpu}


def failure(form: str, solver: str, status: str, reason: str, program: int = 0, start: str = "cold") -> dict:
    """Record of a solver without an answer."""
    return {"program": program, "form": form, "solver": solver, "start": start, "status": status, "reason": reason}


def _in_a_process(data_dir, case: tuple, lane: list) -> tuple[list, tuple | None, float, int | None]:
    """Answers of solvers in a process of their own, the last one begun, CPU seconds, and the code of a process that ended early."""
    here, there = CONTEXT.Pipe(duplex=False)
    child = CONTEXT.Process(target=_child, args=(there, data_dir, case, lane))
    child.start()
    there.close()
    answers = []
    begun = None
    cpu = 0.0
    done = False
    while not done:
        try:
            word, value = here.recv()
        except EOFError:
            break
        if word == "begun":
            begun = value
        elif word == "done":
            done = True
        cpu = value[1] if word in ("answers", "done") else cpu
        answers += value[0] if word == "answers" else []
    child.join()
    return answers, begun, cpu, None if done else child.exitcode


def _child(out: Connection, data_dir, case: tuple, lane: list) -> None:
    """What runs in a process: the problem, and solvers one after another."""
    kind, size, variant, quick = case
    ways = {(way.form, way.name): way for way in ways_of(kind, quick)}
    instances = stream(data_dir, kind, size, variant, PROGRAMS[quick])
    tiny = stream(data_dir, kind, TINY[kind], variant, 1)
    for name in lane:
        out.send(("begun", name))
        work = (MIXED_WORK if ways[name].mixed else WORK)[quick] * share_of(name[1])
        if ways[name].compiled:
            run_all(ways[name], kind, tiny, LITTLE, every=False)  # what is compiled and loaded at the first use
        answers = run_all(ways[name], kind, instances, work, every=not quick)
        out.send(("answers", (answers, time.process_time())))
    out.send(("done", (None, time.process_time())))


def run_all(way: Way, kind: str, instances: list[Instance], work: float, every: bool) -> list[dict]:
    """Answers to the first program from nothing, and to the others: warm, each from the one before, and where `every`, cold."""
    answer, solver = _one(way, way.makes[kind], work, None, instances[0], 0, "cold")
    found = [answer]
    others = list(enumerate(instances))[1:]
    if "reason" in answer:
        return found
    if every:
        found += [_one(way, way.makes[kind], work, None, instance, k, "cold")[0] for k, instance in others]
    if way.warm and kind in STREAMS:
        for k, instance in others:
            answer, solver = _one(way, way.makes[kind], work, solver, instance, k, "warm")
            found.append(answer)
    return found


def _one(way: Way, make, work: float, solver, instance: Instance, k: int, start: str) -> tuple[dict, object]:
    """One answer, measured and checked, and the solver, made where there is none."""
    begin = time.process_time()
    try:
        solver = solver or make(work)
        answer = solver(instance)
    except LabError as error:
        return failure(way.form, way.name, "none", str(error), k, start), solver
    cpu = time.process_time() - begin
    row = {"program": k, "form": way.form, "solver": way.name, "start": start, "cpu": cpu}
    return row | judged(way, instance, answer), solver


def judged(way: Way, instance: Instance, answer: Answer) -> dict:
    """What an answer is worth by the arrays of its program."""
    program = instance.linear if way.form == "linear" else instance.whole
    found = checked(program, answer.x)
    bound = answer.bound if answer.duals is None else proved_bound(program, answer.duals)
    stopped = answer.status != "optimal"
    wrong = faults(found, None if stopped else way.promised, answer.objective)
    return {"status": answer.status} | found | {"bound": bound, "steps": answer.steps, "wrong": wrong}


def _context():
    """How processes are begun: forked from one that has imported all and computed nothing, where the system can."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([HERE, "highspy", "mip", "pytest"])
    return context


CONTEXT = _context()
