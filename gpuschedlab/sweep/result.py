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
        stored_metrics = store.metrics(dict.fromkeys(sweep_row["cell"] for sweep_row in sweep_rows))
        lost = {
            sweep_row["cell"]: store.error(sweep_row["cell"])
            for sweep_row in sweep_rows
            if sweep_row["cell"] not in stored_metrics
        }
        failed = {_word(sweep_row, knobs): error for sweep_row in sweep_rows if (error := lost.get(sweep_row["cell"]))}
        missing = sum(error is None for error in lost.values())
        cell_entries = store.logged()
        done = [sweep_row for sweep_row in sweep_rows if sweep_row["cell"] in stored_metrics]
        books = [cell_entries.get(sweep_row["cell"], {}).get("books") or None for sweep_row in done]
        wrong_books = {
            _word(sweep_row, knobs): problem for sweep_row, problem in zip(done, books, strict=True) if problem
        }
        frame = _frame(sweep_rows, stored_metrics, knobs)
        frame = frame.with_columns(books=pl.Series(books, dtype=pl.String)) if wrong_books else frame
        return cls(frame, failed, missing, store.folder, knobs, wrong_books)

    def filter(self, *predicates, **constraints) -> "Sweep":
        """Return part of it, a `Sweep`: rows chosen as by `polars.DataFrame.filter`, such as ``filter(policy="themis")``."""
        return replace(self, frame=self.frame.filter(*predicates, **constraints))

    @property
    def times(self) -> pl.DataFrame:
        """Frame of the time (s) that each simulation in the folder took: names, knobs and `seconds`, row by row."""
        store = Store(self.folder)
        sweep_rows, knobs = store.rows()
        log_of_cells = store.logged()
        stored_metrics = store.metrics(sweep_row["cell"] for sweep_row in sweep_rows)
        done = [
            log_of_cells.get(sweep_row["cell"], {}).get("seconds")
            for sweep_row in sweep_rows
            if sweep_row["cell"] in stored_metrics
        ]
        seconds = pl.Series(done, dtype=pl.Float64)
        return _frame(sweep_rows, stored_metrics, knobs).select(*NAMES, *knobs).with_columns(seconds=seconds)

    def table(self, metrics: Iterable[str] = COLUMNS) -> pl.DataFrame:
        """Return a frame of the means of metrics over seeds, a row per policy, scenario, cluster and knobs; `seeds` counts."""
        metrics = list(metrics)
        if unknown := sorted(set(metrics) - set(self.frame.columns)):
            raise RunError(f"sweep: found no metric {unknown[0]!r}; expected some of {', '.join(METRICS)}.")
        by = [column_name for column_name in (*NAMES, *self.knobs) if column_name != "seed"]
        mean_columns = [pl.len().alias("seeds"), *(pl.col(column_name).mean() for column_name in metrics)]
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
        kinds_of_errors = [
            f"{failed_cells[0]}{f' and {len(failed_cells) - 1} more' if failed_cells[1:] else ''}: {error_text}"
            for error_text, failed_cells in by_error.items()
        ]
        further_errors = f" There are {len(kinds_of_errors) - 3} more kinds of error." if kinds_of_errors[3:] else ""
        raise RunError(
            f"sweep: {len(self.failed)} of {sum(self.summary().values())} cells failed. "
            f"{' '.join(kinds_of_errors[:3])}{further_errors} "
            f"The others are kept in {self.folder}: Sweep.read(folder) has them, its errors/ has the tracebacks; the same call "
            "tries the failed ones again."
        )

    def __repr__(self):
        cell_counts = self.summary() | {"with wrong books": len(self.wrong)}
        counts_in_words = ", ".join(
            f"{cell_count} {cell_state}"
            for cell_state, cell_count in cell_counts.items()
            if cell_count or cell_state == "finished"
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
        labels = {knob_column: about_knob.get("label", knob_column) for knob_column, about_knob in self.knobs.items()}
        return replace(sweep_table, names=dict(sweep_table.names) | labels)


def varied(plan) -> dict[str, dict]:
    """Return the knobs that differ between policies of one class: a dict, by the column they become, of dicts about the knob.

    Keys of the latter: `name, kind, label, words, log`.
    """
    infos: dict[str, list[KnobInfo]] = {}
    knob_values: dict[tuple[type, str], set] = {}
    policies = {(type(cell.policy), cell.labels["knobs"]): cell.policy for cell in plan.cells.values()}
    for (cls, _), policy in policies.items():
        for knob_name, knob_info in knobs_of(cls).items():
            if (cls, knob_name) not in knob_values:
                infos.setdefault(knob_name, []).append(knob_info)
            knob_values.setdefault((cls, knob_name), set()).add(getattr(policy, knob_name))
    differ = {knob_name for (_, knob_name), infos_of_knob in knob_values.items() if len(infos_of_knob) > 1}
    varied_knobs = {}
    for knob_name in filter(differ.__contains__, infos):
        infos_of_knob = infos[knob_name]
        name_is_taken = knob_name in NAMES or knob_name in SCHEMA or knob_name in METRICS
        knob_kinds = {info_of_knob.kind for info_of_knob in infos_of_knob}
        labels = {info_of_knob.label for info_of_knob in infos_of_knob}
        knob_words = {info_of_knob.words for info_of_knob in infos_of_knob}
        # One name for different things in two policies: only its text fits in one column.
        varied_knobs[f"{knob_name}_knob" if name_is_taken else knob_name] = {
            "name": knob_name,
            "kind": knob_kinds.pop() if len(knob_kinds) == 1 else "words",
            "label": labels.pop() if len(labels) == 1 else knob_name,
            "words": knob_words.pop() if len(knob_words) == 1 else knob_name,
            "log": all(info_of_knob.knob.log for info_of_knob in infos_of_knob),
        }
    return varied_knobs


_TYPES = {"float": pl.Float64, "int": pl.Int64, "bool": pl.Boolean}


def _frame(sweep_rows: list[dict], stored_metrics: dict[str, dict], knobs: dict) -> pl.DataFrame:
    """Return a frame with one row for each finished cell; knobs that are tuples or choices are text."""

    def value_of(about_knob: dict, sweep_row: dict):
        knob_value = sweep_row["knobs"].get(about_knob["name"])
        return knob_value if about_knob["kind"] in _TYPES or knob_value is None else knob_word(knob_value)

    schema = {column_name: SCHEMA.get(column_name, pl.String) for column_name in NAMES}
    schema |= {knob_column: _TYPES.get(about_knob["kind"], pl.String) for knob_column, about_knob in knobs.items()}
    schema |= {column_name: column_type for column_name, column_type in SCHEMA.items() if column_name in METRICS}
    finished_cells = [
        stored_metrics[sweep_row["cell"]]
        | {column_name: sweep_row[column_name] for column_name in NAMES if sweep_row.get(column_name) is not None}
        | {knob_column: value_of(about_knob, sweep_row) for knob_column, about_knob in knobs.items()}
        for sweep_row in sweep_rows
        if sweep_row["cell"] in stored_metrics
    ]
    return pl.DataFrame(finished_cells, schema=schema, orient="row")


def _word(sweep_row: dict, knobs: dict) -> str:
    """Label of a row."""
    knob_settings = [
        f"{knob_column}={knob_word(sweep_row['knobs'][about_knob['name']])}"
        for knob_column, about_knob in knobs.items()
        if about_knob["name"] in sweep_row["knobs"]
    ]
    where = [
        sweep_row["scenario"],
        *([sweep_row["cluster"]] if sweep_row["cluster"] else []),
        f"seed {sweep_row['seed']}",
    ]
    return " ".join([sweep_row["policy"], *knob_settings, "on", ", ".join(where)])
