"""The check of a round's answer, and its form as the engine takes it; an impossible answer is refused by name."""

from typing import NamedTuple

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.cluster.distinct_rows import distinct_rows
from gpuschedlab.cluster.node_index import SLOTS
from gpuschedlab.errors import PolicyError
from gpuschedlab.sim.engine.jobs.records import ANSWER, CELL, SHORTEST
from gpuschedlab.sim.rounds.allocation import GPUS, NODE, POSITION, Allocation

NUMBER = int | float | np.number


class Checked(NamedTuple):
    """Answer that the engine puts into force: (n,) ANSWER, (m,) CELL, reserved GPUs by name and type, wake (s; nan: as always)."""

    jobs: np.ndarray
    cells: np.ndarray
    reserved: dict[str, np.ndarray]
    wake: float


@njit
def usual(gpus, types, asked, capacity):
    """Return a tuple: whether jobs get their request or nothing, within capacity; types (n,), -1 if they wait; slots (n,)."""
    gpus_given = np.zeros(len(capacity))
    answered_types = np.full(len(gpus), -1)
    slots = np.zeros(len(gpus))
    for job in range(len(gpus)):
        if gpus[job] != 0:
            if gpus[job] != asked[job] or not 0 <= types[job] < len(capacity):
                return False, answered_types, slots
            answered_types[job] = types[job]
            slots[job] = np.ceil(gpus[job] * SLOTS - 1e-6)
            gpus_given[types[job]] += gpus[job]
    return bool(np.all(gpus_given <= capacity + 1e-9)), answered_types, slots


