"""Quotas of queues that lend to each other within a cohort, as Kueue's ClusterQueues do."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpuschedlab._knob import check_number
from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import check_fields

INF = float("inf")
NEXT = "TryNextFlavor"


@dataclass(frozen=True)
class Queue:
    """Quotas of one queue.

    Parameters
    ----------
    name, cohort : str
        Queues of the same cohort lend to each other; "": none does.
    nominal, borrow, lend : tuple of (str, float)
        GPUs by type: its own, at most so many beyond them, at most so many of its own to others; no entry: no limit.
    strict : bool
        Whether the first job that does not fit blocks the queue.
    reclaim, within : str
        Whose jobs are evicted for a job of no more than nominal: Never, LowerPriority, Any of other queues; Never, LowerPriority,
        LowerOrNewerEqualPriority of its own.
    when_can_borrow, when_can_preempt : str
        Whether the search for a type ends at one where the job fits by borrowing (Borrow), and at one where it can evict (Preempt), or
        goes on (TryNextFlavor).
    weight : float
        Of fair sharing.
    borrow_within, threshold : str, float
        Whether a job evicts jobs of other queues while its own borrows (borrowWithinCohort: Never, LowerPriority), without fair
        sharing: those of lower priority that is at most the threshold.

    References
    ----------
    Kueue documentation, pages "ClusterQueue", "Cohort" and "Preemption"; KEP-1714.
    """

    name: str
    cohort: str = ""
    nominal: tuple[tuple[str, float], ...] = ()
    borrow: tuple[tuple[str, float], ...] = ()
    lend: tuple[tuple[str, float], ...] = ()
    strict: bool = False
    reclaim: str = "Never"
    within: str = "Never"
    weight: float = 1.0
    when_can_borrow: str = "Borrow"
    when_can_preempt: str = NEXT
    borrow_within: str = "Never"
    threshold: float = INF

    def __post_init__(self):
        check_fields(self, PolicyError, f"queue {self.name!r}.")
        if not self.name:
            raise PolicyError("queue.name: found ''; expected a name.")
        if math.isnan(self.threshold):
            raise PolicyError(f"queue {self.name!r}.threshold: found nan; expected a priority.")
        for name, expected in (
            ("reclaim", ("Never", "LowerPriority", "Any")),
            ("within", ("Never", "LowerPriority", "LowerOrNewerEqualPriority")),
            ("borrow_within", ("Never", "LowerPriority")),
            ("when_can_borrow", ("Borrow", NEXT)),
            ("when_can_preempt", (NEXT, "Preempt")),
        ):
            if getattr(self, name) not in expected:
                raise PolicyError(
                    f"queue {self.name!r}.{name}: found {getattr(self, name)!r}; expected one of {', '.join(expected)}."
                )
        for name in ("nominal", "borrow", "lend"):
            pairs = getattr(self, name)
            if wrong := next((pair for pair in pairs if not pair[1] >= 0), None):
                raise PolicyError(f"queue {self.name!r}.{name}: found {wrong}; expected GPUs, 0 or more.")
            if len(dict(pairs)) < len(pairs):
                raise PolicyError(f"queue {self.name!r}.{name}: found {pairs}; expected each GPU type once.")
        check_number(self.weight, PolicyError, f"queue {self.name!r}.weight", "a finite number, 0 or more")

    def quota(self, gpu_type: str) -> tuple[float, float, float]:
        """Return a tuple: nominal quota, borrowing limit and lending limit of a GPU type."""
        nominal = dict(self.nominal).get(gpu_type, 0.0)
        return nominal, dict(self.borrow).get(gpu_type, INF), min(dict(self.lend).get(gpu_type, INF), nominal)


def most(queues: Sequence[Queue], name: str, gpu_type: str) -> float:
    """Return the number of GPUs of a type, a float, that a queue may take if no job uses any.

    It is its own, and loans of its cohort, within its borrowing limit.
    """
    queue = next(q for q in queues if q.name == name)
    nominal, borrow, lend = queue.quota(gpu_type)
    if not queue.cohort:
        return nominal
    lent = sum(q.quota(gpu_type)[2] for q in queues if q.cohort == queue.cohort)
    return min(nominal - lend + lent, nominal + borrow)
