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
            wrong_request = f"{key!r} twice" if key in self else f"resources {sorted(unknown)}"
            raise SolverError(
                f"add_request: found {wrong_request}; expected a new key, and of {', '.join(self.amounts)}."
            )
        worth = np.array(worth, float, ndmin=1)
        try:
            coefficients = (np.asarray(uses.get(resource, 0.0), float) for resource in self.amounts)
            coefficient_rows = np.stack([np.broadcast_to(coefficient, worth.shape) for coefficient in coefficients])
        except ValueError:
            raise SolverError(f"add_request: found uses of {key!r} that do not fit its worth {worth.shape}.") from None
        new_columns = sp.csc_array(coefficient_rows)
        uses = _Uses(
            ptr=np.append(self._ptr, self._ptr[-1] + new_columns.indptr[1:]),
            at=np.append(self._at, new_columns.indices),
            val=np.append(self._val, new_columns.data),
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
        request_row, request_columns = self._found("remove_request", key)
        gone = slice(*self._ptr[[request_columns.start, request_columns.stop]])
        first_columns = self._first.copy()
        ptr = self._ptr.copy()
        first_columns[request_row + 1 :] -= request_columns.stop - request_columns.start
        ptr[request_columns.stop :] -= gone.stop - gone.start
        uses = _Uses(np.delete(ptr, request_columns), np.delete(self._at, gone), np.delete(self._val, gone))
        self._put(
            keys=[request for request in self._row if request != key],
            must=np.delete(self._must, request_row),
            first=np.delete(first_columns, request_row),
            worth=np.delete(self._worth, request_columns),
            x=np.delete(self.x, request_columns),
            uses=uses,
        )

    def change_worth(self, key, worth) -> None:
        """Give a request's variables another worth."""
        request_columns = self._found("change_worth", key)[1]
        worth = np.array(worth, float, ndmin=1)
        if worth.shape != self._worth[request_columns].shape:
            raise SolverError(
                f"change_worth: found shape {worth.shape} for {key!r}; expected {self._worth[request_columns].shape}."
            )
        self._worth[request_columns] = worth
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
        row_before = np.array([self._row.get(request_key, -1) for request_key in keys], np.int64)
        point = np.zeros(len(worth))
        if len(self._at) == len(self._worth):
            _carry(row_before, _Columns(self._first, self._at, self._val, self.x), _Columns(first, at, val, point))
        one_each = _Uses(np.arange(len(worth) + 1), at, val)
        self._put(keys, must, first, np.array(worth, float), point, one_each)

    def _found(self, who: str, request_key) -> tuple[int, slice]:
        """Return the row (int) and the columns (a slice) of a request, a tuple."""
        if request_key not in self:
            raise SolverError(f"{who}: found {request_key!r}; expected one of {len(self)} requests present.")
        request_row = self._row[request_key]
        return request_row, slice(*self._first[request_row : request_row + 2])

    def __contains__(self, key) -> bool:
        return key in self._row

    def __len__(self) -> int:
        return len(self._row)

    def program(self) -> Program:
        """Return the `Program` as it is now: rows of requests in their order of arrival, then of resources."""
        request_count = len(self._row)
        column_count = len(self._worth)
        R = len(self.amounts)
        row_of_column = np.repeat(np.arange(request_count, dtype=np.int32), np.diff(self._first))
        row_indices = np.insert(request_count + self._at, self._ptr[:-1], row_of_column)
        matrix_arrays = (
            np.insert(self._val, self._ptr[:-1], 1.0),
            row_indices,
            self._ptr + np.arange(column_count + 1),
        )
        lower = np.append(np.where(self._must, 1.0, -np.inf), np.full(R, -np.inf))
        upper = np.append(np.ones(request_count), list(self.amounts.values()))
        A = sp.csc_array(matrix_arrays, shape=(request_count + R, column_count))
        return Program(self._worth, A, lower, upper, upper=1.0, maximize=True, name=self.name)

    def solved_by(self, worker) -> Solution:
        """Return a solver's `Solution`, from the last point and its prices if the solver starts from some (`warm`)."""
        request_count = len(self._row)
        program = self.program()
        start_point = (
            (self.x, np.append(np.zeros(request_count), self.prices)) if getattr(worker, "warm", False) else ()
        )
        solution = worker.solve(program, *start_point)
        self.x = solution.x
        self.prices = self.prices if solution.duals is None else solution.duals[request_count:]
        return solution


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
def _carry(before, old_uses, new_uses):
    """Fill the values of columns that a request had before, by their uses; `before` (n,) is its old number, -1 for a new one."""
    for request in range(before.shape[0]):
        if before[request] < 0:
            continue
        old_column = old_uses.first[before[request]]
        old_end = old_uses.first[before[request] + 1]
        for new_column in range(new_uses.first[request], new_uses.first[request + 1]):
            while old_column < old_end and _precedes(old_uses, old_column, new_uses, new_column):
                old_column += 1
            if (
                old_column < old_end
                and old_uses.resource[old_column] == new_uses.resource[new_column]
                and old_uses.amount[old_column] == new_uses.amount[new_column]
            ):
                new_uses.x[new_column] = old_uses.x[old_column]


@njit
def _precedes(old_uses, old_column, new_uses, new_column):
    """Whether an old column comes before a new one, by resource and then by amount."""
    if old_uses.resource[old_column] == new_uses.resource[new_column]:
        return old_uses.amount[old_column] < new_uses.amount[new_column]
    return old_uses.resource[old_column] < new_uses.resource[new_column]
