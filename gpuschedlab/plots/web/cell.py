"""Which cell of a notebook is being run: the content of its output goes when it is run again."""

import os
import sys
from typing import NamedTuple


class Execution(NamedTuple):
    """One execution of a cell: identities of the cell ("" if the front end does not say) and of the request; its kind."""

    cell: str
    request: str
    kind: str = ""


def execution() -> Execution | None:
    """Return the `Execution` under way; None outside a kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return None
    parent = kernel.get_parent("shell") or {}
    header = parent.get("header", {})
    return Execution(parent.get("metadata", {}).get("cellId", ""), header.get("msg_id", ""), header.get("msg_type", ""))


def in_batch() -> bool:
    """Whether cells are run by a program, such as papermill or a site's build, and by no front end that names them."""
    current = execution()
    return current is not None and not current.cell and "VOILA_REQUEST_URL" not in os.environ


_carrier: Execution | None = None


def carries_library() -> bool:
    """Whether an output brings plotly: the first in a kernel does, and again when its cell is run again, which replaces it."""
    global _carrier
    current = execution()
    if current is None:
        return True
    if _carrier is None or _replaces(current, _carrier):
        _carrier = current
        return True
    return False


def _replaces(current: Execution, earlier: Execution) -> bool:
    """Whether the cell of an earlier execution is run again; False if the front end does not say which cell is run."""
    return bool(current.cell) and earlier.cell == current.cell and earlier.request != current.request
