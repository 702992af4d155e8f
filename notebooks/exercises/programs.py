"""Exercises on rounds as programs: choices, proximal steps, prices (notebooks 05 and 06)."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from exercises.verdict import Mistake, call, checked, compare, near, number, require
from gpuschedlab.errors import RunError


@checked
def best_choices(
    answer: Sequence, goodput: np.ndarray, kinds: np.ndarray, gpus: np.ndarray, capacity: np.ndarray,
    power: float = -0.5, penalty: float = 1.1,
) -> str:  # fmt: skip
    """05: the choices of a small Sia round, against all that there are.

    Parameters
    ----------
    answer : sequence of int or None
        The configuration (column) of each job, None for no GPUs.
    goodput : (n, C) array
        Of each job in each configuration.
    kinds, gpus : (C,) int arrays
        GPU type and GPUs of each configuration.
    capacity : int array
        GPUs of each type.
    power, penalty : float
        p < 0 and lambda of the worth lambda - G^p.
    """
    n, columns = goodput.shape
    try:
        found = [None if c is None else int(c) for c in answer]
    except (TypeError, ValueError) as raised:
        raise Mistake(f"Found {answer!r}; expected a list of columns.") from raised
    require(len(found) == n, f"Found {len(found)} choices; expected one for each of {n} jobs.")
    require(all(c is None or 0 <= c < columns for c in found), f"Columns are 0 to {columns - 1}, or None.")
    worth = penalty - (goodput / goodput.min(axis=1, keepdims=True)) ** power
    values = {
        c: _worth(worth, c) for c in product([None, *range(columns)], repeat=n) if _fits(c, kinds, gpus, capacity)
    }
    held = _held(found, kinds, gpus, len(capacity)).tolist()
    require(tuple(found) in values, f"These hold {held} GPUs of the types; there are {list(map(int, capacity))}.")
    mine, best = values[tuple(found)], max(values.values())
    raw = max(values, key=lambda c: _worth(goodput, c))
    why = f"It fits, and is worth {mine:.3f}; another is worth {best:.3f}. "
    if tuple(found) == raw:
        why += "This one has the most goodput; divide each row by its least first, so that gains are compared."
    else:
        why += "Which job gains most from one more GPU, and which least?"
    require(mine >= best - 5e-3, why)
    return f"Worth {mine:.3f}, the most of the {len(values)} choices that fit."


def _worth(table: np.ndarray, choice) -> float:
    return sum(float(table[i, c]) for i, c in enumerate(choice) if c is not None)


def _held(choice, kinds, gpus, types: int) -> np.ndarray:
    chosen = [c for c in choice if c is not None]
    return np.bincount(kinds[chosen], gpus[chosen], types).astype(int) if chosen else np.zeros(types, int)


def _fits(choice, kinds, gpus, capacity) -> bool:
    return bool((_held(choice, kinds, gpus, len(capacity)) <= capacity).all())


@checked
def proximal_step(answer) -> str:
    """06: one proximal step of a share, against a search over all shares.

    Parameters
    ----------
    answer : callable
        ``step(share, worth, price, gpus, size)``: the share x in [0, 1] at which (worth - price gpus) x - (x - share)^2 / (2
        size) is highest.
    """
    from scipy.optimize import minimize_scalar

    rng = np.random.default_rng(3)
    for _ in range(40):
        share, worth, price, size = rng.uniform(0, 1), rng.uniform(0, 3), rng.uniform(0, 1), rng.uniform(0.1, 2)
        gpus = int(rng.integers(1, 5))
        gain = worth - price * gpus
        best = minimize_scalar(
            lambda x, g=gain, s=share, t=size: (x - s) ** 2 / (2 * t) - g * x,
            bounds=(0, 1), method="bounded", options={"xatol": 1e-7},
        ).x  # fmt: skip
        found = number(call(answer, share, worth, price, gpus, size))
        require(-1e-9 <= found <= 1 + 1e-9, f"Found {found:.3f}; a share stays between 0 and 1.")
        mistakes = {
            "The price is missing: GPUs that a share takes have to be paid for.": np.clip(share + size * worth, 0, 1),
            "That goes downhill: a worth above the price makes the share larger.": np.clip(share - size * gain, 0, 1),
            "`size` is missing: a larger one lets the share move further.": np.clip(share + gain, 0, 1),
            "That is where it began. Set the derivative to 0, and solve for x.": share,
        }
        case = f"share {share:.2f}, worth {worth:.2f}, price {price:.2f} for each of {gpus} GPUs, size {size:.2f}"
        compare(found, float(best), mistakes, f"For {case} found {found:.3f}, expected {best:.3f}.")
    return "The highest point in 40 cases. COpter takes such steps with all shares and prices at once."


@checked
def price_bound(answer) -> str:
    """06: the bound that prices give, against all choices.

    Parameters
    ----------
    answer : callable
        ``bound(utility, kinds, gpus, capacity, prices)``: arrays (n, C), (C,), (C,), (T,), (T,). The most that all jobs can
        keep at these prices, and what the GPUs cost.
    """
    rng, kinds, gpus, capacity = (
        np.random.default_rng(4),
        np.array([0, 0, 1]),
        np.array([1, 2, 1]),
        np.array([3.0, 2.0]),
    )
    for prices in (np.zeros(2), np.array([0.5, 1.0]), np.array([2.0, 4.0]), rng.uniform(0, 2, 2)):
        utility = rng.uniform(0.2, 3, (4, 3))
        left = utility - prices[kinds] * gpus
        every = list(product([None, 0, 1, 2], repeat=4))
        right = max(_worth(left, c) for c in every) + float(prices @ capacity)
        exact = max(_worth(utility, c) for c in every if _fits(c, kinds, gpus, capacity))
        found = number(call(answer, utility, kinds, gpus, capacity, prices))
        if not near(found, right):
            without = "At high prices a job keeps more by taking nothing: 0 is among its choices."
            require(not near(found, float(left.max(axis=1).sum() + prices @ capacity)), without)
            rest = "What jobs keep is not all: the GPUs' own price belongs to the bound."
            require(not near(found, float(np.maximum(left.max(axis=1), 0).sum())), rest)
            below = f"Found {found:.3f}, but a choice that fits is worth {exact:.3f}: that bounds nothing."
            require(found >= exact - 1e-9, below)
            raise Mistake(f"Found {found:.3f}; at prices {prices.round(2).tolist()} the bound is {right:.3f}.")
    return "The least upper bound at each set of prices. The best prices make it as low as possible."


@checked
def link_price(answer, routes, capacity: np.ndarray, demand: np.ndarray, links: int = 6) -> str:
    """06: the price of a link: flow that one more Mb/s brings.

    The largest flow is concave in a link's capacity, so any price lies between the gain of one more Mb/s and the loss of one
    less. Both come from another solver than the notebook's, on a program written anew.

    Parameters
    ----------
    answer : callable
        ``price(link)``: by the number of the link.
    routes : Routes
    capacity : (E,) array
        Mb/s of each link.
    demand : (n,) array
        Mb/s of each pair.
    links : int
        Links that are tried: the dearest ones, and the cheapest.

    Raises
    ------
    RunError
        All prices are 0.
    """
    base, prices = _largest_flow(routes, capacity, demand)
    if prices.max(initial=0.0) < 1e-3:
        raise RunError("link_price: found no full link, so that all prices are 0; expected some. Give it more demand.")
    order = np.argsort(-prices, kind="stable")
    for link in map(int, [*order[: links - 1], order[-1]]):
        one = np.arange(len(capacity)) == link
        low, high = (abs(_largest_flow(routes, capacity + sign * one, demand)[0] - base) for sign in (1, -1))
        cut = base - _largest_flow(routes, capacity * ~one, demand)[0]
        found = number(call(answer, link))
        if low - 1e-3 <= found <= high + 1e-3:
            continue
        require(
            not near(found, cut), f"Link {link}: that is the flow lost without the whole link. Ask for one Mb/s more."
        )
        require(not near(found, base, 1e-2), "That is the whole flow; the price is how much it grows.")
        raise Mistake(f"Link {link}: found {found:.3f}; one Mb/s more brings {low:.3f}, one less costs {high:.3f}.")
    return f"The prices of {links} links, between what one Mb/s more brings and one less costs."


def _largest_flow(routes, capacity: np.ndarray, demand: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest flow (Mb/s), and a price of each link, by SciPy's linprog."""
    import scipy.sparse as sp
    from scipy.optimize import linprog

    paths = len(routes.pair)
    own = sp.csr_array((np.ones(paths), (routes.pair, np.arange(paths))), shape=(len(demand), paths))
    rows, limits = sp.vstack([own, routes.uses]), np.concatenate([demand, np.maximum(capacity, 0)])
    found = linprog(-np.ones(paths), A_ub=rows, b_ub=limits, method="highs-ds")
    return -float(found.fun), -found.ineqlin.marginals[len(demand) :]
