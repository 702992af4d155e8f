"""Decisions on disk as they are taken: one line of JSON each, so that a stopped loop can resume."""

import json
import os
from pathlib import Path

from gpuschedlab._files import whole
from gpuschedlab.errors import RunError


class Journal:
    """A file of decisions of one closed loop.

    The first line identifies the loop (`identity`); a file of another loop is never appended to. A line that a crash
    cut off is dropped.

    Parameters
    ----------
    path : str or Path
    identity : dict
        Plain values that a resumed loop must share: policy, trace, cluster, seed, options.
    resume : bool
        Whether the loop goes on after the decisions that are there, and there must be a file; without it there must be none.

    Raises
    ------
    RunError
        The file exists though it is not to be resumed, or is missing though it is; is of another loop, is no journal,
        or cannot be written.
    """

    def __init__(self, path, identity: dict, *, resume: bool = False):
        self.path = Path(path)
        self.identity = json.loads(json.dumps(identity, sort_keys=True, default=str))
        self.records: list[dict] = []
        if self.path.exists() and not resume:
            raise RunError(f"{self.path}: found a journal; expected a new file. Resume it, or name another.")
        if resume:
            if not self.path.exists():
                raise RunError(f"{self.path}: found no journal to resume; expected one. Begin it without resume.")
            self.records = self._read()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            kept = [json.dumps({"identity": self.identity}), *map(json.dumps, self.records)]
            with whole(self.path) as part:
                part.write_text("\n".join(kept) + "\n")
        except OSError as error:
            raise self._unwritten(error) from error

    def append(self, decision) -> None:
        """Keep a decision; it is on disk when this returns.

        Raises
        ------
        RunError
            It cannot be written, or is not later than the last one that is kept.
        """
        record = json.loads(json.dumps(decision.record()))
        if self.records and record["now"] <= self.records[-1]["now"]:
            raise RunError(
                f"{self.path}: found decisions up to {self.records[-1]['now']:g} s; expected the next after that, not at "
                f"{record['now']:g} s. Give its records to Controller.resume first, or name another file."
            )
        self.records.append(record)
        try:
            with self.path.open("a") as file:
                file.write(json.dumps(record) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unwritten(error) from error

    def _unwritten(self, error: OSError) -> RunError:
        return RunError(
            f"decisions not stored in {self.path}: {error.strerror or error}. Those before are kept; free some space "
            "and resume."
        )

    def _read(self) -> list[dict]:
        try:
            lines = self.path.read_text().splitlines()
            found = json.loads(lines[0])["identity"]
        except (OSError, IndexError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{self.path}: found no journal; expected one that a tuning wrote. Name another.") from error
        if found != self.identity:
            other = sorted(k for k in self.identity.keys() | found.keys() if self.identity.get(k) != found.get(k))
            differing = ", ".join(f"{k} {found.get(k)!r} (now {self.identity.get(k)!r})" for k in other)
            raise RunError(
                f"{self.path}: found a journal of another loop: {differing}. Use its options, or another file."
            )
        records = []
        for i, line in enumerate(lines[1:], start=2):
            try:
                records.append(json.loads(line))
                if not isinstance(records[-1], dict) or "now" not in records[-1]:
                    raise ValueError(line)
            except ValueError as error:
                if i == len(lines):
                    break  # the line that was being written
                raise RunError(
                    f"{self.path}, line {i}: found no decision; expected JSON. Name another file."
                ) from error
        return records
