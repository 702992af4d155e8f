"""Answers that are kept as they come."""

from pathlib import Path

from gpuschedlab._files import append_line, json_lines


class Answers:
    """Answers by source and case that are kept as they come, one in a line of JSON: work that was stopped goes on.

    A source is a hash of all that an answer depends on, a case a tuple: `known` holds all answers by both.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "runs" / "found.jsonl"
    >>> Answers(path).keep("code 1", ("tiresias", 0), 4.5)
    >>> Answers(path).known
    {('code 1', ('tiresias', 0)): 4.5}
    """

    def __init__(self, path: Path):
        self.path = path
        self.known = {(record["source"], tuple(record["case"])): record["answer"] for record in json_lines(path)}

    def keep(self, source: str, case: tuple, answer) -> None:
        """Keep an answer."""
        self.known[source, case] = answer
        self.path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self.path, {"source": source, "case": case, "answer": answer})
