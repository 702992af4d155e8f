"""How jobs ended: the words of Slurm, Kubernetes and others in ours."""

from collections.abc import Mapping

import polars as pl

RUNNING, WAITING, NO_JOB = "running", "waiting", "records"
#: What a word can mean: the three outcomes of a trace, and those of jobs that have none, or are none.
MEANINGS = ("completed", "failed", "killed", RUNNING, WAITING, NO_JOB)
STATES = {
    "completed": "completed complete success succeeded successful pass passed finished done ok cd terminated",
    "failed": (
        "failed fail failure error timeout node_fail boot_fail deadline out_of_memory oom oomkilled crashed launch_failed "
        "reconfig_fail f to nf bf dl out_of_me"  # as sacct cuts it
    ),
    "killed": "killed cancelled canceled preempted aborted stopped deleted evicted terminating ca pr",
    RUNNING: "running suspended completing configuring resizing configuri stage_out signaling unfinished r s cg cf",
    WAITING: (
        "pending queued waiting requeued requeue_hold requeue_fed resv_del_hold special_exit inqueue submitted unscheduled pd rq held"
    ),
    NO_JOB: "revoked rv",
}
WORDS = {word: meaning for meaning, words in STATES.items() for word in words.split()}
#: Ends of an attempt after which the same job may be submitted again.
REQUEUED = ("PREEMPTED", "NODE_FAIL", "REQUEUED", "PR", "NF", "RQ", "REQUEUE_HOLD")
RESIZING = ("RESIZING", "RS")


def word(text: pl.Expr) -> pl.Expr:
    """State as the log writes it, its first word in capitals: "CANCELLED by 1001" and "CANCELLED+" are CANCELLED."""
    return text.str.strip_chars().str.extract(r"^([^\s+(]+)").str.to_uppercase()


def meaning(text: pl.Expr, more: Mapping[str, str | None] = {}) -> pl.Expr:
    """Meaning of states, null where the word is not known; `more` adds words, or changes them."""
    known = WORDS | {name.strip().lower(): what for name, what in more.items()}
    whole, first = text.str.strip_chars().str.to_lowercase(), word(text).str.to_lowercase()
    return pl.coalesce(t.replace_strict(known, default=None, return_dtype=pl.String) for t in (whole, first))


def of_exit(code: pl.Expr) -> pl.Expr:
    """Meaning of PBS's Exit_status: 0 completed, up to 256 the program's own, above a signal, below 0 killed by the server."""
    code = code.cast(pl.Float64, strict=False)
    ends = {"completed": code == 0, "failed": code.is_between(1, 256), "killed": code.is_not_null()}
    return pl.coalesce(pl.when(so).then(pl.lit(end)) for end, so in ends.items())
