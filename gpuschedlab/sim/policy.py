"""Base of all policies, and those that give an allocation a round, in plain Python."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from gpuschedlab.cluster.placement import RULES
from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import Knobbed
from gpuschedlab.sim.engine.jobs.records import RULE, SHORTEST

if TYPE_CHECKING:
    from gpuschedlab.cluster import Cluster
    from gpuschedlab.sim.rounds.allocation import Allocation
    from gpuschedlab.sim.rounds.view import View

LONGEST = 1e12
"""Longest time (s) of an attribute that is to pass."""

LIMITS = {
    **dict.fromkeys(
        ("interval", "lease", "lease_grid", "profile_time", "period"), (0.0, LONGEST, "seconds, 0 or more")
    ),
    "patience": (0.0, np.inf, "seconds, 0 or more, or inf"),
    "skew": (0.0, np.inf, "a relative speed, 0 or more"),
    "share_limit": (0.0, np.inf, "a sum of relative speeds, 0 or more"),
    "fraction": (0.0, 1.0, "a share, 0 to 1"),
    "depth": (0.0, np.inf, "jobs, 0 or more, or inf"),
    "half_life": (SHORTEST, np.inf, "seconds above 0, or inf"),
}
"""Range of the numbers among a policy's attributes: lowest, highest, in words."""


class Policy(Knobbed):
    """Base of both kinds: the placement of jobs, and how often it decides.

    Attributes
    ----------
    placement : str
        A rule of `gpuschedlab.cluster.RULES`.
    interval : float
        Seconds between decisions; below a millisecond (Ordered only): at every event.
    set_aside : tuple of str
        Knobs that a tuner leaves alone.
    goals : tuple of str
        Objectives that are measured, of `gpuschedlab.autosched.OBJECTIVES`, first the one that is tuned for.
    weights : tuple of float
        Of the goals, if all of them together are tuned for; (): for the first.
    watched : tuple of str
        Intermediate metrics through which its knobs act, of `gpuschedlab.autosched.WATCHED`.
    charged : tuple of str
        Text columns of the trace, such as ("account", "user"): jobs that are alike in all of them have one account, which is charged
        for the GPUs that they hold. (): nothing is charged; nor is a job that lacks a value.
    half_life : float
        Seconds after which half of the charges is forgotten; inf: nothing is.
    """

    placement = "pack"
    interval = 0.0
    charged = ()
    half_life = np.inf
    set_aside: ClassVar = ("placement", "interval")
    goals: ClassVar = ("jct",)
    weights: ClassVar = ()
    watched: ClassVar = ("queueing", "utilisation", "preemptions", "slowdown", "backlog")

    @property
    def name(self) -> str:
        """Name in tables, a string."""
        return type(self).__name__

    def _number(self, rule_name: str) -> float:
        """Return an attribute that is a number (float), checked against LIMITS."""
        rule_value = getattr(self, rule_name)
        low, high, expected = LIMITS[rule_name]
        if not isinstance(rule_value, int | float | np.number) or not low <= rule_value <= high:
            raise PolicyError(f"{self.name}.{rule_name}: found {rule_value!r}; expected {expected}.")
        return float(rule_value)

    def _flag(self, rule_name: str) -> bool:
        """Return an attribute that is true or false, a bool."""
        rule_flag = getattr(self, rule_name)
        if not isinstance(rule_flag, bool | np.bool_):
            raise PolicyError(f"{self.name}.{rule_name}: found {rule_flag!r}; expected True or False.")
        return bool(rule_flag)

    def accounts(self, trace: pl.DataFrame) -> tuple[np.ndarray, tuple] | None:
        """Return the accounts to which jobs are charged, a pair, or None: those of `charged`, each with one share.

        Returns
        -------
        (n,) array, and (parent, shares, account), (R,) arrays
            Account of each job, -1: none; and the tree in which they share: the row above each row (-1: it is the root, which is the
            first), its shares, and its account, -1 if it has none. Parents come before their children.
        """
        return None

    def quotas(self, trace: pl.DataFrame, cluster: "Cluster") -> tuple[np.ndarray, np.ndarray] | None:
        """Pair of arrays: slots and jobs that may be held at once, for a policy whose own `planner` keeps to them; None without any.

        Returns
        -------
        (n, K) array of CLAIM, and (Q,) array
            Claims of each job (`gpuschedlab.cluster.node_index`), and slots (hundredths of a GPU) or jobs of each quota.
        """
        return None

    def points(self, trace: pl.DataFrame, cluster: "Cluster") -> np.ndarray | float:
        """Points of each job (n,) that do not depend on events: `job.points` of keys."""
        return 0.0

    def rule(self) -> np.ndarray:
        """Return an array (1,), the RULE record that the engine follows."""
        if self.placement not in RULES:
            raise PolicyError(f"{self.name}.placement: found {self.placement!r}; expected one of {sorted(RULES)}.")
        rule = np.zeros(1, RULE)
        rule["placement"] = RULES[self.placement]
        interval = self._number("interval")
        rule["interval"] = interval if interval >= SHORTEST else 0.0
        rule["fraction"] = 1.0
        rule["patience"] = np.inf
        rule["half_life"] = self._number("half_life")
        return rule


class Round(Policy):
    """Decide the GPUs of each job, at intervals, at events or at instants that it requested, in plain Python on numpy arrays.

    A subclass is a frozen dataclass with `allocate(self, view) -> Allocation`, and `begin(self)` if it carries more
    than a dict from round to round. Jobs with an unchanged answer stay where they are.

    Attributes
    ----------
    interval : float
        Seconds between rounds; 0: at arrivals and completions only.
    on_event : bool
        Whether to decide at arrivals and completions, too.
    free_moves : bool
        Whether a job that keeps its configuration may be moved to other nodes at no cost.
    ends_with_jobs : bool
        Whether a round ends when the last of its jobs ends, before its interval is over. The next one begins then, or with the next
        arrival.
    """

    interval = 60.0
    on_event = False
    free_moves = False
    ends_with_jobs = False
    placement = "consolidate"

    def begin(self) -> object:
        """Make its state from round to round (`view.memory`), an object: a new one in each run, at each switch, for each part."""
        return {}

    def allocate(self, view: "View") -> "Allocation":
        """Return the `Allocation` that gives each active job a configuration; abstract."""
        raise NotImplementedError

    def rule(self) -> np.ndarray:
        """Return an array (1,), the RULE record that the engine follows."""
        rule = super().rule()
        rule["rounds"] = 1
        rule["free_moves"] = self._flag("free_moves")
        rule["ends_with_jobs"] = self._flag("ends_with_jobs")
        rule["on_event"] = self._flag("on_event") or self.interval == 0
        return rule


def _as_its_own(name: str) -> property:
    return property(lambda self: getattr(self.policy, name), doc=f"`{name}` of the policy inside.")


class Wrapped(Round):
    """A round policy around another one; the inner one decides when rounds are and how jobs are placed.

    A subclass is a frozen dataclass with the field `policy`, and changes the view or the answer of that one.
    """

    policy: Round
    interval = _as_its_own("interval")
    on_event = _as_its_own("on_event")
    free_moves = _as_its_own("free_moves")
    ends_with_jobs = _as_its_own("ends_with_jobs")
    placement = _as_its_own("placement")

    @property
    def name(self) -> str:
        """Name in tables, a string."""
        return f"{type(self).__name__}({self.policy.name})"

    def begin(self) -> object:
        """Return the state, any object, of the policy inside."""
        return self.policy.begin()
