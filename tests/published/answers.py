"""Answers that are kept as they come."""

from pathlib import Path

from gpuschedlab._files import append_line, json_lines


class Answers:
    """Answers by case that are kept as they come, one in a line of JSON: work that was stopped goes on.

    The source is a hash of all that answers depend on: `known` holds those of this source, by case (a tuple).

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "runs" / "found.jsonl"
    >>> Answers(path, "code 1").keep(("tiresias", 0), 4.5)
    >>> Answers(path, "code 1").known, Answers(path, "code 2").known
    ({('tiresias', 0): 4.5}, {})
    """

    def __init__(self, path: Path, source: str):
        self.path = path
        self.source = source
        records = (record for record in json_lines(path) if record.get("source") == source)
        self.known = {tuple(record["case"]): record["answer"] for record in records}

    def keep(self, case: tuple, answer) -> None:
        """Keep an answer."""
        self.known[case] = answer
        self.path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self.path, {"source": self.source, "case": case, "answer": answer})
