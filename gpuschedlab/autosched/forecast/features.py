"""Features of the local predictor (table 6.2): arrivals and completions around a query, among all jobs and like ones."""

import numpy as np
import polars as pl

from gpuschedlab._compiled import njit

RANGES = (300.0, 1800.0, 3600.0, 7200.0, 14_400.0)
"""Bounds of the ranges (s), section 6.5.1."""
HOUR = 3600.0
DAY = 86_400.0
LEVELS = tuple(map(str.split, ("", "gpus", "vc", "user", "name", "vc gpus", "user gpus", "name gpus", "user name")))
"""Columns that like jobs share; a level applies where the trace records all of it."""
BATCH = 60.0  # s between submissions of one batch
WALK = 24  # arrivals on each side of a query that are looked at
MEMORY = 120  # completions, back from the query's instant, that are looked at
LONGER = 30  # completions that outlasted the query so far that are counted

NEAR = ("log", "gap", "mean4", "low4", "high4", "open", "oldest", "batch", "batch ended", "batch mean")
PAST = ("count", "since", "gap", "log", "mean3", "mean", "sd")
SURVIVED = ("number", "share", "longer log", "longer mean", *(f"range {i}" for i in range(len(RANGES) + 1)))
WIDTH = len(NEAR) + len(PAST) + len(SURVIVED)


@njit
def _near(at, submit, self_row, lo, hi, order, sub, end, dur, ran, x):
    """Arrivals of the group next to the query, those after it too if they came by `at`; writes NEAR into x."""
    left = lo + np.searchsorted(sub[order[lo:hi]], submit, side="left") - 1
    right = left + 1
    seen = ended = opened = inside = inside_ended = 0
    total = inside_total = oldest = 0.0
    low = np.inf
    high = -np.inf
    while seen < 2 * WALK:
        before = submit - sub[order[left]] if left >= lo else np.inf
        after = sub[order[right]] - submit if right < hi and sub[order[right]] <= at else np.inf
        gap = min(before, after)
        if gap == np.inf:
            break
        if before <= after:
            j = order[left]
            left -= 1
        else:
            j = order[right]
            right += 1
        if j == self_row:
            continue
        seen += 1
        done = end[j] <= at
        value = np.log1p(dur[j]) if done else 0.0
        if gap <= BATCH:
            inside += 1
            inside_ended += done
            inside_total += value
        if not done:
            opened += 1
            # It ran without a break until its end, as far as that is known; never longer than it was there.
            so_far = ran[j] if end[j] == np.inf else dur[j] - (end[j] - at)
            oldest = max(oldest, min(max(so_far, 0.0), at - sub[j]))
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
    if seen:
        x[5] = opened / seen
        x[6] = np.log1p(oldest)
    x[7] = inside
    x[8] = inside_ended
    if inside_ended:
        x[9] = inside_total / inside_ended


@njit
def _past(at, submit, executed, lo, hi, order, sub, end, dur, bounds, x):
    """Completions of the group by `at`, the latest first; writes PAST and SURVIVED into x."""
    count = np.searchsorted(end[order[lo:hi]], at, side="right")
    x[0] = np.log1p(count)
    survived = n = 0
    total = square = total3 = longer = 0.0
    shares = np.zeros(len(bounds) + 1)
    for i in range(lo + count - 1, max(lo, lo + count - MEMORY) - 1, -1):
        j = order[i]
        value = np.log1p(dur[j])
        if n == 0:
            x[1] = np.log1p(at - end[j])
            x[2] = np.log1p(abs(submit - sub[j]))
            x[3] = value
        n += 1
        if n <= 20:
            total += value
            square += value * value
            total3 += value if n <= 3 else 0.0
        if dur[j] > executed and survived < LONGER:
            if survived == 0:
                x[9] = value
            survived += 1
            longer += value
            shares[np.searchsorted(bounds, dur[j], side="right")] += 1
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
def _gather(at, submit, executed, rows, group, first, arrivals, first_end, ended, sub, end, dur, ran, bounds, x, width):
    """Fill (q, width) features of one level, group by group as coded in `group`."""
    for q in range(len(at)):
        lo = first[group[q]]
        hi = first[group[q] + 1]
        _near(at[q], submit[q], rows[q], lo, hi, arrivals, sub, end, dur, ran, x[q, :width])
        lo = first_end[group[q]]
        hi = first_end[group[q] + 1]
        _past(at[q], submit[q], executed[q], lo, hi, ended, sub, end, dur, bounds, x[q, width:])