class Check:
    """A round's answer under examination, against its view."""

    def __init__(self, answer, view, who: str):
        self.answer = answer
        self.view = view
        self.n = len(view)
        self.who = who
        self.when = f"at t={view.now:g} s"

    def checked(self) -> Checked:
        """Check the fields one by one and return them as `Checked`; raise the policy's error if one is wrong."""
        if not isinstance(self.answer, Allocation):
            raise self._error(f"found {type(self.answer).__name__}; expected an Allocation.")
        allocation = self.answer
        checked_jobs = np.zeros(self.n, ANSWER)
        checked_jobs["job"] = self.view.index
        checked_jobs["host"] = -1
        checked_jobs["source"] = -1
        checked_jobs["delay"] = -1.0
        host, reserved = (checked_jobs["host"], {}) if self._usual(checked_jobs) else self._demands(checked_jobs)
        if self.view.bound:
            self._types(checked_jobs)
        if allocation.merged is not None:
            checked_jobs["joint"] = self._flags("merged") & (host >= 0)
        if allocation.source is not None:
            checked_jobs["source"] = self._sources()
        if allocation.delay is not None:
            checked_jobs["delay"] = self._delays()
        answer_cells = self._cells(checked_jobs, host)
        if allocation.partner is not None:
            checked_jobs["host"] = np.where(host >= 0, self.view.index[host] if self.n else host, -1)
        self._proved()
        return Checked(checked_jobs, answer_cells, reserved, self._wake())

    def _usual(self, out) -> bool:
        """Fill in types and slots of an answer in which nothing of these is unusual; False: it needs a closer look."""
        given = self.answer
        gpus = self.answer.gpus
        types = self.answer.gpu_type
        if given.partner is not None or given.profiling is not None or given.reserved:
            return False
        for array, dtype_kind in ((gpus, "f"), (types, "i")):
            if not isinstance(array, np.ndarray) or array.dtype.kind != dtype_kind or array.shape != (self.n,):
                return False
        given = (np.require(gpus, float, "CW"), np.require(types, np.int64, "CW"))
        good, out["type"], out["slots"] = usual(*given, self.view.gpus, self.view.capacity)
        return good

    def _types(self, out):
        """Check that jobs get none but the types and partitions that they asked for."""
        has_gpus = out["slots"] > 0
        for job in np.flatnonzero(has_gpus & ~self.view.allowed[np.arange(self.n), out["type"]])[:1]:
            type_names = np.array(self.view.cluster.gpu_types)
            raise self._error(
                f"job {self.view.job_id(job)} is given GPUs of {type_names[out['type'][job]]}; expected "
                f"{', '.join(type_names[self.view.allowed[job]])}, "
                "which it asks for: view.allowed says it of all jobs."
            )

    def _demands(self, out) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Check GPUs, types, partners and capacity; return a tuple: an array (n,) of positions of hosts, and a dict of reservations."""
        allocation = self.answer
        host = out["host"]
        gpus = self._numbers("gpus")
        self._demand(gpus >= 0, "gpus", gpus, "0 or more", ", which is negative")
        has_gpus = gpus > 0
        types = self._whole("gpu_type", 0, len(self.view.cluster.gpu_types) - 1, has_gpus)
        out["type"] = np.where(has_gpus, types, -1)
        out["slots"] = np.ceil(gpus * SLOTS - 1e-6)
        if allocation.profiling is not None:
            out["idle"] = self._flags("profiling") & has_gpus
        if allocation.partner is not None:
            host = self._partners(gpus, out["type"])
        reserved = self._reserved()
        self._capacity(gpus * (host < 0), out["type"], reserved)
        self._requests(gpus, out)
        return host, reserved

    def _error(self, problem: str) -> PolicyError:
        return PolicyError(f"{self.who} {self.when}: {problem}")

    def _demand(self, good: np.ndarray, field: str, values, expected: str, fault: str = ""):
        """Name the first job for which a field is wrong."""
        if good.all():
            return
        wrong_jobs = np.flatnonzero(~good)
        job = int(wrong_jobs[0])
        further_jobs = f" ({len(wrong_jobs) - 1} more like it)" if len(wrong_jobs) > 1 else ""
        raise self._error(
            f"{field} of job {self.view.job_id(job)} is {values[job]}{fault}{further_jobs}; expected {expected}."
        )

    def _array(self, field: str, field_values, kind=float) -> np.ndarray:
        try:
            return np.asarray(field_values, kind)
        except (TypeError, ValueError) as error:
            raise self._error(f"{field} holds what is no number: {error}.") from error

    def _numbers(self, field: str) -> np.ndarray:
        answered_numbers = self._array(field, getattr(self.answer, field))
        if answered_numbers.shape != (self.n,):
            raise self._error(
                f"{field} has shape {answered_numbers.shape}; expected ({self.n},), an entry for each job of the view."
            )
        self._demand(np.isfinite(answered_numbers), field, answered_numbers, "a number", ", which is not finite")
        return answered_numbers

    def _flags(self, field: str) -> np.ndarray:
        return self._numbers(field) != 0

    def _whole(self, field: str, low: int, high: int, used=True) -> np.ndarray:
        """Return the array of a field's whole numbers, which must lie between two bounds wherever they are used."""
        answered_numbers = self._numbers(field)
        in_bounds = (
            (answered_numbers >= low) & (answered_numbers <= high) & (answered_numbers == np.floor(answered_numbers))
        )
        self._demand(in_bounds | ~np.asarray(used), field, answered_numbers, f"{low} to {high}, a whole number")
        return answered_numbers.astype(np.int64)

    def _requests(self, gpus, out):
        """Rigid jobs get exactly the GPUs that they requested, unless they are profiled."""
        requested_slots = np.ceil(self.view.gpus * SLOTS - 1e-6)
        wrong_requests = (
            (out["slots"] > 0) & (out["slots"] != requested_slots) & (out["idle"] == 0) & ~self.view.elastic
        )
        if wrong_requests.any():
            job = int(np.flatnonzero(wrong_requests)[0])
            raise self._error(
                f"job {self.view.job_id(job)} has {gpus[job]:g} GPUs and requests {self.view.gpus[job]:g}; no "
                "table has its speed "
                "on another number. Give it what it requests or nothing, profile it, or pass speeds in which its model "
                "is elastic."
            )

    def _partners(self, gpus, types) -> np.ndarray:
        host = self._whole("partner", -1, self.n - 1)
        guests = np.flatnonzero((host >= 0) & (gpus > 0))
        for guest in guests:
            host_of_guest = host[guest]
            expected = f"a job with {gpus[guest]:g} GPUs of the same type, of its own, shared with no third"
            if (
                host_of_guest == guest
                or host[host_of_guest] >= 0
                or gpus[host_of_guest] != gpus[guest]
                or types[host_of_guest] != types[guest]
                or (host[guests] == host_of_guest).sum() > 1
            ):
                self._demand(np.arange(self.n) != guest, "partner", host, expected)
        return np.where(gpus > 0, host, -1)

    def _sources(self) -> np.ndarray:
        source = self._whole("source", -1, self.view.submitted - 1)
        jobs_with_source = np.flatnonzero((source >= 0) & (source != self.view.index))
        good = np.full(self.n, True)
        good[jobs_with_source] = self.view.has_run(source[jobs_with_source])
        self._demand(good, "source", source, "the row of a job that has run")
        return source

    def _delays(self) -> np.ndarray:
        answered_kinds = np.asarray(self.answer.delay, object)
        if answered_kinds.shape != (self.n,):
            raise self._error(f"delay has shape {answered_kinds.shape}; expected ({self.n},), a kind of start each.")
        seconds = np.full(self.n, -1.0)
        kind_names = self.view.start_kinds
        known_kinds = ", ".join(map(repr, kind_names)) or "none"
        known_words = ("", *kind_names)
        is_known = np.array([kind in known_words for kind in answered_kinds], bool)
        self._demand(is_known, "delay", answered_kinds, f"'' or one of Delays.kinds ({known_kinds})")
        for start_kind in sorted(set(answered_kinds.tolist()) - {""}):
            jobs_of_kind = np.flatnonzero(answered_kinds == start_kind)
            seconds[jobs_of_kind] = self.view.start_seconds(start_kind, jobs_of_kind)
        return seconds

    def _reserved(self) -> dict[str, np.ndarray]:
        types = len(self.view.cluster.gpu_types)
        reserved_gpus = {}
        for pool_name, answered_gpus in self.answer.reserved.items():
            gpus = self._array(f"reserved[{pool_name!r}]", answered_gpus)
            gpus = np.full(1, gpus) if gpus.ndim == 0 and types == 1 else gpus
            if gpus.shape != (types,) or not np.isfinite(gpus).all() or (gpus < 0).any():
                raise self._error(
                    f"reserved[{pool_name!r}] is {answered_gpus}; expected ({types},) GPUs, one number for each type, 0 or more."
                )
            reserved_gpus[str(pool_name)] = gpus
        return reserved_gpus

    def _capacity(self, gpus, types, reserved):
        reserved_gpus = sum(reserved.values(), np.zeros(len(self.view.cluster.gpu_types)))
        answered_gpus = np.bincount(types[gpus > 0], weights=gpus[gpus > 0], minlength=len(reserved_gpus))
        for type_number in np.flatnonzero(answered_gpus + reserved_gpus > self.view.capacity + 1e-9):
            beside = f" beside {reserved_gpus[type_number]:g} reserved" if reserved_gpus[type_number] else ""
            raise PolicyError(
                f"{self.who} gave {answered_gpus[type_number]:g} GPUs of "
                f"{self.view.cluster.gpu_types[type_number]}{beside} {self.when}; "
                f"the cluster has {self.view.capacity[type_number]:g} up. Return at most view.capacity."
            )

    def _cells(self, out, host) -> np.ndarray:
        """Return an array of rows of nodes by job and node; `out` gets the rows of each job."""
        if self.answer.nodes is None or len(self.answer.nodes) == 0:
            return np.zeros(0, CELL)
        node_rows = self._array("nodes", self.answer.nodes)
        if node_rows.ndim != 2 or node_rows.shape[1] != 3:
            raise self._error(f"nodes has shape {node_rows.shape}; expected (m, 3), rows of job, node, GPUs.")
        self._rows(node_rows, out, host)
        owner = node_rows[:, POSITION].astype(int)
        named = np.full(self.n, len(node_rows))  # the row that names each job first: in this order they take their GPUs
        np.minimum.at(named, owner, np.arange(len(node_rows)))
        node_rows = node_rows[np.lexsort((node_rows[:, NODE], named[owner]))]
        owner = node_rows[:, POSITION].astype(int)
        answer_cells = np.zeros(len(node_rows), CELL)
        answer_cells["answer"] = owner
        answer_cells["node"] = node_rows[:, NODE]
        answer_cells["slots"] = np.ceil(node_rows[:, GPUS] * SLOTS - 1e-6)
        out["cells"] = np.bincount(owner, minlength=self.n)
        out["first"][owner[::-1]] = np.arange(len(node_rows))[::-1]
        slots_of_job = np.bincount(owner, answer_cells["slots"], self.n)
        self._demand(
            (out["cells"] == 0) | (slots_of_job == out["slots"]),
            "nodes",
            slots_of_job / SLOTS,
            "rows that add up to its GPUs",
        )
        return answer_cells

    def _rows(self, node_rows, out, host):
        """Each row names a job and a node that are there, once, with GPUs that the node has."""
        cluster = self.view.cluster
        job_and_node = node_rows[:, : NODE + 1]
        fits = (
            np.isfinite(node_rows).all(axis=1)
            & (job_and_node == np.floor(job_and_node)).all(axis=1)
            & (node_rows[:, GPUS] > 0)
        )
        fits &= (
            (job_and_node >= 0).all(axis=1)
            & (node_rows[:, POSITION] < self.n)
            & (node_rows[:, NODE] < cluster.total_nodes)
        )
        if fits.all():
            job, node = job_and_node.astype(int).T
            fits = (out["type"][job] == cluster.node_type[node]) & (host[job] < 0) & self.view.up[node]
            gpus_of_node = np.bincount(node, node_rows[:, GPUS], cluster.total_nodes)
            fits &= gpus_of_node[node] <= cluster.node_gpus[node] + 1e-9
            pairs = np.sort(job * cluster.total_nodes + node)
            if (pairs[1:] == pairs[:-1]).any():
                _, which, rows_of_pair, _ = distinct_rows(job_and_node.astype(int))
                fits &= rows_of_pair[which] == 1
        if not fits.all():
            bad_row = int(np.flatnonzero(~fits)[0])
            raise self._error(
                f"row {bad_row} of nodes is {node_rows[bad_row].tolist()}; expected a job of the view that has "
                "GPUs of its own, a "
                "node of its type that is up, once, and no more GPUs than the node has for all of them."
            )

    def _proved(self):
        """Raise an error unless the log of the round is numbers and a text."""
        for proof_field in ("objective", "bound", "seconds"):
            if not isinstance(proof_value := getattr(self.answer, proof_field), NUMBER):
                raise self._error(f"{proof_field} is {proof_value!r}; expected a number, or nan.")
        if not isinstance(self.answer.status, str):
            raise self._error(f"status is {self.answer.status!r}; expected a text.")

    def _wake(self) -> float:
        wake = self.answer.wake
        if wake is None:
            return np.nan
        if not isinstance(wake, NUMBER) or np.isnan(wake) or wake < self.view.now + SHORTEST:
            raise self._error(
                f"wake is {wake!r}; expected an instant (s) at least {SHORTEST:g} s from now, inf, or None."
            )
        return float(wake)
