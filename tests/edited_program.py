"""A program that is edited between rounds: requests come and go, resources grow and shrink (thesis 4.3.2)."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from gpuschedlab.errors import SolverError
from gpuschedlab.optim.program import Program, Solution


@dataclass
class _Request:
    """Columns of one request: worth (k,), (k, R) of what they use, and where the last solution left them."""

    worth: np.ndarray
    uses: np.ndarray
    at: np.ndarray = None
    price: float = 0.0


@dataclass
class EditedProgram:
    """Give each request at most one unit of its variables, within the resources, for the largest worth.

    maximise sum_i w_i'x_i subject to sum x_i <= 1 for each request i, sum_i U_i'x_i <= amounts, 0 <= x <= 1. Each request keeps
    its own columns, so that an edit touches these alone, and its part of the last point and prices, from which
    `start` puts together a warm start.

    Parameters
    ----------
    amounts : dict
        Amount of each resource, by name.

    References
    ----------
    Jayaram Subramanya, PhD thesis, CMU 2025, 4.3.2 (add-request, remove-request, add/remove-resources).

    Examples
    --------
    >>> edited = EditedProgram({"gpus": 3.0})
    >>> edited.add_request("a", worth=[3.0, 5.0], uses={"gpus": [1.0, 2.0]})
    >>> edited.add_request("b", worth=[2.0], uses={"gpus": [2.0]})
    >>> edited.remove_request("a")
    >>> edited.program().A.toarray().tolist()
    [[1.0], [2.0]]
    """

    amounts: dict
    _requests: dict = field(default_factory=dict, repr=False)
    _prices: np.ndarray = field(default=None, repr=False)

    def __post_init__(self):
        self.amounts = {name: float(amount) for name, amount in self.amounts.items()}

    def add_request(self, key, worth, uses: dict) -> None:
        """Add a request with its variables.

        Parameters
        ----------
        key : hashable
        worth : (k,) float array
        uses : dict
            (k,) coefficients in each resource that it uses.

        Raises
        ------
        SolverError
            The request is there already, or uses an unknown resource.
        """
        if key in self._requests or set(uses) - set(self.amounts):
            wrong = f"{key!r} twice" if key in self._requests else f"resources {sorted(set(uses) - set(self.amounts))}"
            raise SolverError(
                f"add_request: found {wrong}; expected a new key and resources {', '.join(self.amounts)}."
            )
        worth = np.array(worth, float, ndmin=1)
        table = np.zeros((len(worth), len(self.amounts)))
        for r, name in enumerate(self.amounts):
            table[:, r] = uses.get(name, 0.0)
        self._requests[key] = _Request(worth, table, np.zeros(len(worth)))

    def remove_request(self, key) -> None:
        """Remove a request, its variables and its row."""
        if key not in self._requests:
            raise SolverError(f"remove_request: found {key!r}; expected one of {len(self._requests)} requests present.")
        del self._requests[key]

    def change_worth(self, key, worth) -> None:
        """Give a request's variables another worth."""
        request, worth = self._requests[key], np.array(worth, float, ndmin=1)
        if worth.shape != request.worth.shape:
            raise SolverError(f"change_worth: found shape {worth.shape} for {key!r}; expected {request.worth.shape}.")
        request.worth = worth

    def change_resource(self, name: str, by: float) -> None:
        """Add an amount to a resource, or take it away (`by` below 0)."""
        if name not in self.amounts or self.amounts[name] + by < 0:
            raise SolverError(f"change_resource: found {name!r} {by:+g}; expected one of {self.amounts}, not below 0.")
        self.amounts[name] += by

    def program(self) -> Program:
        """The program as it is now: rows of requests in their order of arrival, then of resources."""
        requests, R = list(self._requests.values()), len(self.amounts)
        n = len(requests)
        sizes = np.array([len(r.worth) for r in requests], np.int64)
        worth = np.concatenate([r.worth for r in requests] or [np.empty(0)])
        uses = np.concatenate([r.uses for r in requests] or [np.empty((0, R))])
        k = len(worth)
        rows = np.empty((k, 1 + R), np.int64)
        rows[:, 0], rows[:, 1:] = np.repeat(np.arange(n), sizes), n + np.arange(R)
        data = np.concatenate([np.ones((k, 1)), uses], axis=1)
        some = data != 0
        starts = np.concatenate([[0], np.cumsum(some.sum(axis=1))])
        A = sp.csc_array((data[some], rows[some], starts), shape=(n + R, k))
        upper = np.concatenate([np.ones(n), list(self.amounts.values())])
        return Program(worth, A, row_upper=upper, upper=1.0, maximize=True, name="Edited program")

    def keep(self, solution: Solution) -> None:
        """Keep a solution of the program as it is now, for `start`."""
        ends, n = np.cumsum([len(r.worth) for r in self._requests.values()])[:-1], len(self._requests)
        for request, x, price in zip(
            self._requests.values(), np.split(solution.x, ends), solution.duals[:n], strict=True
        ):
            request.at, request.price = x, float(price)
        self._prices = solution.duals[n:]

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Point and prices for the program as it is now: 0 for requests that are new since `keep`."""
        requests = list(self._requests.values())
        prices = np.zeros(len(self.amounts)) if self._prices is None else self._prices
        x = np.concatenate([r.at for r in requests] or [np.empty(0)])
        return x, np.concatenate([[r.price for r in requests], prices])
