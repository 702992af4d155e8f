"""Decisions on disk as they are taken: one line of JSON each, so that a stopped loop can resume."""

import contextlib
import json
from pathlib import Path

from gpuschedlab._files import UNREADABLE, append_line, whole
from gpuschedlab.errors import RunError


class Journal:
    """A file of decisions of one closed loop, which its first line identifies.

    Parameters
    ----------
    path : str or Path
    identity : dict
        Plain values that a resumed loop must share: policy, trace, cluster, seed, options.
    resume : bool
        Whether the loop goes on after the decisions that are there, and there must be a file; without it there must be none.
        A line that a crash cut off is dropped.

    Raises
    ------
    RunError
        The file exists though it is not to be resumed, or is missing though it is; is of another loop, is no journal,
        or cannot be written.
    """

    def __init__(self, path, identity: dict, *, resume: bool = False):
        self.path = Path(path)
        self.records = []
        self.identity = json.loads(json.dumps(identity, sort_keys=True, default=str))
        if self.path.exists() and not resume:
            raise RunError(f"{self.path}: found a journal; expected a new file. Resume it, or name another.")
        if resume and not self.path.exists():
            raise RunError(f"{self.path}: found no journal to resume; expected one. Begin it without resume.")
        if resume:
            self.records = self._read()
        with self._storing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with whole(self.path) as part_file:
                journal_rows = [{"identity": self.identity}, *self.records]
                part_file.write_text("".join(json.dumps(journal_row) + "\n" for journal_row in journal_rows))

    def append(self, decision) -> None:
        """Keep a decision; it is on disk when this returns. RunError if it is no later than the last one that is kept."""
        record = json.loads(json.dumps(decision.record()))
        if self.records and record["now"] <= self.records[-1]["now"]:
            raise RunError(
                f"{self.path}: found decisions up to {self.records[-1]['now']:g} s; expected the next after that, not at "
                f"{record['now']:g} s. Give its records to Controller.resume first, or name another file."
            )
        self.records.append(record)
        with self._storing():
            append_line(self.path, record, durable=True)

    @contextlib.contextmanager
    def _storing(self):
        try:
            yield
        except OSError as error:
            storing_problem = f"decisions not stored in {self.path}: {error.strerror or error}"
            raise RunError(f"{storing_problem}. Those before are kept; free some space and resume.") from error

    def _read(self) -> list[dict]:
        try:
            identity_line, *decision_lines = self.path.read_text().splitlines()
            identity = dict(json.loads(identity_line)["identity"])
        except (*UNREADABLE, KeyError, TypeError) as error:
            raise RunError(f"{self.path}: found no journal; expected one that a tuning wrote. Name another.") from error
        option_names = sorted(self.identity.keys() | identity.keys())
        differing = [
            option_name for option_name in option_names if self.identity.get(option_name) != identity.get(option_name)
        ]
        if differing:
            differing_options = [
                f"{option_name} {identity.get(option_name)!r} (now {self.identity.get(option_name)!r})"
                for option_name in differing
            ]
            raise RunError(
                f"{self.path}: found a journal of another loop: {', '.join(differing_options)}. Use its options, or another file."
            )
        records = [_record(decision_line) for decision_line in decision_lines]
        if records and records[-1] is None:
            records.pop()  # the line that was being written
        if None in records:
            where = f"{self.path}, line {records.index(None) + 2}"
            raise RunError(f"{where}: found no decision; expected JSON. Name another file.")
        return records


def _record(line: str) -> dict | None:
    """Read the dict of a decision from a line of JSON; None if it holds none."""
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads(line)
        if isinstance(record, dict) and isinstance(record.get("now"), int | float):
            return record
    return None
