"""The records of a simulation's arrays: the part of a job that a policy may see, the engine's own book-keeping, rules, logs and answers.

`JOB` is the part of a job that a policy may see; `BODY` is the rest: the true work, and the engine's own book-keeping. Anything that a
decision reads of every waiting job comes first in both: it then lies in one or two lines of the cache.
"""

import numpy as np


def _record(**fields: str) -> np.dtype:
    """Numpy dtype of a record of some fields, by name, as compiled code lays it out."""
    return np.dtype([*fields.items()], align=True)


UNSEEN, WAITING, RUNNING, DONE = range(4)
STILL, FALLING, DRIFTING, ALL = range(4)
"""Which keys drift between changes: those of no job; of running jobs, and they never rise; of running jobs; of all jobs."""

JOB = _record(
    submit="f8",  # s
    estimate="f8",  # s in total on the requested GPUs, as the estimator says
    progress="f8",  # work done, in the job's own unit (s at reference speed for a rigid job)
    queued="f8",  # s waited in all
    contention="f8",  # time average of GPUs demanded over GPUs up since submission, as in `metrics.contention`
    attained="f8",  # GPU-s received
    gpus="f8",  # requested
    state="i4",  # 0 not submitted, 1 waiting, 2 running, 3 done
    stage="i4",  # 1 while it is to be profiled, 0 otherwise
    deadline="f8",  # s from the trace's zero, inf without one
    reward="f8",
    executed="f8",  # s holding GPUs
    waiting_since="f8",  # s, when it last began to wait
    started="f8",  # s, when it last got GPUs
    held="f8",  # GPUs held now, 0 when waiting
    spread="f8",  # relative speed when split over nodes, 1 when unknown
    user="i4",
    vc="i4",
    model="i4",
    kind="i4",  # 0 best effort, 1 strict SLO, 2 soft SLO
    starts="i4",
    preemptions="i4",
    points="f8",  # what the policy counts it for whatever happens, 0 without
    standing="f8",  # of its account, when that was last looked at while it waited, 0 without
)

BODY = _record(
    last="f8",  # s, time to which JOB's running sums are up to date
    contention0="f8",  # integral of contention at submission
    key="f8",
    since="f8",  # s, when a discrete key took its present value
    timer="f8",  # s, next instant at which something about it changes by itself
    pos="i4",  # place in the heap of its class, or in the list of running jobs, -1 outside
    cls="i4",  # demand class
    slots="i4",  # requested
    knows="i4",  # row of `known`
    tick="i4",  # place in the heap of timers, -1 outside
    gated="i1",  # 1 while the gate holds it back
    ranked="i1",  # 1 while it may be preempted, and is in `rank`
    fresh="i1",  # 1 from its start until time passes
    lease="f8",  # s, until when it may not be preempted
    got="i4",  # slots held
    jobs="f8",  # that it stands for: JOB is one of them, on its part of the GPUs
    work="f8",  # true work
    pace="f8",  # progress a second by its GPUs, and by its partner where each does its own work
    gain="f8",  # factor on it by the result that it started from, 1 without
    rate="f8",  # progress a second of unpaused running
    effort="f8",  # what its pace adds up to since its last start or change of partner
    pause="f8",  # s of delay still to pass before progress
    finish="f8",  # s, when the present segment or the work ends at this rate
    goal="f8",  # progress at which it ends
    leaves="f8",  # s, when its stay in a stage of limited time ends, inf: it stays as long as it likes
    limit="f8",  # s for which it may run from a start, inf: for as long as it likes
    safe="f8",  # progress at the last checkpoint, or at the last start
    kept="f8",  # s of progress that counted then (`useful`)
    switch="f8",  # s of delay at each start
    restart="f8",  # s of delay at each start after the first, on top
    delay="f8",  # s of delay at the next start instead of these, -1: none is named
    first="f8",  # s, first start
    end="f8",
    overhead="f8",
    lost="f8",
    shared="f8",
    idled="f8",  # s that it held GPUs without work
    before="f8",  # s, when it last got GPUs before its last start
    stretch="f8",  # s, when the present row of the allocation log began
    began="f8",  # s of delay of the start with which that row begins, -1: it goes on from the last one
    head="i4",  # first entry of its nodes in the pool of entries
    type="i4",  # GPU type held, or last held
    pool="i4",  # pool of the nodes held, or last held
    nodes="i4",  # nodes held, or last held
    row="i4",  # row of the speed table in force, -1 for a constant rate
    segment="i4",
    partner="i4",  # job that shares its GPUs, -1 without
    source="i4",  # job whose result it started from, -1: its own beginning
    failures="i4",
    base="i4",  # demand class at the start of a wait
    account="i4",  # row of the ledger to which it is charged, -1: none
    charged="i4",  # half slots for which it is charged now
    guest="i1",  # 1 when the partner owns the GPUs
    joint="i1",  # 1 when it is trained jointly with the partner, 0 when each does its own work
    idle="i1",  # 1 while it holds GPUs without work
    timed_out="i1",  # 1: it was stopped at its limit
    vacated="i1",  # 1 while others hold its slots, within a decision
    moving="i1",  # 1 while a round moves it to other nodes
)

