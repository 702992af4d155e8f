"""Fair share: accounts and users with shares in a tree, and the factor of each user by what all of them have used."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.errors import PolicyError
from gpuschedlab.knobs import check_fields

RULES = ("tree", "classic")
ROOT = "root"


@dataclass(frozen=True)
class ShareTree:
    """Accounts below one root, and users below accounts, each with shares among its siblings.

    References
    ----------
    Slurm documentation, pages "Classic Fairshare Algorithm" and "Fair Tree Fairshare Algorithm"; priority_multifactor.c, 2026.

    Examples
    --------
    >>> accounts = (("ml", "", "", 60), ("bio", "", "", 40))
    >>> tree = ShareTree((*accounts, ("ml", "a", "", 1), ("ml", "b", "", 1), ("bio", "c", "", 1), ("bio", "d", "", 3)))
    >>> tree.users
    (('ml', 'a'), ('ml', 'b'), ('bio', 'c'), ('bio', 'd'))
    >>> tree.factors([240, 60, 100, 0]).tolist()
    [0.25, 0.5, 0.75, 1.0]
    >>> tree.factors([240, 60, 100, 0], "classic").round(6).tolist()
    [0.210224, 0.353553, 0.176777, 0.64842]
    """

    rows: tuple[tuple[str | None, str | None, str | None, float], ...]

    def __post_init__(self):
        check_fields(self, PolicyError, "shares: ")
        share_rows = ((a or ROOT, u or "", a if u else p or ROOT, float(s)) for a, u, p, s in self.rows)
        object.__setattr__(self, "rows", tuple(share_row for share_row in share_rows if share_row[:2] != (ROOT, "")))
        share_owners = [share_row[:2] for share_row in self.rows]
        if twice := next(
            (share_owner for i, share_owner in enumerate(share_owners) if share_owner in share_owners[:i]), None
        ):
            raise PolicyError(
                f"shares: found {'/'.join(twice).rstrip('/')} twice; expected each account and user once."
            )
        for account, user, above, shares in self.rows:
            share_owner = f"{account}/{user}" if user else account
            if above != ROOT and (above, "") not in share_owners:
                raise PolicyError(
                    f"shares: {share_owner!r} is below {above!r}, which has no row; expected an account with one."
                )
            if not 0 <= shares < np.inf:
                raise PolicyError(f"shares: {share_owner!r} has {shares:g} shares; expected a number, 0 or more.")
        _parents_first(self.rows)  # raises where there is a circle

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tuple of three arrays (R + 1,): parent, shares, and place among the users (-1: none).

        The root is first, parents are before their children.
        """
        tree_rows = [(ROOT, "", "", 0.0), *_parents_first(self.rows)]
        account_row = {tree_row[0]: i for i, tree_row in enumerate(tree_rows) if not tree_row[1]}
        users = {charged_user: i for i, charged_user in enumerate(self.users)}
        parent = [-1, *(account_row[tree_row[2]] for tree_row in tree_rows[1:])]
        user_place = [users.get(tree_row[:2], -1) for tree_row in tree_rows]
        return (
            np.array(parent, np.int64),
            np.array([tree_row[3] for tree_row in tree_rows]),
            np.array(user_place, np.int64),
        )

    @cached_property
    def users(self) -> tuple[tuple[str, str], ...]:
        """Tuple of the account and user of each place to which usage is charged, in the order of the rows."""
        return tuple(tree_row[:2] for tree_row in self.rows if tree_row[1])

    def places(self, accounts: Iterable[str], users: Iterable[str]) -> np.ndarray:
        """Return an array: place among the users of each pair of account and user; -1 if there is none."""
        user_place = {charged_user: i for i, charged_user in enumerate(self.users)}
        return np.array([user_place.get(pair, -1) for pair in zip(accounts, users, strict=True)], np.int64)

    def levels(self, usage: np.ndarray) -> np.ndarray:
        """Return an array (R,): level fair share of each row.

        It is the row's share of its siblings' shares over its share of their usage; inf without usage.
        """
        parent, shares, user_place = self.arrays
        row_levels = level_fair_share(parent, shares, used(parent, user_place, np.asarray(usage, float)))[1:]
        level_of_row = dict(zip(_parents_first(self.rows), row_levels.tolist(), strict=True))
        return np.array([level_of_row[tree_row] for tree_row in self.rows])

    def factors(self, usage: np.ndarray, rule: str = "tree", damping: float = 1.0) -> np.ndarray:
        """Return an array (U,): fair-share factor of each user, 0 to 1, from decayed usage (GPU-s). `damping` is for "classic"."""
        usage = np.asarray(usage, float)
        if rule not in RULES or usage.shape != (len(self.users),) or not damping > 0:
            raise PolicyError(
                f"factors: found rule {rule!r}, usage of shape {usage.shape} and damping {damping}; expected one of "
                f"{', '.join(RULES)}, one usage for each of {len(self.users)} users, and a damping above 0."
            )
        if rule == "tree":
            return fair_tree(*self.arrays, usage)
        return classic(*self.arrays, usage, float(damping))


