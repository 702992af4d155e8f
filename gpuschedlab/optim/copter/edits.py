"""A program that is edited between rounds: requests come and go, resources grow and shrink (COpter thesis, 4.3.2)."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gpuschedlab._compiled import njit
from gpuschedlab.errors import Infeasible, SolverError
from gpuschedlab.optim.copter.groups import Grouped
from gpuschedlab.optim.program import Program


@dataclass(eq=False)
class EditedProgram:
    """Give each request at most one unit of its variables, within the resources, for the largest worth.

    maximise sum_i w_i'x_i subject to sum x_i <= 1 for each request i, sum_i U_i'x_i <= amounts, 0 <= x <= 1. Each request keeps
    its own columns, and its part of the last point: ``Session("copter")``, which takes it in place of a `Program`, goes on from
    there without looking anything up. Edits are put into the arrays together, when the program is next solved.

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
    >>> edited, session = EditedProgram({"gpus": 3.0}), Session("copter", tol=1e-6)
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
    whole, shape, lower, upper = False, None, 0.0, 1.0

    def __post_init__(self):
        self.amounts = {name: float(amount) for name, amount in self.amounts.items()}
        self.edits, self.prices, self.size = 0, np.zeros(len(self.amounts)), 1.0
        self._came, self._gone = {}, set()
        self._put(
            [], np.zeros(1, np.int64), *np.zeros((2, 0)), np.zeros(1), np.zeros(0), np.zeros(0), np.zeros(0, bool)
        )

    def _put(self, keys, first, worth, x, ptr, at, val, must):
        """The arrays: keys, first column and must of requests, worth and x of columns, and their coefficients by column."""
        self._row, self._first, self._worth, self.x = dict(zip(keys, range(len(keys)), strict=True)), first, worth, x
        self._ptr, self._at, self._val = ptr.astype(np.uint32), at.astype(np.uint32), val
        self._must = must

    def add_request(self, key, worth, uses: dict, must: bool = False) -> None:
        """Add a request with its variables.

        Parameters
        ----------
        key : hashable
        worth : (k,) float array
        uses : dict
            (k,) coefficients in each resource that it uses.
        must : bool
            Whether its variables sum to 1, not to 1 at most.

        Raises
        ------
        SolverError
            The request is there already, or uses an unknown resource, or arrays do not fit.
        """
        if key in self or set(uses) - set(self.amounts):
            wrong = f"{key!r} twice" if key in self else f"resources {sorted(set(uses) - set(self.amounts))}"
            raise SolverError(
                f"add_request: found {wrong}; expected a new key and resources {', '.join(self.amounts)}."
            )
        worth = np.array(worth, float, ndmin=1)
        try:
            table = np.stack([np.broadcast_to(np.asarray(uses.get(r, 0.0), float), worth.shape) for r in self.amounts])
        except ValueError:
            raise SolverError(f"add_request: found uses of {key!r} that do not fit its worth {worth.shape}.") from None
        self._came[key] = (worth, sp.csc_array(table), must)
        self.edits += 1

    def remove_request(self, key) -> None:
        """Remove a request, its variables and its row."""
        if key not in self:
            raise SolverError(f"remove_request: found {key!r}; expected one of {len(self)} requests present.")
        if self._came.pop(key, None) is None:
            self._gone.add(key)
        self.edits += 1

    def change_worth(self, key, worth) -> None:
        """Give a request's variables another worth."""
        if key not in self:
            raise SolverError(f"change_worth: found {key!r}; expected one of {len(self)} requests present.")
        row, worth = self._row.get(key), np.array(worth, float, ndmin=1)
        here = self._came[key][0] if key in self._came else self._worth[self._first[row] : self._first[row + 1]]
        if worth.shape != here.shape:
            raise SolverError(f"change_worth: found shape {worth.shape} for {key!r}; expected {here.shape}.")
        here[:] = worth
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
        self._settle()
        before = np.array([self._row.get(key, -1) for key in keys], np.int64)
        x = np.zeros(len(worth))
        if len(self._at) == len(self._worth):
            _carry(before, self._first, self._at, self._val, self.x, first, at, val, x)
        self._put(keys, first, worth, x, np.arange(len(worth) + 1), at, val, must)
        self.edits += 1

    def _settle(self):
        """Put the edits into the arrays."""
        if not (self._came or self._gone):
            return
        stays = np.array([key not in self._gone for key in self._row], bool)
        columns = np.repeat(stays, np.diff(self._first))
        entries = np.repeat(columns, np.diff(self._ptr))
        worths, tables, musts = zip(*self._came.values()) if self._came else ((), (), ())
        counts = [np.diff(self._first)[stays], [len(w) for w in worths]]
        widths = [np.diff(self._ptr)[columns], *(np.diff(t.indptr) for t in tables)]
        first, ptr = (np.concatenate([[0], *parts]).astype(np.int64).cumsum() for parts in (counts, widths))
        worth = np.concatenate([self._worth[columns], *worths])
        x = np.concatenate([self.x[columns], np.zeros(len(worth) - columns.sum())])
        at = np.concatenate([self._at[entries], *(t.indices for t in tables)])
        val = np.concatenate([self._val[entries], *(t.data for t in tables)])
        keys = [key for key in self._row if key not in self._gone] + list(self._came)
        self._came, self._gone = {}, set()
        self._put(keys, first, worth, x, ptr, at, val, np.append(self._must[stays], np.array(musts, bool)))

    def __contains__(self, key) -> bool:
        return key in self._came or (key in self._row and key not in self._gone)

    def __len__(self) -> int:
        return len(self._row) - len(self._gone) + len(self._came)

    def value(self, x) -> float:
        """Objective at x."""
        return float(self._worth @ x)

    def grouped(self) -> Grouped:
        """The program as copter takes it: a group a request.

        Raises
        ------
        Infeasible
            A request that must have something has no variables.
        """
        self._settle()
        if (self._must & (np.diff(self._first) == 0)).any():
            raise Infeasible(f"{self.name}: infeasible; a request that must have something has no variables.")
        first, n, k = self._first, len(self._row), len(self._worth)
        room, rows = np.array(list(self.amounts.values())), np.arange(len(self.amounts))
        some, none = np.ones(k), np.zeros(k)
        sizes = np.maximum(room, np.median(room[room > 0]) if room.any() else 1.0)
        edges = (np.append(first[:-1], k), np.append(first[1:], k))
        return Grouped(
            np.arange(k), *edges, np.append(np.ones(n), np.inf), np.append(self._must, False), self._ptr, self._at, self._val,
            -self._worth, none, some, np.full(len(room), -np.inf), room, sizes, n + rows, np.arange(n),
            np.ones(len(room)), some, np.ones(n), -1.0,
        )  # fmt: skip

    def program(self) -> Program:
        """The program as it is now: rows of requests in their order of arrival, then of resources."""
        self._settle()
        n, k, R = len(self._row), len(self._worth), len(self.amounts)
        owner = np.repeat(np.arange(n), np.diff(self._first))
        column = np.concatenate([np.arange(k), np.repeat(np.arange(k), np.diff(self._ptr))])
        row = np.concatenate([owner, n + self._at.astype(np.int64)])
        A = sp.csc_array((np.append(np.ones(k), self._val), (row, column)), shape=(n + R, k))
        lower = np.append(np.where(self._must, 1.0, -np.inf), np.full(R, -np.inf))
        upper = np.append(np.ones(n), list(self.amounts.values()))
        return Program(self._worth, A, lower, upper, upper=1.0, maximize=True, name=self.name)


@njit
def _carry(before, first, at, val, x, new_first, new_at, new_val, new_x):
    """Values of columns that a request had before, by what they use, both in rising order."""
    for i in range(before.shape[0]):
        if before[i] < 0:
            continue
        p, end = first[before[i]], first[before[i] + 1]
        for k in range(new_first[i], new_first[i + 1]):
            while p < end and (at[p] < new_at[k] or (at[p] == new_at[k] and val[p] < new_val[k])):
                p += 1
            if p < end and at[p] == new_at[k] and val[p] == new_val[k]:
                new_x[k] = x[p]