NO_SPEED, NO_PAIR, NO_TRANSFER, TAKEN, BAD_KEY, BAD_CHANGE, BAD_GATE, BAD_STANDING = range(1, 9)
"""Errors of a job: its table lacks the configuration, the pair, or the transfer; others hold the GPUs that it was
given; its key, the instant at which that changes, or its gate value is no number; the policy gave not one standing for each account."""

ANSWER = _record(
    job="i8",
    type="i8",
    slots="i8",  # 0: it waits
    host="i8",  # job whose GPUs it shares, -1: it has its own
    joint="i8",  # 1: it is trained jointly with its host
    source="i8",  # job whose result it starts from, -1: as it is
    idle="i8",  # 1: it holds its GPUs without work
    first="i8",  # its first row of CELL
    cells="i8",  # how many; 0: the placement rule decides
    delay="f8",  # s of delay if it starts, -1: as always
)
CELL = _record(answer="i8", node="i8", slots="i8")  # answer: row of ANSWER
ASK = _record(slots="i8", asked="i8", estimate="f8", submit="f8", kind="i8")  # kind: row of nodes that it may have
RUN = _record(end="f8", first="i8")  # first: row of CELL

ENTRY = _record(next="i4", node="i4", slots="i4", pad="i4", mask="u8")
OUTAGE = _record(time="f8", node="i4", delta="i4")
WINDOW = _record(start="f8", end="f8", announced="f8", node="i4")
CLASS = _record(
    slots="i4",
    asked="i4",  # nodes, 0: any number
    stage="i4",
    model="i4",
    tight="i4",  # 1: insists on consolidation under the relax rule
    relaxed="i4",  # class that its jobs join when their patience ends; its own: there is none
    next="i4",  # class that its jobs join after this stage; its own: there is none
    base="i4",  # where its place among all queues begins
    room="i4",  # jobs that it may hold
    first="i4",  # where those that wait begin
    head="i4",  # the first of them that a decision has not looked at
    count="i4",  # jobs waiting in it
    pools="i8",  # a bit a pool where a plan may place such a demand yet
    open="i4",  # 0: no such demand can be placed any more at this decision
    hosts="i4",  # running jobs of it that could take a guest
)
POOL = _record(
    type="i8",  # GPU type of its nodes
    stage="i8",  # stage of a job that it serves
    free="i8",  # slots
    size="i8",  # slots up
    total="i8",  # slots, with those that are down
)
LEDGER = _record(
    usage="f8",  # GPU-s, decayed, at `since`
    since="f8",  # s
    standing="f8",  # as the policy saw it last
    held="i8",  # half slots for which it is charged: of GPUs that two jobs share, each pays half
)
TREE = _record(
    parent="i8",  # row above, -1: the root, which is the first; parents before their children
    shares="f8",
    account="i8",  # row of the ledger, -1: of those below it
)
RESERVATION = _record(start="f8", job="i4", pool="i4", head="i4")  # head: first of its nodes among `promised`
STEP = _record(when="f8", mask="u8", room="i4", next="i4")  # of a node's line; next: -1, it is the last
LINE = _record(  # of a node: whether anything is promised on it; and, while the index shows a time ahead, what it shows differently
    changed="i4",
    shown="i4",
    aside="i4",  # slots fewer
    bits="u8",  # GPUs held or not
    seat="i4",  # 1: of a job that is known to fit beside all that is promised
    first="f8",  # s, from when on a job fits there, as the last search for its start found it
)
TICK = _record(time="f8", used="i8", demanded="i8", capacity="i8", running="i4", waiting="i4", largest="i4")
STRETCH = _record(
    job="i4",
    node="i4",
    slots="i4",
    partner="i4",
    source="i4",
    guest="i1",
    joint="i1",
    idle="i1",
    start="f8",
    end="f8",
    delay="f8",  # s, of the start with which it begins, -1: it goes on from the row before
)
SCALARS = _record(
    now="f8",
    contention="f8",  # integral of demanded / up, 0 while none is up
    gate="f8",  # gate value of the last job that passed at the last decision
    decide_at="f8",  # s, next decision, inf when none is due
    origin="f8",  # s, from which the grid of rounds is counted
    stand_at="f8",  # s, when the standing of accounts is looked at next, inf: not as long as nothing happens
    arrived="i8",
    outage="i8",  # next outage event
    running="i8",
    ranked="i8",  # running jobs that may be preempted
    waiting="i8",
    started_round="i8",  # jobs that ran when the present round began
    done="i8",
    used="i8",  # slots held
    capacity="i8",  # slots up
    demanded="i8",  # slots requested by running and waiting jobs
    timers="i8",
    free_entry="i8",
    ticks="i8",
    stretches="i8",
    dirty="i8",  # something happened since the last decision; within it, that it started or stopped a job
    head="i8",  # first waiting job after a decision that started and stopped no job, -1 after others
    exhausted="i8",  # 1: no waiting job could be placed at the last decision, nor can any since
    asleep="i8",  # 1: a round put off the next one, which events bring forward again
    culprit="i8",  # job of an error
    fault="i8",  # what is wrong with it
    reservations="i8",  # that stand since the last plan
    rests_until="f8",  # s, before which no plan of the policy's own planner starts a job, unless something happens
    free_promise="i8",  # first free row of `promised`
    steps="i8",  # of all lines
)
SHORTEST = 1e-3
"""Shortest interval (s); floating point cannot resolve shorter steps within a week."""

