"""A program that is edited between rounds: requests come and go, resources grow and shrink (COpter thesis, 4.3.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gpuschedlab._compiled import njit
from gpuschedlab._knob import check_kind, check_number
from gpuschedlab.errors import SolverError
from gpuschedlab.optim.programs.program import Program, Solution


@dataclass(eq=False)
class EditedProgram:
    """Give each request at most one unit of its variables, within the resources, for the largest worth.

    maximise sum_i w_i'x_i subject to sum x_i <= 1 for each request i, sum_i U_i'x_i <= amounts, 0 <= x <= 1. Each request keeps
    its own columns, and its part of the last point: a `Session`, which takes it in place of a `Program`, goes on from there.

    Parameters
    ----------
    amounts : dict
        Amount of each resource, by name.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, 4.3.2 (add-request, remove-request, add/remove-resources).

    Examples
    --------
    >>> from gpuschedlab.optim import Session
    >>> edited, session = EditedProgram({"gpus": 3.0}), Session("highs")
    >>> edited.add_request("a", worth=[3.0, 5.0], uses={"gpus": [1.0, 2.0]})
    >>> edited.add_request("b", worth=[2.0], uses={"gpus": [2.0]})
    >>> session.update(edited)
    >>> round(session.solve().objective, 4)
    6.0
    >>> edited.remove_request("a")
    >>> round(session.solve().objective, 4), edited.program().A.toarray().tolist()
    (2.0, [[1.0], [2.0]])
    """

    amounts: dict
    name = "Edited program"

    def __post_init__(self):
        expected = "the amount of each resource by its name"
        check_kind(self.amounts, Mapping, SolverError, "EditedProgram.amounts", expected)
        for name, amount in self.amounts.items():
            check_number(amount, SolverError, f"EditedProgram.amounts[{name!r}]", "a number, 0 or more", finite=False)
        self.amounts = {name: float(amount) for name, amount in self.amounts.items()}
        self.edits = 0
        self.prices = np.zeros(len(self.amounts))
        none = np.zeros(0)
        self._put([], none, np.zeros(1, np.int64), none, none, _Uses(np.zeros(1, np.int64), none, none))

    def _put(self, keys, must, first, worth, x, uses):
        """Take arrays: whether each request must be served, first column of each, worth and x of columns, and their uses."""
        self._row = dict(zip(keys, range(len(keys)), strict=True))
        self._must = np.asarray(must, bool)
        self._first = first
        self._worth = worth
        self.x = x
        self._ptr = uses.ptr
        self._at = np.asarray(uses.at, np.int32)
        self._val = uses.val
        self.edits += 1

    def add_request(self, key, worth, uses: dict, must: bool = False) -> None:
        """Add a request with k variables: their worth (k,), and coefficients (k,) in each resource that it uses.

        If it `must`, they sum to 1, not to 1 at most. A key that is there, an unknown resource, or arrays that do not fit are a
        SolverError.
        """
        unknown = set(uses) - set(self.amounts)
        if key in self or unknown:
            wrong = f"{key!r} twice" if key in self else f"resources {sorted(unknown)}"
            raise SolverError(f"add_request: found {wrong}; expected a new key, and of {', '.join(self.amounts)}.")
        worth = np.array(worth, float, ndmin=1)
        try:
            coefficients = (np.asarray(uses.get(resource, 0.0), float) for resource in self.amounts)
            table = np.stack([np.broadcast_to(values, worth.shape) for values in coefficients])
        except ValueError:
            raise SolverError(f"add_request: found uses of {key!r} that do not fit its worth {worth.shape}.") from None
        new = sp.csc_array(table)
        uses = _Uses(
            ptr=np.append(self._ptr, self._ptr[-1] + new.indptr[1:]),
            at=np.append(self._at, new.indices),
            val=np.append(self._val, new.data),
        )
        self._put(
            keys=[*self._row, key],
            must=np.append(self._must, must),
            first=np.append(self._first, self._first[-1] + len(worth)),
            worth=np.append(self._worth, worth),
            x=np.append(self.x, 0.0 * worth),
            uses=uses,
        )

    def remove_request(self, key) -> None:
        """Remove a request, its variables and its row."""
        row, columns = self._found("remove_request", key)
        gone = slice(*self._ptr[[columns.start, columns.stop]])
        first = self._first.copy()
        ptr = self._ptr.copy()
        first[row + 1 :] -= columns.stop - columns.start
        ptr[columns.stop :] -= gone.stop - gone.start
        uses = _Uses(np.delete(ptr, columns), np.delete(self._at, gone), np.delete(self._val, gone))
        self._put(
            keys=[request for request in self._row if request != key],
            must=np.delete(self._must, row),
            first=np.delete(first, row),
            worth=np.delete(self._worth, columns),
            x=np.delete(self.x, columns),
            uses=uses,
        )

    def change_worth(self, key, worth) -> None:
        """Give a request's variables another worth."""
        columns = self._found("change_worth", key)[1]
        worth = np.array(worth, float, ndmin=1)
        if worth.shape != self._worth[columns].shape:
            raise SolverError(
                f"change_worth: found shape {worth.shape} for {key!r}; expected {self._worth[columns].shape}."
            )
        self._worth[columns] = worth
        self.edits += 1

    def change_resource(self, name: str, by: float) -> None:
        """Add an amount to a resource, or take it away (`by` below 0)."""
        if name not in self.amounts or self.amounts[name] + by < 0:
            raise SolverError(f"change_resource: found {name!r} {by:+g}; expected one of {self.amounts}, not below 0.")
        self.amounts[name] += by
        self.edits += 1

    def put_requests(self, keys, first, worth, at, val, must) -> None:
        """Make the requests those given, each column of one resource: one edit for all that came, went or changed.

        Parameters
        ----------
        keys : list
            Of the n requests.
        first : (n + 1,) int array
            Where the columns of each begin.
        worth, at, val : (k,) arrays
            Worth of each column, number of the resource that it uses, and how much. Columns of a request whose `at` and `val` are
            those of one that it had (in rising order) go on from its last value.
        must : (n,) bool array
        """
        before = np.array([self._row.get(key, -1) for key in keys], np.int64)
        x = np.zeros(len(worth))
        if len(self._at) == len(self._worth):
            _carry(before, _Columns(self._first, self._at, self._val, self.x), _Columns(first, at, val, x))
        one_each = _Uses(np.arange(len(worth) + 1), at, val)
        self._put(keys, must, first, np.array(worth, float), x, one_each)

    def _found(self, who: str, key) -> tuple[int, slice]:
        """Row and columns of a request."""
        if key not in self:
            raise SolverError(f"{who}: found {key!r}; expected one of {len(self)} requests present.")
        row = self._row[key]
        return row, slice(*self._first[row : row + 2])

    def __contains__(self, key) -> bool:
        return key in self._row

    def __len__(self) -> int:
        return len(self._row)

    def program(self) -> Program:
        """The program as it is now: rows of requests in their order of arrival, then of resources."""
        n = len(self._row)
        k = len(self._worth)
        R = len(self.amounts)
        row_of_column = np.repeat(np.arange(n, dtype=np.int32), np.diff(self._first))
        at = np.insert(n + self._at, self._ptr[:-1], row_of_column)
        parts = (np.insert(self._val, self._ptr[:-1], 1.0), at, self._ptr + np.arange(k + 1))
        lower = np.append(np.where(self._must, 1.0, -np.inf), np.full(R, -np.inf))
        upper = np.append(np.ones(n), list(self.amounts.values()))
        A = sp.csc_array(parts, shape=(n + R, k))
        return Program(self._worth, A, lower, upper, upper=1.0, maximize=True, name=self.name)

    def solved_by(self, worker) -> Solution:
        """Let a solver find the program's best point, from the last one and its prices where it starts from some (`warm`)."""
        n = len(self._row)
        program = self.program()
        start = (self.x, np.append(np.zeros(n), self.prices)) if getattr(worker, "warm", False) else ()
        found = worker.solve(program, *start)
        self.x = found.x
        self.prices = self.prices if found.duals is None else found.duals[n:]
        return found


