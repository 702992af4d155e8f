"""A round's answer: the allocation of each job."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

POSITION, NODE, GPUS = range(3)
"""Columns of `Allocation.nodes`."""


@dataclass(frozen=True)
class Allocation:
    """A round's answer; every field after `gpus` has a default that changes nothing.

    Jobs are named by their position in the view, 0 to n - 1, except in `source`, which may name jobs that are done and
    no longer in the view. Jobs with an answer equal to their GPUs go on; all others stop and start again.

    Parameters
    ----------
    gpu_type : (n,) int array
        Index into `view.cluster.gpu_types` for each job of the view.
    gpus : (n,) array
        GPUs of each; 0: none. A job without elastic speeds has its requested number, or none.
    objective, bound : float
        Of the program that was solved, if any: it is maximised, so that no answer is worth more than `bound`. The objective
        is that of this answer, if it is not the program's own.
    status : str
        The solver's status; "optimal" only if this answer is.
    nodes : (m, 3) array, optional
        Rows (job, node, GPUs): the nodes of the jobs that it lists. The placement rule decides for the others, after
        these. A job that changes nodes restarts, or moves at no cost if the policy has `free_moves`.
    partner : (n,) int array, optional
        The job whose GPUs it shares, -1: it has its own. Both have the same type and number of GPUs, which count once.
    merged : (n,) bool array, optional
        How it shares them: True: trained jointly with its partner (`Speeds.merged`); False: packed, each does its own
        work (`Speeds.sharing`).
    source : (n,) int array, optional
        Row in the trace (as in `view.index`) of the job whose result it starts from, when it next starts
        (`Speeds.transfer`); its own row: from its own beginning; -1: as it is.
    profiling : (n,) bool array, optional
        Whether it holds its GPUs, of whatever number, without progress.
    delay : (n,) array of str, optional
        Kind of start, of those in `Delays.kinds`, for jobs that start; "": the delays of every start.
    reserved : mapping of str to (T,) array, optional
        GPUs of each type kept for a purpose without a job, by name: logged in `Run.pools`, billed, never given to a job.
    wake : float, optional
        Instant (s) of the next round, later than now, or inf: on the grid of the policy's interval, if it has one. Anything that
        happens before (arrivals, completions, failures) brings the round forward. None: the interval and events decide.
    seconds : float
        Time that the solver took.
    why : callable, optional
        Without arguments: (n,) a few words on why a job has no GPUs, "" for the others; called for logs of decisions (`Run.explain`).
    """

    gpu_type: np.ndarray
    gpus: np.ndarray
    objective: float = np.nan
    bound: float = np.nan
    status: str = ""
    nodes: np.ndarray | None = None
    partner: np.ndarray | None = None
    merged: np.ndarray | None = None
    source: np.ndarray | None = None
    profiling: np.ndarray | None = None
    delay: np.ndarray | None = None
    reserved: Mapping[str, np.ndarray] = field(default_factory=dict)
    wake: float | None = None
    seconds: float = np.nan
    why: Callable[[], Sequence[str]] | None = None

    @classmethod
    def combined(cls, n: int, parts: Iterable[tuple[np.ndarray, "Allocation"]]) -> "Allocation":
        """Return one `Allocation` for n jobs from the answers for parts of them.

        Parameters
        ----------
        n : int
            Jobs of the whole view; those in no part get nothing.
        parts : iterable of (rows, Allocation)
            Positions (k,) in the whole view of a part's jobs, and its answer.

        Returns
        -------
        Allocation
            Objectives, bounds, seconds and reserved GPUs add up; it wakes with the first part. A part without jobs proves
            nothing and lacks nothing; of a part with jobs and without a status, the status says "no program".

        Examples
        --------
        >>> a = Allocation(np.array([0]), np.array([2.0]), objective=1.0)
        >>> b = Allocation(np.array([1]), np.array([4.0]), objective=2.0)
        >>> whole = Allocation.combined(3, [(np.array([2]), a), (np.array([0]), b)])
        >>> whole.gpus.tolist(), whole.objective
        ([4.0, 0.0, 2.0], 3.0)
        """
        parts = list(parts)
        filled = dict.fromkeys(_EMPTY)
        nodes = []
        reserved = {}
        for rows, part_answer in parts:
            for answer_field, empty in _EMPTY.items():
                part_values = getattr(part_answer, answer_field)
                if part_values is not None:
                    part_values = np.asarray(part_values)
                    if filled[answer_field] is None:
                        filled[answer_field] = np.full(
                            n, empty, part_values.dtype if answer_field != "delay" else object
                        )
                    filled[answer_field][rows] = (
                        np.where(part_values >= 0, rows[part_values], -1) if answer_field == "partner" else part_values
                    )
            if part_answer.nodes is not None and len(part_answer.nodes):
                part_cells = np.array(part_answer.nodes, float)
                part_cells[:, POSITION] = rows[part_cells[:, POSITION].astype(int)]
                nodes.append(part_cells)
            for pool_name, gpus in part_answer.reserved.items():
                reserved[pool_name] = reserved.get(pool_name, 0.0) + np.asarray(gpus, float)
        filled |= {answer_field: np.zeros(n) for answer_field in ("gpu_type", "gpus") if filled[answer_field] is None}
        wakes = [part_answer.wake for _, part_answer in parts]
        solved = [part_answer for rows, part_answer in parts if len(rows)]
        statuses = dict.fromkeys(part_answer.status or "no program" for part_answer in solved)
        return cls(
            **filled,
            nodes=np.concatenate(nodes) if nodes else None,
            reserved=reserved,
            wake=None if None in wakes or not wakes else min(wakes),
            objective=float(sum(part_answer.objective for part_answer in solved)) if solved else np.nan,
            bound=float(sum(part_answer.bound for part_answer in solved)) if solved else np.nan,
            seconds=float(sum(part_answer.seconds for part_answer in solved)) if solved else np.nan,
            status=" ".join(statuses) if any(part_answer.status for part_answer in solved) else "",
        )


_EMPTY = {"gpu_type": 0, "gpus": 0.0, "partner": -1, "merged": False, "source": -1, "profiling": False, "delay": ""}
"""Fields with one entry per job, and their defaults for jobs that no part has."""
