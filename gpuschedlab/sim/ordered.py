"""Policies that serve jobs in an order, which is compiled."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import Constraint, Knob, Knobbed
from gpuschedlab.sim.engine.jobs.records import ALL, DRIFTING, FALLING, PLAN, SHORTEST, STILL
from gpuschedlab.sim.policy import Policy

BACKFILL = {"none": 0, "easy": 1, "greedy": 2, "plan": 1}
MOVING = {"none": STILL, "falling": FALLING, "running": DRIFTING, "all": ALL}


@dataclass(frozen=True)
class Plan(Knobbed):
    """How a plan is made (`backfill="plan"`), beside its depth: which jobs it looks at, when, and how finely.

    A plan goes through the waiting jobs in order. A job starts if it fits now, for as long as its estimate says, beside GPUs
    promised to those before it; otherwise GPUs of named nodes are promised to it, from the first instant at which it fits, as long as
    fewer promises stand than the plan is deep. Plans are made anew at each decision, and promises forgotten, unless they `keep` them.

    Parameters
    ----------
    tested : float
        Jobs that a plan looks at, those that start among them; inf: all.
    window : float
        Seconds ahead: a job that would start later is promised nothing. inf: no limit.
    every : float
        Seconds between plans; at events in between jobs start in strict order. 0: a plan at each event.
    resolution : float
        Seconds of a slot: a job that ends within one ends at its end. 0: exact times.
    min_age : float
        Seconds since submission before which a job is promised nothing.
    keep : bool
        Whether promises stand: they are then only moved earlier, in order of their starts, as jobs end before their estimates.
    whole : bool
        Whether promises hold their nodes whole, as Slurm's do, or the GPUs alone that they take.

    References
    ----------
    Mu'alem and Feitelson, IEEE TPDS 12(6), 2001.

    Examples
    --------
    >>> from gpuschedlab import Fifo
    >>> Fifo(backfill="plan", depth=50, plan=Plan(tested=500, every=30)).plan.every
    30
    """

    tested: Annotated[float, Knob(1, 1e4, step=1, unlimited=True, unit="jobs", help="that a plan looks at")] = math.inf
    window: Annotated[float, Knob(0, 1e7, unlimited=True, unit="s", help="ahead within which starts are promised")] = (
        math.inf
    )
    every: Annotated[float, Knob(0, 3600, unit="s", help="time between plans; 0: at every event")] = 0
    resolution: Annotated[float, Knob(0, 3600, unit="s", help="slot of a plan; 0: exact times")] = 0
    min_age: Annotated[float, Knob(0, 1e7, unit="s", help="since submission before a start is promised")] = 0
    keep: Annotated[bool, Knob(help="whether promises stand from plan to plan")] = False
    whole: Annotated[bool, Knob(help="whether promises hold their nodes whole")] = False

    constraints: ClassVar = (
        Constraint(
            "keep only with every=0 and resolution=0: a promise falls due at an instant",
            lambda knobs: not knobs["keep"] or knobs["every"] == knobs["resolution"] == 0,
            lambda knobs: {"every": 0.0, "resolution": 0.0},
        ),
    )


class Ordered(Policy):
    """Serve jobs in the order of a key, lowest first; the whole loop runs compiled.

    A subclass is a frozen dataclass with a static method `key(now, job, knobs)` of arithmetic and `math` only: `now`
    in seconds, `job` a record of `gpuschedlab.sim.engine.jobs.records.JOB`, `knobs` a record of the policy's own knobs (a choice
    arrives as its index, a tuple padded with infinity; so are tuples marked `Data`). Equal keys go
    by when they took their value, then by order of submission.

    Attributes
    ----------
    preemptive : bool
        Whether a job that goes earlier may suspend one that goes later.
    backfill : {"greedy", "none", "easy", "plan"}
        Whether jobs behind one that does not fit may start: all, none, or those that by the estimates do not delay the first one,
        or as many as the plan is deep.
    depth : float
        Waiting jobs that a plan promises a start (`Plan`). 0: as "greedy"; 1: as "easy"; inf: conservative backfill.
    plan : Plan
        How the plan is made.
    moving : {"all", "running", "falling", "none"}
        Which keys drift with time by themselves: of all jobs, of running ones, or of running ones, which never rise (as a
        remaining time). "none" (fastest): keys change only when `change` says.
    lease : float
        Seconds for which a started job may not be suspended; 0: none.
    lease_grid : float
        Leases end at multiples of so many seconds, the next at or after their term; 0: right at it.
    patience : float
        Rule "relax": seconds of waiting after which a job takes any nodes.
    skew : float
        Rule "relax": jobs with a relative speed on spread nodes of at least this never insist on consolidation.
    sharing : bool
        Whether jobs of one demand may share GPUs, two at a time.
    share_limit : float
        Least sum of the relative speeds of two jobs that share.
    fraction : float
        Share of the jobs that wait or may be preempted, those with the lowest `gate`, that goes before all others.
    profiler_nodes : int
        Nodes, from the first, on which new jobs are profiled before they queue.
    profile_time : float
        Seconds of profiling.
    planned : bool
        Whether `planner` says which jobs start, and on which nodes, in place of backfill and placement rule.
    across : bool
        Whether that planner may give a job GPUs of several types. The job runs as on the slowest of them.
    period : float
        Seconds between looks at how accounts (`charged`) stand: `standing` says it, and all waiting jobs have their keys renewed. 0:
        there are none. Nothing is looked at while no job runs and none can start.

    Notes
    -----
    A `job` has, in seconds and GPUs:

    - of the request: `submit`, `gpus`, `estimate` (s in total, as the estimator says; the duration is hidden), `deadline`
      (s from the trace's zero, inf without one), `reward`, `kind` (0: best effort, 1: strict SLO, 2: soft SLO), and the
      numbers of its `user`, `vc` and `model` (in order of name; -1: none);
    - of the past: `attained` (GPU-s), `executed` (s with GPUs), `progress` (work done), `queued` (s waited in all),
      `waiting_since`, `started` (s, when it last began to), `contention` (time average, since submission, of GPUs demanded
      over GPUs up), `starts`, `preemptions`;
    - of the present: `held` (GPUs, 0 while waiting), `spread` (relative speed when split over nodes), `stage` (1 while it
      is to be profiled), `state` (1: waiting, 2: running);
    - of a policy with accounts: `points` (see there), and `standing` (of the job's account at the last look while it waited; 0
      without).

    `knobs` has the fields of the class that are annotated with `Knob` or `Data`, and no others. A key uses arithmetic,
    `math` and these fields, and returns a number.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import Annotated
    >>> from gpuschedlab.knobs import Knob
    >>> @dataclass(frozen=True)
    ... class Aged(Ordered):
    ...     weight: Annotated[float, Knob(0, 10)] = 1.0
    ...     @staticmethod
    ...     def key(now, job, knobs):
    ...         return job.estimate - knobs.weight * (now - job.submit)
    """

    preemptive = False
    backfill = "greedy"
    depth = 1
    plan = Plan()
    moving = "all"
    lease = 0.0
    lease_grid = 0.0
    patience = np.inf
    skew = 1.0
    sharing = False
    share_limit = 1.5
    fraction = 1.0
    profiler_nodes = 0
    profile_time = 0.0
    planned = False
    across = False
    period = 0.0

    @staticmethod
    def key(now: float, job: np.void, knobs: np.void) -> float:
        """Place in the order, lowest first; abstract.

        Return it, a float.
        """
        raise NotImplementedError

    @staticmethod
    def change(now: float, job: np.void, knobs: np.void) -> float:
        """Return the time (s), a float, at which the key of `job` next changes, if it goes on as it is; inf: never."""
        return np.inf

    @staticmethod
    def gate(now: float, job: np.void, knobs: np.void) -> float:
        """Return the value, a float, by which `fraction` lets jobs pass, lowest first."""
        return 0.0

    @staticmethod
    def standing(now: float, usage: np.ndarray, tree: np.ndarray, knobs: np.void) -> np.ndarray:
        """Return an array of how each account (U,) stands: `job.standing` of keys; abstract, called if `period` is above 0.

        Parameters
        ----------
        now : float
        usage : (U,) float array
            Decayed usage of each account now (GPU-s).
        tree : (R,) record array
            `parent`, `shares`, `account`, as `accounts` gives them.
        knobs : record
        """
        raise NotImplementedError

    @staticmethod
    def planner(now: float, *seen: np.ndarray) -> np.ndarray:
        """Cells (C,) of jobs that start now: `answer` (row of `queue`), `node` and `slots`; abstract, called if `planned` is true.

        It takes `now` (s); nodes (N,); runs (R + 1,), with their ends (s) and first `cells`, the last row ends the one before; queue (Q,),
        waiting jobs in order; windows, announced outages; rule (1,), with the fields of `Plan`; cells (C,) of running jobs; allowed
        (K, N), whether jobs of a kind may use a node, which is up; reach (K, N), the same of whatever GPU type they ask for; wake (1,),
        to be set to an instant (s) before which no later plan starts a job unless something happens; claims (Q, C) of the waiting jobs,
        and the rest (L,) of each quota (`Policy.quotas`), of which each waiting job fits now; and knobs.
        """
        raise NotImplementedError

    def rule(self) -> np.ndarray:
        """Return an array (1,), the RULE record that the engine follows."""
        rule = super().rule()
        for rule_name, numbers_of_words in (("backfill", BACKFILL), ("moving", MOVING)):
            rule_word = getattr(self, rule_name)
            if rule_word not in numbers_of_words:
                raise PolicyError(
                    f"{self.name}.{rule_name}: found {rule_word!r}; expected one of {sorted(numbers_of_words)}."
                )
            rule[rule_name] = numbers_of_words[rule_word]
        for rule_name in ("preemptive", "sharing", "planned", "across"):
            rule[rule_name] = self._flag(rule_name)
        rule["backfill"] = PLAN if self.planned else rule["backfill"]  # a planner, too, sees waiting jobs in order
        self._rule_plan(rule)
        for rule_name in ("lease", "lease_grid", "patience", "skew", "share_limit", "fraction", "period"):
            rule[rule_name] = self._number(rule_name)
        if not isinstance(self.profiler_nodes, int | np.integer) or self.profiler_nodes < 0:
            raise PolicyError(f"{self.name}.profiler_nodes: found {self.profiler_nodes!r}; expected nodes, 0 or more.")
        rule["profile"] = self._number("profile_time") if self.profiler_nodes else 0.0
        return rule

    def _rule_plan(self, rule: np.ndarray):
        """Put the plan into a rule; "easy" is the plan of one promise."""
        plan = self.plan if self.backfill == "plan" else Plan()
        rule["depth"] = self._number("depth") if self.backfill == "plan" else 1
        if not isinstance(plan, Plan):
            raise PolicyError(f"{self.name}.plan: found {plan!r}; expected a Plan, such as Plan(tested=500).")
        for plan_name, plan_value in plan.knobs.items():
            rule[plan_name] = plan_value
        if self.backfill != "plan":
            return
        if self.preemptive:
            raise PolicyError(
                f"{self.name}: found backfill='plan' and preemptive=True; expected one of them: nothing can be promised beside jobs "
                "that may be suspended."
            )
        if plan.every and self.interval >= SHORTEST:
            raise PolicyError(
                f"{self.name}: found interval={self.interval:g} s and a plan every {plan.every:g} s; expected one of them."
            )
