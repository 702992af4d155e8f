"""Store of cells: a folder with one file per cell, each complete or absent."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from gpuschedlab._files import UNREADABLE, append_line, json_lines, sealed, unsealed, verify, whole
from gpuschedlab.errors import RunError
from gpuschedlab.metrics import METRICS
from gpuschedlab.sim.run import FRAMES, SUMS
from gpuschedlab.sweep.work import Outcome

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None

COUNTS = ("jobs", "finished", "unfinished", "censored", "preemptions", "failures")
SCHEMA = dict.fromkeys(("cell", "policy", "knobs", "cluster", "estimator"), pl.String) | {"seed": pl.Int64}
SCHEMA |= {name: pl.Int64 if name in COUNTS else pl.Float64 for name in METRICS if name != "seconds"}
"""Fields of a cell's file."""
SUFFIXES = (".json", ".parquet")
"""Endings of a cell's file, now and in the past."""


class Store:
    """A sweep's folder."""

    # `cells/KEY.json` (the metrics), `runs/KEY/` (where runs are kept), `errors/KEY.txt`, `log.jsonl` (how
    # long each cell took, and of some whether their books add up: the only file that two sweeps do not have alike) and
    # `sweep.json` (the rows, in order).

    def __init__(self, folder):
        self.folder = Path(folder)
        self.cells, self.runs, self.errors = (self.folder / folder_name for folder_name in ("cells", "runs", "errors"))
        self.log = self.folder / "log.jsonl"

    @contextlib.contextmanager
    def held(self):
        """Context manager: hold the folder, yield the store; no other sweep writes there, and half-written files are removed."""
        with disk_errors(self):
            for store_path in (self.cells, self.runs, self.errors):
                store_path.mkdir(parents=True, exist_ok=True)
            lock = open(self.folder / ".lock", "a")  # noqa: SIM115 - closed below; the lock ends with it
        with lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise RunError(
                        f"sweep: found another one at work in {self.folder}; expected to be alone there. "
                        "Wait for it, or choose another folder."
                    ) from None
            with disk_errors(self):
                for store_path in (*self.cells.glob(".*"), *self.errors.glob(".*")):
                    store_path.unlink()
                for store_path in self.runs.glob(".*"):
                    shutil.rmtree(store_path)
            yield self

    def metrics(self, keys: Iterable[str]) -> dict[str, dict]:
        """Return a dict by cell of dicts: metrics, cluster and estimator of the cells that are finished and have intact files."""
        stored_columns = [
            stored_column for stored_column in ("cluster", "estimator", *METRICS) if stored_column in SCHEMA
        ]
        intact = {}
        cell_files = {cell_path.name for cell_path in self.cells.iterdir()} if self.cells.is_dir() else set()
        for cell_key in keys:
            if self.cell(cell_key).name not in cell_files:
                continue
            with contextlib.suppress(OSError):
                record = unsealed(self.cell(cell_key).read_bytes())
                if record.keys() == SCHEMA.keys() and record["cell"] == cell_key:
                    intact[cell_key] = {column_name: record[column_name] for column_name in stored_columns}
        return intact

    def cell(self, key: str) -> Path:
        """Return the path of the file of a cell."""
        return self.cells / f"{key}.json"

    def has_run(self, key: str) -> bool:
        """Whether a cell's run is kept, too, and its files are as they were written."""
        folder = self.runs / key
        try:
            for name in (*(f"{name}.parquet" for name in FRAMES), "info.json"):
                verify(folder / name, folder / SUMS)
        except OSError:
            return False
        return (folder / SUMS).is_file()

    def keep(self, outcome: Outcome, about: dict):
        """Keep a finished cell: its run first, so that the cell's file vouches for both."""
        cell_key = outcome.key
        cell_values = {"cell": cell_key} | about | outcome.metrics
        record = {
            column_name: _as_declared(cell_values.get(column_name), dtype) for column_name, dtype in SCHEMA.items()
        }
        log_entry = {"cell": cell_key, "seconds": outcome.seconds} | (
            {} if outcome.books is None else {"books": outcome.books}
        )
        if outcome.run is not None:
            log_entry["rounds"] = outcome.rounds
            folder = self.runs / cell_key
            with disk_errors(self):
                for run_path in (folder, *folder.glob("*")):
                    make_way(run_path, folder=run_path == folder)
            outcome.run.to_parquet(self.runs / cell_key)
        with disk_errors(self):
            append_line(self.log, log_entry)
            put(self.cell(cell_key), sealed(record))
            make_way(self.errors / f"{cell_key}.txt")
            (self.errors / f"{cell_key}.txt").unlink(missing_ok=True)

    def keep_error(self, outcome: Outcome):
        """Note the error of a cell, and its place."""
        with disk_errors(self):
            put(self.errors / f"{outcome.key}.txt", f"{outcome.error}\n\n{outcome.trace}".encode())

    def keep_rows(self, rows: list[dict], knobs: dict):
        """Keep the parts of the sweep."""
        with disk_errors(self):
            put(self.folder / "sweep.json", json.dumps({"knobs": knobs, "rows": rows}, indent=1).encode())

    def rows(self) -> tuple[list[dict], dict]:
        """Return two parts of the sweep, a tuple: the list of its rows (dicts), and a dict of how its knobs are labelled."""
        sweep_file = self.folder / "sweep.json"
        try:
            stored_plan = json.loads(sweep_file.read_text())
            return stored_plan["rows"], stored_plan["knobs"]
        except (*UNREADABLE, KeyError, TypeError) as error:
            raise RunError(f"{sweep_file}: {error}; expected a folder that sweep() wrote.") from error

    def outdated(self, rows: list[dict], done) -> int:
        """How many rows that are not done have a finished cell under another key, as an input of their result has changed."""
        with contextlib.suppress(RunError):
            files = {cell_path.name for cell_path in self.cells.iterdir()}
            rows_before, _ = self.rows()
            cell_of_row = {}
            for sweep_row in rows_before:
                if any(sweep_row["cell"] + suffix in files for suffix in SUFFIXES):
                    cell_of_row[_asked(sweep_row)] = sweep_row["cell"]
            return sum(
                cell_of_row.get(_asked(sweep_row), sweep_row["cell"]) != sweep_row["cell"]
                for sweep_row in rows
                if sweep_row["cell"] not in done
            )
        return 0

    def error(self, key: str) -> str | None:
        """Return the error of a cell, in one line of text; None if there is no note of one."""
        error_file = self.errors / f"{key}.txt"
        return error_file.read_text(errors="replace").partition("\n")[0] if error_file.is_file() else None

    def logged(self) -> dict[str, dict]:
        """Return a dict of the log's entries (dicts) by cell: `seconds`, `rounds` if runs are kept, `books` if added up."""
        return {
            cell_entry["cell"]: cell_entry
            for cell_entry in json_lines(self.log)
            if isinstance(cell_entry.get("cell"), str)
        }