class Seen:
    """A repository (of `observe`, in order of submission) as arrays, and the features of queries on it."""

    def __init__(self, repository: pl.DataFrame, users: bool = True):
        end = pl.col("end").fill_null(np.inf)
        duration = pl.col("duration").fill_null(np.nan)
        columns = repository.select("submit", "gpus", end, duration, "executed")
        self.submit, self.gpus, self.end, self.duration, self.ran = (c.to_numpy().astype(float) for c in columns)
        self.frame = repository
        self.by_end = np.argsort(self.end, kind="stable")
        columns = {*repository.columns} - set(() if users else ("user",))
        self.levels = [keys for keys in LEVELS if set(keys) <= columns]

    def names(self, recent: int) -> list[str]:
        """Name each feature, in order."""
        names = ["executed", "gpus", "hour sin", "hour cos", "weekday", "arrivals 5 min", "arrivals 1 h", "ended 1 h"]
        for k in range(1, recent + 1):
            names += [f"arrival {k} {c}" for c in ("gap", "ran", "gpus")]
            names += [f"completion {k} {c}" for c in ("gap", "since", "log", "gpus")]
        for keys in self.levels:
            group = " and ".join(keys) or "all"
            names += [f"near {group} {c}" for c in NEAR] + [f"past {group} {c}" for c in (*PAST, *SURVIVED)]
        return names

    def features(self, query: pl.DataFrame, at: np.ndarray, recent: int, rows: np.ndarray | None = None) -> np.ndarray:
        """Features (q, f) of queries at instants (q,) in s; nothing that happened later is looked at."""
        submit, executed = (query[c].to_numpy().astype(float) for c in ("submit", "executed"))
        at = np.ascontiguousarray(at, float)
        if rows is None:
            place = self.frame.select("job_id", row=pl.int_range(pl.len()))
            rows = query.select("job_id").join(place, on="job_id", how="left", maintain_order="left")["row"]
            rows = rows.fill_null(-1).to_numpy()
        parts = [np.column_stack(self._alone(query, at, submit, executed, recent))]
        for keys in self.levels:
            of_row, group, count = self._groups(query, keys)
            found = np.full((len(at), WIDTH), np.nan)
            arrivals, first = _grouped(of_row, np.arange(len(of_row)), count)
            ended, first_end = _grouped(of_row, self.by_end, count)
            _gather(at, submit, executed, rows, group, first, arrivals, first_end, ended,
                    self.submit, self.end, self.duration, self.ran, np.array(RANGES), found, len(NEAR))  # fmt: skip
            parts.append(found)
        return np.column_stack(parts).astype(np.float32)

    def _alone(self, query, at, submit, executed, recent: int) -> list[np.ndarray]:
        """The query's own attributes, how busy it is, and the k latest arrivals and completions."""
        columns = [np.log1p(executed), np.log2(np.maximum(query["gpus"].to_numpy(), 0.1))]
        columns += [np.sin(submit * 2 * np.pi / DAY), np.cos(submit * 2 * np.pi / DAY), (submit // DAY) % 7]
        ends = self.end[self.by_end]
        before = np.searchsorted(self.submit, submit, side="left")
        arrived, ended = (np.searchsorted(times, at, side="right") for times in (self.submit, ends))
        columns += [np.log1p(arrived - np.searchsorted(self.submit, at - w)) for w in (300.0, HOUR)]
        columns += [np.log1p(ended - np.searchsorted(ends, at - HOUR))]
        for k in range(1, recent + 1):
            j = np.maximum(before - k, 0)
            i = self.by_end[np.maximum(ended - k, 0)]
            so_far = np.where(np.isinf(self.end[j]), self.ran[j], np.nan_to_num(self.duration[j]) - (self.end[j] - at))
            ran = np.where(self.end[j] <= at, self.duration[j], np.clip(so_far, 0, np.maximum(at - self.submit[j], 0)))
            found = (np.log1p(submit - self.submit[j]), np.log1p(ran), self.gpus[j])
            columns += [np.where(before >= k, c, np.nan) for c in found]
            found = (abs(submit - self.submit[i]), np.maximum(at - self.end[i], 0), np.maximum(self.duration[i], 0))
            columns += [np.where(ended >= k, c, np.nan) for c in (*map(np.log1p, found), self.gpus[i])]
        return columns

    def _groups(self, query: pl.DataFrame, keys: list[str]) -> tuple[np.ndarray, np.ndarray, int]:
        """Code of the group of each row of the repository, of each query, and more than the greatest."""
        columns = (pl.repeat("", pl.len()).alias("all"), pl.col(keys).cast(pl.String))
        both = pl.concat([frame.select(columns) for frame in (self.frame, query)])
        first = pl.col("first").first().over(both.columns)
        code = both.with_row_index("first").select(first).to_series().to_numpy()
        return code[: self.frame.height], code[self.frame.height :], len(code)


def _grouped(of_row: np.ndarray, order: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in `order`, group by group, and where each group begins (count + 1,)."""
    codes = of_row[order]
    sizes = np.bincount(codes, minlength=count)
    return order[np.argsort(codes, kind="stable")], np.concatenate([[0], np.cumsum(sizes)])
