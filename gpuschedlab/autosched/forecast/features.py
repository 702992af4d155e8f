"""Features of the local predictor (table 6.2): arrivals and completions around a query, among all jobs and like ones."""

from typing import NamedTuple

import numpy as np
import polars as pl

from gpuschedlab._compiled import njit, plain_array

RANGES = (300.0, 1800.0, 3600.0, 7200.0, 14_400.0)
"""Bounds of the ranges (s), section 6.5.1."""
HOUR = 3600.0
DAY = 86_400.0
LEVELS = (
    [],
    ["gpus"],
    ["vc"],
    ["user"],
    ["name"],
    ["vc", "gpus"],
    ["user", "gpus"],
    ["name", "gpus"],
    ["user", "name"],
)
"""Columns that like jobs share; a level applies where the trace records all of it."""
BATCH = 60.0  # s between submissions of one batch
WALK = 24  # arrivals on each side of a query that are looked at
MEMORY = 120  # completions, back from the query's instant, that are looked at
LONGER = 30  # completions that outlasted the query so far that are counted

NEAR = ("log", "gap", "mean4", "low4", "high4", "open", "oldest", "batch", "batch ended", "batch mean")
PAST = ("count", "since", "gap", "log", "mean3", "mean", "sd")
SURVIVED = ("number", "share", "longer log", "longer mean", *(f"range {i}" for i in range(len(RANGES) + 1)))
WIDTH = len(NEAR) + len(PAST) + len(SURVIVED)


class Jobs(NamedTuple):
    """Jobs of a repository (n,), in order of submission."""

    submit: np.ndarray  # (n,) s
    end: np.ndarray  # (n,) s, inf of jobs that have not ended
    duration: np.ndarray  # (n,) s, nan of jobs that have not ended
    ran: np.ndarray  # (n,) s executed so far


class Groups(NamedTuple):
    """Rows of a repository by groups of like jobs; those of group g begin at `first[g]` and end before `first[g + 1]`."""

    arrivals: np.ndarray  # (n,) rows, in order of submission
    first: np.ndarray  # (groups + 1,)
    ended: np.ndarray  # (n,) rows, in order of the end
    first_end: np.ndarray  # (groups + 1,)


class Queries(NamedTuple):
    """Queries (q,) on a repository."""

    at: np.ndarray  # (q,) s, instants at which they are asked
    submit: np.ndarray  # (q,) s
    executed: np.ndarray  # (q,) s
    row: np.ndarray  # (q,) rows of the repository, -1 if not in it


@njit
def _ran_by(query_time, j, jobs):
    """Return the seconds (float) for which job j, which ends later, ran by `query_time`: without a break, as far as is known."""
    so_far = jobs.ran[j]
    if jobs.end[j] != np.inf:
        so_far = jobs.duration[j] - (jobs.end[j] - query_time)
    return min(max(so_far, 0.0), query_time - jobs.submit[j])  # never longer than it was there


@njit
def _near(query_time, submit, self_row, group_jobs, jobs, x):
    """Arrivals of the group (`group_jobs`) next to the query, those after it too if they came by `query_time`; writes NEAR into x."""
    arrival = jobs.submit
    earlier = np.searchsorted(arrival[group_jobs], submit, side="left") - 1
    later = earlier + 1
    looked_at = ended = opened = inside = inside_ended = 0
    total = inside_total = oldest = 0.0
    low = np.inf
    high = -np.inf
    while looked_at < 2 * WALK:
        seconds_before = np.inf
        seconds_after = np.inf
        if earlier >= 0:
            seconds_before = submit - arrival[group_jobs[earlier]]
        if later < len(group_jobs) and arrival[group_jobs[later]] <= query_time:
            seconds_after = arrival[group_jobs[later]] - submit
        gap = min(seconds_before, seconds_after)
        if gap == np.inf:
            break
        if seconds_before <= seconds_after:
            j = group_jobs[earlier]
            earlier -= 1
        else:
            j = group_jobs[later]
            later += 1
        if j == self_row:
            continue
        looked_at += 1
        done = jobs.end[j] <= query_time
        value = 0.0
        if done:
            value = np.log1p(jobs.duration[j])
        if gap <= BATCH:
            inside += 1
            inside_ended += done
            inside_total += value
        if not done:
            opened += 1
            oldest = max(oldest, _ran_by(query_time, j, jobs))
        elif ended < 4:
            if ended == 0:
                x[0] = value
                x[1] = np.log1p(gap)
            ended += 1
            total += value
            low = min(low, value)
            high = max(high, value)
    if ended:
        x[2] = total / ended
        x[3] = low
        x[4] = high
    if looked_at:
        x[5] = opened / looked_at
        x[6] = np.log1p(oldest)
    x[7] = inside
    x[8] = inside_ended
    if inside_ended:
        x[9] = inside_total / inside_ended


