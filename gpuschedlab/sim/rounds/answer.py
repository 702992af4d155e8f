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
    """Whether jobs get their requested number or nothing, and no more than there is; their types (n,), -1 if they wait, and slots (n,)."""
    given = np.zeros(len(capacity))
    kinds = np.full(len(gpus), -1)
    slots = np.zeros(len(gpus))
    for i in range(len(gpus)):
        if gpus[i] != 0:
            if gpus[i] != asked[i] or not 0 <= types[i] < len(capacity):
                return False, kinds, slots
            kinds[i] = types[i]
            slots[i] = np.ceil(gpus[i] * SLOTS - 1e-6)
            given[types[i]] += gpus[i]
    return bool(np.all(given <= capacity + 1e-9)), kinds, slots


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
        given = self.answer
        out = np.zeros(self.n, ANSWER)
        out["job"] = self.view.index
        out["host"] = -1
        out["source"] = -1
        out["delay"] = -1.0
        host, reserved = (out["host"], {}) if self._usual(out) else self._demands(out)
        if self.view.bound:
            self._types(out)
        if given.merged is not None:
            out["joint"] = self._flags("merged") & (host >= 0)
        if given.source is not None:
            out["source"] = self._sources()
        if given.delay is not None:
            out["delay"] = self._delays()
        cells = self._cells(out, host)
        if given.partner is not None:
            out["host"] = np.where(host >= 0, self.view.index[host] if self.n else host, -1)
        self._proved()
        return Checked(out, cells, reserved, self._wake())

    def _usual(self, out) -> bool:
        """Fill in types and slots of an answer in which nothing of these is unusual; False: it needs a closer look."""
        given = self.answer
        gpus = self.answer.gpus
        types = self.answer.gpu_type
        if given.partner is not None or given.profiling is not None or given.reserved:
            return False
        for array, kind in ((gpus, "f"), (types, "i")):
            if not isinstance(array, np.ndarray) or array.dtype.kind != kind or array.shape != (self.n,):
                return False
        given = (np.require(gpus, float, "CW"), np.require(types, np.int64, "CW"))
        good, out["type"], out["slots"] = usual(*given, self.view.gpus, self.view.capacity)
        return good

    def _types(self, out):
        """Check that jobs get none but the types and partitions that they asked for."""
        given = out["slots"] > 0
        for i in np.flatnonzero(given & ~self.view.allowed[np.arange(self.n), out["type"]])[:1]:
            names = np.array(self.view.cluster.gpu_types)
            raise self._error(
                f"job {self.view.job_id(i)} is given GPUs of {names[out['type'][i]]}; expected {', '.join(names[self.view.allowed[i]])}, "
                "which it asks for: view.allowed says it of all jobs."
            )

    def _demands(self, out) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Check GPUs, types, partners and capacity; return an array (n,) of positions of hosts, and a dict of reservations."""
        given = self.answer
        host = out["host"]
        gpus = self._numbers("gpus")
        self._demand(gpus >= 0, "gpus", gpus, "0 or more", ", which is negative")
        held = gpus > 0
        types = self._whole("gpu_type", 0, len(self.view.cluster.gpu_types) - 1, held)
        out["type"] = np.where(held, types, -1)
        out["slots"] = np.ceil(gpus * SLOTS - 1e-6)
        if given.profiling is not None:
            out["idle"] = self._flags("profiling") & held
        if given.partner is not None:
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
        wrong = np.flatnonzero(~good)
        i = int(wrong[0])
        more = f" ({len(wrong) - 1} more like it)" if len(wrong) > 1 else ""
        raise self._error(f"{field} of job {self.view.job_id(i)} is {values[i]}{fault}{more}; expected {expected}.")

    def _array(self, field: str, given, kind=float) -> np.ndarray:
        try:
            return np.asarray(given, kind)
        except (TypeError, ValueError) as error:
            raise self._error(f"{field} holds what is no number: {error}.") from error

    def _numbers(self, field: str) -> np.ndarray:
        values = self._array(field, getattr(self.answer, field))
        if values.shape != (self.n,):
            raise self._error(
                f"{field} has shape {values.shape}; expected ({self.n},), an entry for each job of the view."
            )
        self._demand(np.isfinite(values), field, values, "a number", ", which is not finite")
        return values

    def _flags(self, field: str) -> np.ndarray:
        return self._numbers(field) != 0

    def _whole(self, field: str, low: int, high: int, used=True) -> np.ndarray:
        """Return the array of a field's whole numbers, which must lie between two bounds wherever they are used."""
        values = self._numbers(field)
        whole = (values >= low) & (values <= high) & (values == np.floor(values))
        self._demand(whole | ~np.asarray(used), field, values, f"{low} to {high}, a whole number")
        return values.astype(np.int64)

    def _requests(self, gpus, out):
        """Rigid jobs get exactly the GPUs that they requested, unless they are profiled."""
        asked = np.ceil(self.view.gpus * SLOTS - 1e-6)
        wrong = (out["slots"] > 0) & (out["slots"] != asked) & (out["idle"] == 0) & ~self.view.elastic
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            raise self._error(
                f"job {self.view.job_id(i)} has {gpus[i]:g} GPUs and requests {self.view.gpus[i]:g}; no table has its speed "
                "on another number. Give it what it requests or nothing, profile it, or pass speeds in which its model "
                "is elastic."
            )

    def _partners(self, gpus, types) -> np.ndarray:
        host = self._whole("partner", -1, self.n - 1)
        guests = np.flatnonzero((host >= 0) & (gpus > 0))
        for i in guests:
            h = host[i]
            expected = f"a job with {gpus[i]:g} GPUs of the same type, of its own, shared with no third"
            if h == i or host[h] >= 0 or gpus[h] != gpus[i] or types[h] != types[i] or (host[guests] == h).sum() > 1:
                self._demand(np.arange(self.n) != i, "partner", host, expected)
        return np.where(gpus > 0, host, -1)

    def _sources(self) -> np.ndarray:
        source = self._whole("source", -1, self.view.submitted - 1)
        rows = np.flatnonzero((source >= 0) & (source != self.view.index))
        good = np.full(self.n, True)
        good[rows] = self.view.has_run(source[rows])
        self._demand(good, "source", source, "the row of a job that has run")
        return source

    def _delays(self) -> np.ndarray:
        kinds = np.asarray(self.answer.delay, object)
        if kinds.shape != (self.n,):
            raise self._error(f"delay has shape {kinds.shape}; expected ({self.n},), a kind of start each.")
        seconds = np.full(self.n, -1.0)
        names = self.view.start_kinds
        known = ", ".join(map(repr, names)) or "none"
        self._demand(np.isin(kinds, ("", *names)), "delay", kinds, f"'' or one of Delays.kinds ({known})")
        for kind in sorted(set(kinds.tolist()) - {""}):
            rows = np.flatnonzero(kinds == kind)
            seconds[rows] = self.view.start_seconds(kind, rows)
        return seconds

    def _reserved(self) -> dict[str, np.ndarray]:
        types = len(self.view.cluster.gpu_types)
        found = {}
        for name, given in self.answer.reserved.items():
            gpus = self._array(f"reserved[{name!r}]", given)
            gpus = np.full(1, gpus) if gpus.ndim == 0 and types == 1 else gpus
            if gpus.shape != (types,) or not np.isfinite(gpus).all() or (gpus < 0).any():
                raise self._error(
                    f"reserved[{name!r}] is {given}; expected ({types},) GPUs, one number for each type, 0 or more."
                )
            found[str(name)] = gpus
        return found

    def _capacity(self, gpus, types, reserved):
        kept = sum(reserved.values(), np.zeros(len(self.view.cluster.gpu_types)))
        given = np.bincount(types[gpus > 0], weights=gpus[gpus > 0], minlength=len(kept))
        for t in np.flatnonzero(given + kept > self.view.capacity + 1e-9):
            beside = f" beside {kept[t]:g} reserved" if kept[t] else ""
            raise PolicyError(
                f"{self.who} gave {given[t]:g} GPUs of {self.view.cluster.gpu_types[t]}{beside} {self.when}; "
                f"the cluster has {self.view.capacity[t]:g} up. Return at most view.capacity."
            )

    def _cells(self, out, host) -> np.ndarray:
        """Return an array of rows of nodes by job and node; `out` gets the rows of each job."""
        if self.answer.nodes is None or len(self.answer.nodes) == 0:
            return np.zeros(0, CELL)
        rows = self._array("nodes", self.answer.nodes)
        if rows.ndim != 2 or rows.shape[1] != 3:
            raise self._error(f"nodes has shape {rows.shape}; expected (m, 3), rows of job, node, GPUs.")
        self._rows(rows, out, host)
        owner = rows[:, POSITION].astype(int)
        named = np.full(self.n, len(rows))  # the row that names each job first: in this order they take their GPUs
        np.minimum.at(named, owner, np.arange(len(rows)))
        rows = rows[np.lexsort((rows[:, NODE], named[owner]))]
        owner = rows[:, POSITION].astype(int)
        cells = np.zeros(len(rows), CELL)
        cells["answer"] = owner
        cells["node"] = rows[:, NODE]
        cells["slots"] = np.ceil(rows[:, GPUS] * SLOTS - 1e-6)
        out["cells"] = np.bincount(owner, minlength=self.n)
        out["first"][owner[::-1]] = np.arange(len(rows))[::-1]
        total = np.bincount(owner, cells["slots"], self.n)
        self._demand(
            (out["cells"] == 0) | (total == out["slots"]), "nodes", total / SLOTS, "rows that add up to its GPUs"
        )
        return cells

    def _rows(self, rows, out, host):
        """Each row names a job and a node that are there, once, with GPUs that the node has."""
        cluster = self.view.cluster
        whole = rows[:, : NODE + 1]
        fits = np.isfinite(rows).all(axis=1) & (whole == np.floor(whole)).all(axis=1) & (rows[:, GPUS] > 0)
        fits &= (whole >= 0).all(axis=1) & (rows[:, POSITION] < self.n) & (rows[:, NODE] < cluster.total_nodes)
        if fits.all():
            job, node = whole.astype(int).T
            fits = (out["type"][job] == cluster.node_type[node]) & (host[job] < 0) & self.view.up[node]
            given = np.bincount(node, rows[:, GPUS], cluster.total_nodes)
            fits &= given[node] <= cluster.node_gpus[node] + 1e-9
            _, which, counts, _ = distinct_rows(whole.astype(int))
            fits &= counts[which] == 1
        if not fits.all():
            i = int(np.flatnonzero(~fits)[0])
            raise self._error(
                f"row {i} of nodes is {rows[i].tolist()}; expected a job of the view that has GPUs of its own, a "
                "node of its type that is up, once, and no more GPUs than the node has for all of them."
            )

    def _proved(self):
        """Raise an error unless the log of the round is numbers and a text."""
        for name in ("objective", "bound", "seconds"):
            if not isinstance(value := getattr(self.answer, name), NUMBER):
                raise self._error(f"{name} is {value!r}; expected a number, or nan.")
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
