"""Limits: the GPUs and jobs that owners may hold at once, the jobs that count for them, and their claims."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.cluster.cluster import bare
from gpuschedlab.cluster.node_index import ANY_TYPE, CLAIM, SLOTS
from gpuschedlab.errors import TraceError
from gpuschedlab.sim.setup.eligibility import with_lists

INF = float("inf")
ARRAY = pl.col("job_id").str.extract(r"^(\d+)_\d+$")
"""Array of a job, by Slurm's names."""
WHOSE = {name: pl.col(name) for name in ("user", "account", "qos", "vc")}
WHOSE |= {"array": ARRAY, "member": pl.format("{}/{}", "account", "user"), "accounts": pl.col("account")}
"""Owners of limits: a member is a user in an account; accounts are one owner together."""
THROTTLE = "throttle"
"""Column of the tasks of a job's array that may run at once (sbatch --array=0-9%2)."""
AMOUNTS = ("gpus", "jobs", "wall", "size")
"""Fields of a limit that are amounts."""


@dataclass(frozen=True)
class Limit:
    """Amounts that each owner (`WHOSE`), or those of such `names`, may hold at once, or a job may ask for, or hours for starts."""

    of: str = "user"
    names: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()  # of whose jobs alone it is
    gpus: float = INF
    jobs: float = INF
    hours: str = ""  # of the day, such as 20:00-06:00
    tier: float = 0  # jobs of a higher one go first
    gpu_type: str = ""  # of which alone the GPUs are
    wall: float = INF  # s, requested time of a job
    size: float = INF  # GPUs of a job
    partitions: tuple[str, ...] = ()  # whose jobs have the QOS as well
    exempt: tuple[str, ...] = ()  # QOS whose jobs count, and are not held to it
    exempt_in: tuple[str, ...] = ()  # partitions whose jobs count, and are not held to it

    def __post_init__(self):
        if self.of not in WHOSE:
            raise TraceError(f"of: found {self.of!r}; expected one of {', '.join(WHOSE)}")
        if self.hours and (self.of != "qos" or not re.fullmatch(r"[0-2]\d:[03]0-[0-2]\d:[03]0", self.hours)):
            raise TraceError(
                f'hours: found {self.hours!r} of {self.of}; expected those of a qos, such as "20:00-06:30"'
            )

    @property
    def closed(self) -> np.ndarray:
        """Array of the half hours of the day outside its hours."""
        first_half_hour, end = (int(t[:2]) * 2 + int(t[3:]) // 30 for t in self.hours.split("-"))
        return np.arange(end, first_half_hour + 48 * (first_half_hour <= end)) % 48

    @property
    def amounts(self) -> dict[str, float]:
        """Dict of the amounts that bound anything, by name."""
        return {amount_name: getattr(self, amount_name) for amount_name in AMOUNTS if getattr(self, amount_name) < INF}

    def alike(self, other: "Limit") -> bool:
        """Whether another limit bounds the same of owners of the same kind."""
        same = (self.of, self.gpu_type) == (other.of, other.gpu_type)
        return same and self.amounts.keys() == other.amounts.keys()

    @property
    def timed(self) -> bool:
        """Whether it is of hours or tiers, to which no order of priorities keeps."""
        return bool(self.hours or self.tier)

    def counted(self, trace: pl.DataFrame) -> pl.Expr:
        """Return a polars expression (`pl.Expr`): owner for which each job of a trace counts, held to it or not; null if for none."""
        trace_columns = set(trace.columns)
        whose = WHOSE[self.of]
        if self.of == "accounts" or (self.of == "qos" and self.partitions):
            whose = pl.lit("all")  # one owner together
        within = []
        for column, owner_names in ((WHOSE[self.of], self.names), (pl.col("qos"), self.qos)):
            if owner_names:
                within.append(self._among(column, owner_names, trace_columns))
        roots = WHOSE[self.of].meta.root_names()
        lacking = set(roots) - trace_columns
        if lacking and not (self.of == "qos" and self.partitions):
            return pl.lit(None, pl.String)
        if not within:
            return whose
        return pl.when(pl.all_horizontal(within)).then(whose)

    def _among(self, column: pl.Expr, names: tuple[str, ...], columns: set[str]) -> pl.Expr:
        """Return a polars expression (`pl.Expr`): whether jobs are of such owners, or in a partition that gives them the QOS."""
        roots = column.meta.root_names()
        among = pl.lit(False)
        if set(roots) <= columns:
            among = column.is_in(names).fill_null(False)
        if self.partitions and "vc" in columns and roots == ["qos"]:
            in_partition = pl.col("vc").is_in(self.partitions)
            among = among | in_partition.fill_null(False)
        return among

    def exempted(self, trace: pl.DataFrame) -> pl.Expr:
        """Return a polars expression (`pl.Expr`): whether each job of a trace is not held to it."""
        free = pl.lit(False)
        for column, exempt_names in (("qos", self.exempt), ("vc", self.exempt_in)):
            if exempt_names and column in trace.columns:
                exempt = pl.col(column).is_in(exempt_names)
                free = free | exempt.fill_null(False)
        return free

    def owners(self, trace: pl.DataFrame) -> pl.Expr:
        """Return a polars expression (`pl.Expr`): owner for which each job counts that is held to it; null if it counts for none."""
        return pl.when(~self.exempted(trace)).then(self.counted(trace))


class Rows(NamedTuple):
    """Claims of some jobs on consecutive quotas: row of the job, of its quota, amount, GPU type, and whether it is held."""

    job: np.ndarray
    quota: np.ndarray
    amount: np.ndarray
    type: np.ndarray
    held: np.ndarray


def claims_of(limits: Sequence[Limit], trace: pl.DataFrame, cluster: Cluster) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a tuple of claims (n, K) and quotas (Q,) of limits, arrays as of `Policy.quotas`; None if no job claims any.

    A job that asks for more than a job may have claims a quota of which nothing is there: it never starts.
    """
    most = [0.0]
    claim_rows = []
    for claim, amounts in _claims(limits, trace, cluster):
        claim_rows.append(claim._replace(quota=claim.quota + len(most)))
        most.extend(amounts)
    jobs = np.flatnonzero(refused(limits, trace))
    ones = np.ones_like(jobs)
    claim_rows.append(Rows(jobs, 0 * ones, ones, ANY_TYPE * ones, ones))
    if not sum(len(claim.job) for claim in claim_rows):
        return None
    all_claims = Rows(*(np.concatenate(claim_columns) for claim_columns in zip(*claim_rows, strict=True)))
    return _packed(all_claims, trace.height), np.array(most)


def _packed(claim_rows: Rows, jobs: int) -> np.ndarray:
    """Return an array (n, K): claims job by job, those of a job from the first column on."""
    job_order = np.argsort(claim_rows.job, kind="stable")
    job = claim_rows.job[job_order]
    claim_column = np.arange(len(job)) - np.searchsorted(job, job)
    claims = np.zeros((jobs, int(claim_column.max()) + 1), CLAIM)
    claims["quota"] = -1
    for claim_field in CLAIM.names:
        claims[claim_field][job, claim_column] = getattr(claim_rows, claim_field)[job_order]
    return claims


def _claims(limits: Iterable[Limit], trace: pl.DataFrame, cluster: Cluster) -> Iterator[tuple[Rows, list[float]]]:
    """Yield pairs: the claims (`Rows`) on the quotas of each amount of each limit, from 0, and a list of how much each quota has."""
    ones = np.ones(trace.height, np.int64)
    slots = (trace["gpus"].to_numpy() * SLOTS).round()
    slots = np.maximum(1, slots).astype(np.int64)
    if THROTTLE in trace.columns:
        throttled = pl.col(THROTTLE).is_not_null()
        arrays = trace.select(owner=pl.when(throttled).then(ARRAY), most=THROTTLE)
        claim_rows, owner_names = _of_owners(arrays["owner"], ones, ones)
        most = dict(arrays.drop_nulls().iter_rows())
        yield claim_rows, [float(most[owner_name]) for owner_name in owner_names]
    for limit in limits:
        owners = trace.select("gpus", owner=limit.counted(trace), free=limit.exempted(trace))
        bound = 1 - owners["free"].to_numpy().astype(np.int64)
        if limit.gpus < INF:
            claim_rows, owner_names = _of_owners(owners["owner"], slots, bound)
            if limit.gpu_type:
                claim_rows = _of_type(limit.gpu_type, claim_rows, trace, cluster)
            yield claim_rows, [limit.gpus * SLOTS] * len(owner_names)
        if limit.jobs < INF:
            claim_rows, owner_names = _of_owners(owners["owner"], ones, bound)
            yield claim_rows, [limit.jobs] * len(owner_names)


def _of_owners(owner: pl.Series, amount: np.ndarray, held: np.ndarray) -> tuple[Rows, list[str]]:
    """Return a tuple: claims (`Rows`) of jobs on a quota of each owner, whatever GPUs they run on, and a list of the owners."""
    owner_names = owner.drop_nulls().unique().sort()
    numbers = np.full(len(owner), -1)
    if len(owner_names):
        number_of = {owner_name: i for i, owner_name in enumerate(owner_names)}
        numbers = owner.replace_strict(number_of, default=-1, return_dtype=pl.Int64).to_numpy()
    job = np.flatnonzero(numbers >= 0)
    claim_rows = Rows(job, numbers[job], amount[job], np.full(len(job), ANY_TYPE), held[job])
    return claim_rows, owner_names.to_list()


def _of_type(gpu_type: str, claim_rows: Rows, trace: pl.DataFrame, cluster: Cluster) -> Rows:
    """Return claims on GPUs of one type as `Rows`: a job that asks for it is held, one that may get it counts while it has it."""
    wanted = gpu_type.lower()
    kinds = [i for i, kind in enumerate(cluster.gpu_types) if bare(kind).lower() == wanted]
    lists = with_lists(trace, cluster, "requested")
    asks = np.zeros(trace.height, bool)
    may = np.ones(trace.height, bool)
    if "gpu_types" in lists.columns:
        is_wanted = pl.element().str.to_lowercase() == wanted
        matches = pl.col("gpu_types").list.eval(is_wanted)
        asks_for_it = matches.list.all().fill_null(False)
        may_get_it = matches.list.any().fill_null(True)
        among = lists.select(asks=asks_for_it, may=may_get_it)
        asks = among["asks"].to_numpy()
        may = among["may"].to_numpy()
    claims_of_type = [_some(claim_rows, asks[claim_rows.job])]
    count_only = (may & ~asks)[claim_rows.job]
    for kind in kinds:
        counted_claims = _some(claim_rows, count_only)
        claims_of_type.append(
            counted_claims._replace(
                type=np.full(len(counted_claims.job), kind), held=np.zeros_like(counted_claims.held)
            )
        )
    return Rows(*(np.concatenate(claim_columns) for claim_columns in zip(*claims_of_type, strict=True)))


def _some(claim_rows: Rows, chosen: np.ndarray) -> Rows:
    """Return the `Rows` of the claims that are chosen."""
    return Rows(*(column[chosen] for column in claim_rows))


def with_partitions(limits: Sequence[Limit], qos: Mapping[str, str]) -> tuple[Limit, ...]:
    """Return a tuple of limits, each a `Limit`, on a site whose partitions (the keys) have a QOS.

    Its limits are of their jobs too, in the place of alike ones of a job's own QOS.
    """
    limits_of_all = []
    for limit in limits:
        own_qos = _qos_of(limit)
        over = set()
        for rival in limits:
            if limit.alike(rival):
                over |= {*_qos_of(rival)}
        free = {*limit.exempt}
        if own_qos:
            free |= over - {*own_qos}
        own_partitions = tuple(partition for partition, of_partition in qos.items() if of_partition in own_qos)
        free_partitions = tuple(partition for partition, of_partition in qos.items() if of_partition in free)
        limits_of_all.append(replace(limit, partitions=own_partitions, exempt_in=free_partitions))
    return tuple(limits_of_all)


def _qos_of(limit: Limit) -> tuple[str, ...]:
    """Return a tuple of the names of QOS to whose jobs a limit belongs; empty if it is of all jobs."""
    if limit.of == "qos":
        return limit.names
    return limit.qos


def refused(limits: Iterable[Limit], trace: pl.DataFrame) -> np.ndarray:
    """Return a mask (n,): whether each job asks for more than a job may have; it is refused at submission."""
    over = np.zeros(trace.height, bool)
    requested_time = pl.lit(0.0)
    if "requested_time" in trace.columns:
        requested_time = pl.col("requested_time").fill_null(0.0)
    for limit in limits:
        if limit.wall == INF and limit.size == INF:
            continue
        beyond = (requested_time > limit.wall) | (pl.col("gpus") > limit.size)
        counts_for_owner = limit.owners(trace).is_not_null()
        refusals = trace.select((beyond & counts_for_owner).fill_null(False))
        over |= refusals.to_series().to_numpy()
    return over