def _as_declared(cell_value, dtype):
    """Return the value of a cell's field, an int or a float, in the type of JSON that stands for its column's type."""
    if cell_value is None or dtype == pl.String:
        return cell_value
    return int(cell_value) if dtype == pl.Int64 else float(cell_value)


def _asked(sweep_row: dict) -> str:
    """Return a text of a row of a sweep without its cell's key: policy, scenario, seed and knobs."""
    return json.dumps(
        {row_field: row_value for row_field, row_value in sweep_row.items() if row_field != "cell"}, sort_keys=True
    )


def put(path: Path, raw: bytes):
    """Write a file whole or not at all."""
    make_way(path)
    with whole(path) as part_file:
        part_file.write_bytes(raw)


def make_way(path: Path, *, folder: bool = False):
    """Set aside anything that is no file, or no folder, if one is to be written there: nothing is lost, and nothing is in the way."""
    if path.exists() and path.is_dir() != folder:
        path.rename(path.with_name(f"{path.name}.{os.getpid()}.aside"))


@contextlib.contextmanager
def disk_errors(store: Store):
    """Context manager: raise the package's own error for a full disk, or a folder that cannot be written."""
    try:
        yield
    except OSError as error:
        finished_cells = sum(1 for _ in store.cells.glob("*.json")) if store.cells.is_dir() else 0
        raise RunError(
            f"sweep: {store.folder} cannot be written: {error.strerror or error}. The {finished_cells} cells that are finished "
            "are kept; free some space, and the same call resumes from there."
        ) from error
