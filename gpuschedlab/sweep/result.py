"""Findings of a sweep, as a frame."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

import polars as pl

from gpuschedlab.errors import RunError
from gpuschedlab.knobs import KnobInfo, knob_word, knobs_of
from gpuschedlab.metrics import METRICS
from gpuschedlab.metrics.display import in_words
from gpuschedlab.metrics.summaries import FIRST as COLUMNS
from gpuschedlab.sweep.store import SCHEMA, Store
from gpuschedlab.table_display import Table

NAMES = ("policy", "scenario", "cluster", "estimator", "seed")
"""Columns that name a row, before its knobs."""


@dataclass(frozen=True)
class Sweep:
    """Metrics of all finished cells, one row each, in the order requested.

    Parameters
    ----------
    frame : polars.DataFrame
        `policy, scenario, cluster, estimator, seed`, a column for each knob that differs between policies of one class
        (null if a policy has no such knob; `NAME_knob` if a metric or another column has that name), and the
        metrics of `metrics.METRICS` but for `seconds`, which `times` has. The same call gives the same bytes. Where books were
        found wrong, `books` names the sums that do not add up (null if all do, or nobody looked).
    failed : dict of str to str
        Errors of the cells that have no row, by cell.
    missing : int
        Cells that are neither finished nor failed (of a sweep that was stopped).
    folder : pathlib.Path
        Its folder.
    knobs : dict of str to dict
        `label` (with unit) and `log` (scale) of each knob that differs.
    wrong : dict of str to str
        Sums that do not add up in the books of finished cells, by cell; those of one cell in fifty are added up again.
    """

    frame: pl.DataFrame
    failed: dict[str, str] = field(default_factory=dict)
    missing: int = 0
    folder: Path = Path()
    knobs: dict[str, dict] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder) -> "Sweep":
        """Read a `Sweep` from a folder, finished or not.

        Raises
        ------
        RunError
            There is no sweep in it.
        """
        store = Store(folder)
        sweep_rows, knobs = store.rows()
        stored_metrics = store.metrics(dict.fromkeys(row["cell"] for row in sweep_rows))
        lost = {row["cell"]: store.error(row["cell"]) for row in sweep_rows if row["cell"] not in stored_metrics}
        failed = {_word(row, knobs): error for row in sweep_rows if (error := lost.get(row["cell"]))}
        missing = sum(error is None for error in lost.values())
        lines = store.logged()
        done = [row for row in sweep_rows if row["cell"] in stored_metrics]
        books = [lines.get(row["cell"], {}).get("books") or None for row in done]
        wrong = {_word(row, knobs): problem for row, problem in zip(done, books, strict=True) if problem}
        frame = _frame(sweep_rows, stored_metrics, knobs)
        frame = frame.with_columns(books=pl.Series(books, dtype=pl.String)) if wrong else frame
        return cls(frame, failed, missing, store.folder, knobs, wrong)

    def filter(self, *predicates, **constraints) -> "Sweep":
        """Return part of it, a `Sweep`: rows chosen as by `polars.DataFrame.filter`, such as ``filter(policy="themis")``."""
        return replace(self, frame=self.frame.filter(*predicates, **constraints))

    @property
    def times(self) -> pl.DataFrame:
        """Frame of the time (s) that each simulation in the folder took: names, knobs and `seconds`, row by row."""
        store = Store(self.folder)
        sweep_rows, knobs = store.rows()
        log_of_cells = store.logged()
        stored_metrics = store.metrics(row["cell"] for row in sweep_rows)
        done = [log_of_cells.get(row["cell"], {}).get("seconds") for row in sweep_rows if row["cell"] in stored_metrics]
        seconds = pl.Series(done, dtype=pl.Float64)
        return _frame(sweep_rows, stored_metrics, knobs).select(*NAMES, *knobs).with_columns(seconds=seconds)

    def table(self, metrics: Iterable[str] = COLUMNS) -> pl.DataFrame:
        """Return a frame of the means of metrics over seeds, a row per policy, scenario, cluster and knobs; `seeds` counts."""
        metrics = list(metrics)
        if unknown := sorted(set(metrics) - set(self.frame.columns)):
            raise RunError(f"sweep: found no metric {unknown[0]!r}; expected some of {', '.join(METRICS)}.")
        by = [name for name in (*NAMES, *self.knobs) if name != "seed"]
        mean_columns = [pl.len().alias("seeds"), *(pl.col(name).mean() for name in metrics)]
        mean_columns += [pl.col("books").drop_nulls().first()] if self.wrong else []
        return self.frame.group_by(by, maintain_order=True).agg(mean_columns)

    def summary(self) -> dict[str, int]:
        """Return a dict of the numbers of cells that are finished, failed and missing."""
        return {"finished": self.frame.height, "failed": len(self.failed), "missing": self.missing}

    def raise_if_failed(self) -> "Sweep":
        """Return itself, the `Sweep`, if every cell is finished.

        Raises
        ------
        RunError
            Some failed: the message has their number, and some of their errors.
        """
        if not self.failed:
            return self
        by_error: dict[str, list[str]] = {}
        for failed_cell, error in self.failed.items():
            by_error.setdefault(error, []).append(failed_cell)
        kinds = [f"{w[0]}{f' and {len(w) - 1} more' if w[1:] else ''}: {e}" for e, w in by_error.items()]
        further_errors = f" There are {len(kinds) - 3} more kinds of error." if kinds[3:] else ""
        raise RunError(
            f"sweep: {len(self.failed)} of {sum(self.summary().values())} cells failed. {' '.join(kinds[:3])}{further_errors} "
            f"The others are kept in {self.folder}: Sweep.read(folder) has them, its errors/ has the tracebacks; the same call "
            "tries the failed ones again."
        )

    def __repr__(self):
        cell_counts = self.summary() | {"with wrong books": len(self.wrong)}
        counts_in_words = ", ".join(
            f"{count} {cell_state}" for cell_state, count in cell_counts.items() if count or cell_state == "finished"
        )
        return f"Sweep({counts_in_words}; {', '.join(self.knobs) or 'no knobs'})"

    def _repr_html_(self) -> str:
        failed = "".join(
            f"<p>{escape(failed_cell)} failed: {escape(why)}</p>" for failed_cell, why in self.failed.items()
        )
        return f"<p>{escape(repr(self))}</p>{self.shown()._repr_html_()}{failed}"

    def shown(self) -> Table:
        """Return the `Table` as a person reads it: metrics and knobs have the labels of figures and sliders."""
        sweep_table = in_words(self.table())
        labels = {name: about.get("label", name) for name, about in self.knobs.items()}
        return replace(sweep_table, names=dict(sweep_table.names) | labels)


def varied(plan) -> dict[str, dict]:
    """Return the knobs that differ between policies of one class: a dict, by the column they become, of dicts about the knob.

    Keys of the latter: `name, kind, label, words, log`.
    """
    infos: dict[str, list[KnobInfo]] = {}
    knob_values: dict[tuple[type, str], set] = {}
    policies = {(type(cell.policy), cell.labels["knobs"]): cell.policy for cell in plan.cells.values()}
    for (cls, _), policy in policies.items():
        for name, info in knobs_of(cls).items():
            if (cls, name) not in knob_values:
                infos.setdefault(name, []).append(info)
            knob_values.setdefault((cls, name), set()).add(getattr(policy, name))
    differ = {name for (_, name), infos_of_knob in knob_values.items() if len(infos_of_knob) > 1}
    varied_knobs = {}
    for name in filter(differ.__contains__, infos):
        infos_of_knob = infos[name]
        name_is_taken = name in NAMES or name in SCHEMA or name in METRICS
        kinds = {i.kind for i in infos_of_knob}
        labels = {i.label for i in infos_of_knob}
        knob_words = {i.words for i in infos_of_knob}
        # One name for different things in two policies: only its text fits in one column.
        varied_knobs[f"{name}_knob" if name_is_taken else name] = {
            "name": name,
            "kind": kinds.pop() if len(kinds) == 1 else "words",
            "label": labels.pop() if len(labels) == 1 else name,
            "words": knob_words.pop() if len(knob_words) == 1 else name,
            "log": all(i.knob.log for i in infos_of_knob),
        }
    return varied_knobs


_TYPES = {"float": pl.Float64, "int": pl.Int64, "bool": pl.Boolean}


def _frame(rows: list[dict], stored_metrics: dict[str, dict], knobs: dict) -> pl.DataFrame:
    """Return a frame with one row for each finished cell; knobs that are tuples or choices are text."""

    def value_of(about: dict, row: dict):
        value = row["knobs"].get(about["name"])
        return value if about["kind"] in _TYPES or value is None else knob_word(value)

    schema = {name: SCHEMA.get(name, pl.String) for name in NAMES}
    schema |= {column: _TYPES.get(about["kind"], pl.String) for column, about in knobs.items()}
    schema |= {name: kind for name, kind in SCHEMA.items() if name in METRICS}
    finished_cells = [
        stored_metrics[row["cell"]]
        | {name: row[name] for name in NAMES if row.get(name) is not None}
        | {column: value_of(about, row) for column, about in knobs.items()}
        for row in rows
        if row["cell"] in stored_metrics
    ]
    return pl.DataFrame(finished_cells, schema=schema, orient="row")


def _word(row: dict, knobs: dict) -> str:
    """Label of a row."""
    knob_settings = [f"{k}={knob_word(row['knobs'][a['name']])}" for k, a in knobs.items() if a["name"] in row["knobs"]]
    where = [row["scenario"], *([row["cluster"]] if row["cluster"] else []), f"seed {row['seed']}"]
    return " ".join([row["policy"], *knob_settings, "on", ", ".join(where)])