@njit
def _past(query_time, submit, executed, group_jobs, jobs, bounds, x):
    """Completions of the group (`group_jobs`) by `query_time`, the latest first; writes PAST and SURVIVED into x."""
    completions = np.searchsorted(jobs.end[group_jobs], query_time, side="right")
    x[0] = np.log1p(completions)
    survived = n = 0
    total = square = total3 = longer = 0.0
    shares = np.zeros(len(bounds) + 1)
    for i in range(completions - 1, max(0, completions - MEMORY) - 1, -1):
        j = group_jobs[i]
        duration = jobs.duration[j]
        value = np.log1p(duration)
        if n == 0:
            x[1] = np.log1p(query_time - jobs.end[j])
            x[2] = np.log1p(abs(submit - jobs.submit[j]))
            x[3] = value
        n += 1
        if n <= 3:
            total3 += value
        if n <= 20:
            total += value
            square += value * value
        if duration > executed and survived < LONGER:
            if survived == 0:
                x[9] = value
            survived += 1
            longer += value
            shares[np.searchsorted(bounds, duration, side="right")] += 1
    if n:
        m = min(n, 20)
        x[4] = total3 / min(n, 3)
        x[5] = total / m
        x[6] = np.sqrt(max(square / m - (total / m) ** 2, 0.0))
        x[7] = survived
        x[8] = survived / n
    if survived:
        x[10] = longer / survived
        x[11:] = shares / survived


@njit
def _gather(queries, group, jobs, groups, bounds, x, near_width):
    """Fill (q, features) of one level, for queries whose groups (q,) are coded in `group`; the first `near_width` are NEAR."""
    for query_row in range(len(group)):
        query_time = queries.at[query_row]
        submit = queries.submit[query_row]
        query_group = group[query_row]
        arrivals = groups.arrivals[groups.first[query_group] : groups.first[query_group + 1]]
        _near(query_time, submit, queries.row[query_row], arrivals, jobs, x[query_row, :near_width])
        ended = groups.ended[groups.first_end[query_group] : groups.first_end[query_group + 1]]
        _past(query_time, submit, queries.executed[query_row], ended, jobs, bounds, x[query_row, near_width:])