def _parents_first(rows):
    """Return a tuple of the rows, each after its parent, otherwise in their order."""
    done = {ROOT}
    unplaced_rows = rows
    placed_rows = ()
    while unplaced_rows:
        ready = tuple(tree_row for tree_row in unplaced_rows if tree_row[2] in done)
        if not ready:
            raise PolicyError(f"shares: account {unplaced_rows[0][0]!r} is below itself; expected a tree.")
        done |= {tree_row[0] for tree_row in ready if not tree_row[1]}
        placed_rows = placed_rows + ready
        unplaced_rows = tuple(tree_row for tree_row in unplaced_rows if tree_row not in set(ready))
    return placed_rows


@njit
def used(parent, place, usage):
    """Return an array (R,) of the usage of each row: a user's own, an account's that of all below it."""
    row_usage = np.zeros(len(parent))
    for i in range(len(parent) - 1, 0, -1):
        if place[i] >= 0:
            row_usage[i] = usage[place[i]]
        row_usage[parent[i]] += row_usage[i]
    return row_usage


@njit
def of_siblings(parent, values):
    """Return an array (R,): the sum of the values of a row and its siblings."""
    sums = np.zeros(len(parent))
    for i in range(1, len(parent)):
        sums[parent[i]] += values[i]
    return sums[parent]


@njit
def classic(parent, shares, place, usage, damping):
    """Return an array (U,) of factors 2^(-U / S / damping), 0 without shares.

    S is the product of shares over siblings' shares up to the root. U is the share of all usage, moved towards the parent's by the
    share of siblings' shares: own + (parent's - own) shares / siblings' shares; below the root it is the own.
    """
    own_usage = used(parent, place, usage)
    around = of_siblings(parent, shares)
    share_of_all = np.ones(len(parent))
    effective = np.zeros(len(parent))
    factor = np.zeros(len(usage))
    for i in range(1, len(parent)):
        above = parent[i]
        share = shares[i] / around[i] if around[i] > 0.0 else 0.0
        share_of_all[i] = share_of_all[above] * share
        effective[i] = own_usage[i] / own_usage[0] if own_usage[0] > 0.0 else 0.0
        if above > 0:
            effective[i] += (effective[above] - effective[i]) * share
        if place[i] >= 0 and share_of_all[i] > 0.0:
            factor[place[i]] = 2.0 ** (-effective[i] / share_of_all[i] / damping)
    return factor


@njit
def level_fair_share(parent, shares, own):
    """Return an array (R,): share of siblings' shares over share of siblings' usage, 0 without shares, infinite without usage."""
    around = of_siblings(parent, shares)
    all_used = of_siblings(parent, own)
    row_levels = np.zeros(len(parent))
    for i in range(1, len(parent)):
        if shares[i] > 0.0:  # one division: rows that are equal tie exactly
            row_levels[i] = shares[i] * all_used[i] / (own[i] * around[i]) if own[i] > 0.0 else np.inf
    return row_levels


@njit
def tiers(parent, place):
    """Return a tuple of arrays (R,): depth below the root, and users below each row, itself included."""
    depth = np.zeros(len(parent), np.int64)
    users = np.zeros(len(parent), np.int64)
    for i in range(1, len(parent)):
        depth[i] = depth[parent[i]] + 1
    for i in range(len(parent) - 1, 0, -1):
        users[i] += place[i] >= 0
        users[parent[i]] += users[i]
    return depth, users


@njit
def fair_tree(parent, shares, place, usage):
    """Return an array (U,), rank / users: depth first, greater level fair shares first, users before accounts that tie with them.

    Tied users share the higher rank, a user tied with an account has the rank of its first user, and the children of tied
    accounts stand in one list.
    """
    level = level_fair_share(parent, shares, used(parent, place, usage))
    depth, users = tiers(parent, place)
    factor = np.zeros(len(usage))
    lead = np.arange(len(parent))  # lead: the first of tied accounts, which has their list
    start = np.zeros(len(parent), np.int64)
    tie = np.zeros(len(parent), np.int64)  # of a list: first rank, rank that it ties with
    start[0] = len(usage)
    for tier in range(1, depth.max() + 1):
        here = np.flatnonzero(depth == tier)
        here = here[np.argsort(place[here] < 0, kind="mergesort")]
        here = here[np.argsort(-level[here], kind="mergesort")]
        here = here[np.argsort(lead[parent[here]], kind="mergesort")]
        list_of = -1
        last = 0
        rank = 0
        free = 0
        for i in here:
            tied = lead[parent[i]] == list_of and level[i] == level[last]
            if lead[parent[i]] != list_of:
                list_of = lead[parent[i]]
                free = start[list_of]
                rank = tie[list_of]
                tied = tie[list_of] > 0
                last = 0
            if place[i] >= 0:
                rank = rank if tied else free
                factor[place[i]] = rank / len(usage)
            elif tied and last > 0 and place[last] < 0:
                lead[i] = lead[last]
            else:
                start[i] = free
                tie[i] = rank if tied else 0
            free -= users[i]
            last = i
    return factor