STRICT, PLAN, GREEDY = range(3)
"""Whether waiting jobs may pass one that does not start: none may, as a plan allows, or any that fits."""
RULE = _record(
    rounds="i8",  # 1: Python decides, 0: the compiled order does
    preemptive="i8",
    backfill="i8",  # STRICT, PLAN, GREEDY
    planned="i8",  # 1: the policy's own planner decides what starts
    across="i8",  # 1: its jobs may hold GPUs of several types
    moving="i8",  # which keys drift between changes: STILL, FALLING, DRIFTING, ALL
    placement="i8",
    sharing="i8",  # 1: jobs may share GPUs
    interval="f8",  # s between decisions, 0: at every event
    lease="f8",  # s, 0 without
    lease_grid="f8",  # s, leases end at multiples of it; 0: anywhere
    patience="f8",  # s of waiting before consolidation is relaxed
    skew="f8",  # relative speed on two nodes above which consolidation is not insisted on
    share_limit="f8",  # least sum of relative speeds at which two jobs are packed
    fraction="f8",  # share of the active jobs that the gate lets pass first, 1: all
    profile="f8",  # s of profiling, 0 without
    checkpoint="f8",  # s between checkpoints, inf: only when preempted
    half_life="f8",  # s after which half of what was charged is forgotten, inf: nothing is
    period="f8",  # s between looks at the standing of accounts, 0: there are none
    on_event="i8",  # rounds: decide at arrivals and completions, too
    free_moves="i8",  # rounds: a job that keeps its configuration may change nodes without a restart
    ends_with_jobs="i8",  # rounds: one ends when the last of its jobs ends
    depth="f8",  # plan: reservations that stand at a time; the fields from here on are those of `Plan`
    tested="f8",
    window="f8",  # s
    every="f8",  # s
    resolution="f8",  # s
    min_age="f8",  # s
    keep="i8",
    whole="i8",
)
