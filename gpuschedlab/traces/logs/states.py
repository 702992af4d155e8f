"""How jobs ended: the words of Slurm, Kubernetes and others in ours."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import polars as pl

RUNNING = "running"
WAITING = "waiting"
NO_JOB = "records"
#: What a word can mean: the three outcomes of a trace, and those of jobs that have none, or are none.
MEANINGS = ("completed", "failed", "killed", RUNNING, WAITING, NO_JOB)
with Path(__file__).with_name("names.toml").open("rb") as _table:
    NAMED: dict[str, dict[str, str]] = tomllib.load(_table)
"""Names of columns and words for states, by the log that has them."""
WORDS = {word: meaning for meaning, words in NAMED["states"].items() for word in words.split()}
#: Ends of an attempt after which the same job may be submitted again.
REQUEUED = ("PREEMPTED", "NODE_FAIL", "REQUEUED", "PR", "NF", "RQ", "REQUEUE_HOLD")
RESIZING = ("RESIZING", "RS")
NEAR = 60.0
"""Seconds from the end of an attempt within which the next is submitted (Slurm resets Submit at a requeue, sacct(1))."""


def word(text: pl.Expr) -> pl.Expr:
    """Return an expression (`pl.Expr`): the log's state, its first word in capitals.

    "CANCELLED by 1001" and "CANCELLED+" are CANCELLED.
    """
    first = text.str.strip_chars().str.extract(r"^([^\s+(]+)")
    return first.str.to_uppercase()


def meaning(text: pl.Expr, more: Mapping[str, str | None] = {}) -> pl.Expr:
    """Return an expression (`pl.Expr`): meaning of states, null if the word is not known; `more` adds words, or changes them."""
    state_meanings = WORDS | {state_name.strip().lower(): state_meaning for state_name, state_meaning in more.items()}
    state_text = text.str.strip_chars().str.to_lowercase()
    first = word(text).str.to_lowercase()
    return pl.coalesce(
        t.replace_strict(state_meanings, default=None, return_dtype=pl.String) for t in (state_text, first)
    )


def follows_requeue(state: pl.Expr, submit: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Return an expression (`pl.Expr`): whether a record is the next attempt of the job of the one before it.

    That one, of the same job number, ended in a requeue.

    The next attempt is submitted as the one before ends, or keeps the first submission. Records of a number stand by submission and
    start; `state` is the log's word in capitals, `end` when a record ended.
    """
    requeued = state.shift(1).over("job_id").is_in(REQUEUED)
    since_end = submit - end.shift(1).over("job_id")
    near = since_end.abs() <= NEAR
    same = submit == submit.shift(1).over("job_id")
    return (requeued & (near | same)).fill_null(False)


def of_exit(code: pl.Expr) -> pl.Expr:
    """Return an expression (`pl.Expr`): meaning of PBS's Exit_status.

    It is 0 if completed, up to 256 the program's own, above a signal, below 0 killed by the server.
    """
    code = code.cast(pl.Float64, strict=False)
    ends = {"completed": code == 0, "failed": code.is_between(1, 256), "killed": code.is_not_null()}
    return pl.coalesce(pl.when(so).then(pl.lit(end)) for end, so in ends.items())
