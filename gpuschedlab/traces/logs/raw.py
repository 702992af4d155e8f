"""What a reader hands over: a table of texts, and under which of our names its columns go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from gpuschedlab.cluster import Cluster
from gpuschedlab.traces.schema import LINE as LINE
from gpuschedlab.traces.schema import Rule


@dataclass
class Raw:
    """Records of a log before anything is converted.

    Parameters
    ----------
    table : polars.DataFrame
        A row a record: texts, or numbers.
    where : dict of str to str or polars.Expr
        Column of a trace (or start, end, suspended, state, part, left) -> the table's; `left` is a reason to leave a row out.
    cpu : bool
        Whether a record without a word of GPUs asks for none.
    states : mapping
        Words of the format beyond the common ones; None: no outcome.
    short : str, optional
        What spans of two fields are ("MM:SS").
    units : mapping
        Seconds of bare numbers by column.
    gangs : {"", "common", "last"}
        Rows of one job_id are parts that hold GPUs together: with a common start, or from the last part's start on.
    repeats : {"error", "requeue", "attempts"}
        What further rows of one job_id are: an error, attempts after a requeue, or attempts in any case.
    zone : str, optional
        Zone of the cluster's clock.
    rows : int, optional
        Records in the file, where they are not the table's rows.
    left : dict
        Records that the reader has left out, by reason.
    guessed, assumed, missing : list of str
        As in the report.
    snapshot : float, optional
        Latest instant of the file (s), where it does not stand in the table.
    first_line : int
        Line of the first row.
    cluster : Cluster, optional
        What the log says of its cluster.
    accept : tuple of str
        Losses that lie in the format.
    rules : sequence of Rule
        What else a good row is.
    epoch : float
        Unix time (s) of the log's zero, where its header says it.
    """

    table: pl.DataFrame
    where: dict[str, str | pl.Expr]
    cpu: bool = True
    states: Mapping[str, str | None] = field(default_factory=dict)
    short: str | None = None
    units: Mapping[str, float] = field(default_factory=dict)
    gangs: str = ""
    repeats: str = "error"
    zone: str | None = None
    rows: int | None = None
    left: dict[str, int] = field(default_factory=dict)
    guessed: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    snapshot: float | None = None
    first_line: int = 2
    cluster: Cluster | None = None
    accept: tuple[str, ...] = ()
    rules: Sequence[Rule] = ()
    epoch: float = 0.0