class Seen:
    """A repository (of `observe`, in order of submission) as arrays, and the features of queries on it."""

    def __init__(self, repository: pl.DataFrame, users: bool = True):
        job_end = pl.col("end").fill_null(np.inf)
        duration = pl.col("duration").fill_null(np.nan)
        job_columns = repository.select("submit", "gpus", job_end, duration, "executed")
        self.submit, self.gpus, self.end, self.duration, self.ran = (
            job_column.to_numpy().astype(float) for job_column in job_columns
        )
        self.frame = repository
        self.by_end = np.argsort(self.end, kind="stable")
        column_names = set(repository.columns)
        if not users:
            column_names.discard("user")
        self.levels = [level_keys for level_keys in LEVELS if column_names.issuperset(level_keys)]

    def names(self, recent: int) -> list[str]:
        """Name each feature, in order, as a list of strings."""
        feature_names = [
            "executed",
            "gpus",
            "hour sin",
            "hour cos",
            "weekday",
            "arrivals 5 min",
            "arrivals 1 h",
            "ended 1 h",
        ]
        for k in range(1, recent + 1):
            feature_names += [f"arrival {k} {feature}" for feature in ("gap", "ran", "gpus")]
            feature_names += [f"completion {k} {feature}" for feature in ("gap", "since", "log", "gpus")]
        for level_keys in self.levels:
            group = " and ".join(level_keys) or "all"
            feature_names += [f"near {group} {feature}" for feature in NEAR]
            feature_names += [f"past {group} {feature}" for feature in (*PAST, *SURVIVED)]
        return feature_names

    def features(self, query: pl.DataFrame, at: np.ndarray, recent: int, rows: np.ndarray | None = None) -> np.ndarray:
        """Return an array (q, f) of the features of queries at instants (q,) in s; later events are not looked at."""
        if rows is None:
            rows = self._rows(query)
        times = (plain_array(column, float) for column in (at, query["submit"], query["executed"]))
        queries = Queries(*times, plain_array(rows, np.int64))
        jobs = Jobs(self.submit, self.end, self.duration, self.ran)
        bounds = np.array(RANGES)
        feature_levels = [np.column_stack(self._alone(query, queries, recent))]
        for level_keys in self.levels:
            of_row, group, group_count = self._groups(query, level_keys)
            arrivals, first_arrival = _grouped(of_row, np.arange(len(of_row)), group_count)
            ended, first_end = _grouped(of_row, self.by_end, group_count)
            level = np.full((len(at), WIDTH), np.nan)
            _gather(queries, group, jobs, Groups(arrivals, first_arrival, ended, first_end), bounds, level, len(NEAR))
            feature_levels.append(level)
        return np.column_stack(feature_levels).astype(np.float32)

    def _rows(self, query: pl.DataFrame) -> np.ndarray:
        """Array (q,) of the rows of queries in the repository, by job_id; -1 if not in it."""
        job_rows = self.frame.select("job_id", row=pl.int_range(pl.len()))
        rows_of_queries = query.select("job_id").join(job_rows, on="job_id", how="left", maintain_order="left")["row"]
        return rows_of_queries.fill_null(-1).to_numpy()

    def _alone(self, query: pl.DataFrame, queries: Queries, recent: int) -> list[np.ndarray]:
        """Return a list of columns: the query's own attributes, how busy it is, and the k latest arrivals and completions."""
        query_times = queries.at
        submit = queries.submit
        angle = submit * 2 * np.pi / DAY
        gpus = np.maximum(query["gpus"].to_numpy(), 0.1)
        feature_columns = [np.log1p(queries.executed), np.log2(gpus), np.sin(angle), np.cos(angle), (submit // DAY) % 7]
        ends_in_order = self.end[self.by_end]
        arrivals_before = np.searchsorted(self.submit, submit, side="left")
        arrived = np.searchsorted(self.submit, query_times, side="right")
        ended = np.searchsorted(ends_in_order, query_times, side="right")
        for seconds in (300.0, HOUR):
            feature_columns.append(np.log1p(arrived - np.searchsorted(self.submit, query_times - seconds)))
        feature_columns.append(np.log1p(ended - np.searchsorted(ends_in_order, query_times - HOUR)))
        for k in range(1, recent + 1):
            arrival = np.maximum(arrivals_before - k, 0)
            feature_columns += [
                np.where(arrivals_before >= k, feature_column, np.nan)
                for feature_column in self._arrival(arrival, queries)
            ]
            completion = self.by_end[np.maximum(ended - k, 0)]
            feature_columns += [
                np.where(ended >= k, feature_column, np.nan) for feature_column in self._completion(completion, queries)
            ]
        return feature_columns

    def _arrival(self, row: np.ndarray, queries: Queries) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays, of jobs (q,) that came before queries: log seconds since, log seconds for which they ran, GPUs.

        They are a tuple.
        """
        job_ends = self.end[row]
        duration = self.duration[row]
        until_end = job_ends - queries.at
        so_far = np.where(np.isinf(job_ends), self.ran[row], np.nan_to_num(duration) - until_end)
        longest = np.maximum(queries.at - self.submit[row], 0)
        ran = np.where(job_ends <= queries.at, duration, np.clip(so_far, 0, longest))
        return np.log1p(queries.submit - self.submit[row]), np.log1p(ran), self.gpus[row]

    def _completion(self, row: np.ndarray, queries: Queries) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return a tuple of arrays, of jobs (q,) that ended before queries: log seconds of gap, since the end, and run; GPUs.

        The gap is that between both submissions.
        """
        gap = abs(queries.submit - self.submit[row])
        since = np.maximum(queries.at - self.end[row], 0)
        duration = np.maximum(self.duration[row], 0)
        return np.log1p(gap), np.log1p(since), np.log1p(duration), self.gpus[row]

    def _groups(self, query: pl.DataFrame, level_keys: list[str]) -> tuple[np.ndarray, np.ndarray, int]:
        """Return a tuple: group's code of each row of the repository, of each query, and an integer above the greatest."""
        key_columns = (pl.repeat("", pl.len()).alias("all"), pl.col(level_keys).cast(pl.String))
        seen_and_asked = pl.concat([self.frame.select(key_columns), query.select(key_columns)])
        first_of_group = pl.col("first").first().over(seen_and_asked.columns)
        code_column = seen_and_asked.with_row_index("first").select(first_of_group)
        group_code = code_column.to_series().to_numpy()
        return group_code[: self.frame.height], group_code[self.frame.height :], len(group_code)


def _grouped(of_row: np.ndarray, row_order: np.ndarray, group_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in `row_order`, group by group, and the index at which each group begins (count + 1,): a tuple of arrays."""
    group_codes = of_row[row_order]
    group_sizes = np.bincount(group_codes, minlength=group_count)
    return row_order[np.argsort(group_codes, kind="stable")], np.concatenate([[0], np.cumsum(group_sizes)])