class _Uses(NamedTuple):
    """Uses of resources by k columns, column by column."""

    ptr: np.ndarray  # (k + 1,) first use of each column, and the end
    at: np.ndarray  # number of the resource
    val: np.ndarray  # how much of it


class _Columns(NamedTuple):
    """Columns of n requests that use one resource each, in rising order of resource and amount within a request."""

    first: np.ndarray  # (n + 1,) first column of each request, and the end
    resource: np.ndarray  # (k,) number of the resource that each uses
    amount: np.ndarray  # (k,) how much it uses
    x: np.ndarray  # (k,) its value


@njit
def _carry(before, old, new):
    """Fill the values of columns that a request had before, by their uses; `before` (n,) is its old number, -1 for a new one."""
    for i in range(before.shape[0]):
        if before[i] < 0:
            continue
        p = old.first[before[i]]
        end = old.first[before[i] + 1]
        for k in range(new.first[i], new.first[i + 1]):
            while p < end and _precedes(old, p, new, k):
                p += 1
            if p < end and old.resource[p] == new.resource[k] and old.amount[p] == new.amount[k]:
                new.x[k] = old.x[p]


@njit
def _precedes(old, p, new, k):
    """Whether an old column comes before a new one, by resource and then by amount."""
    if old.resource[p] == new.resource[k]:
        return old.amount[p] < new.amount[k]
    return old.resource[p] < new.resource[k]
