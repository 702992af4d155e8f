"""Which cell of a notebook is being run: what stands in its output goes when it is run again."""

import os
import sys
from typing import NamedTuple


class Execution(NamedTuple):
    """One execution of a cell: identities of the cell ("" where the front end does not say) and of the request; its kind."""

    cell: str
    request: str
    kind: str = ""


def execution() -> Execution | None:
    """Execution under way; None outside a kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return None
    parent = kernel.get_parent("shell") or {}
    header = parent.get("header", {})
    return Execution(parent.get("metadata", {}).get("cellId", ""), header.get("msg_id", ""), header.get("msg_type", ""))


def in_batch() -> bool:
    """Whether cells are run by a program, such as papermill or a site's build, and by no front end that names them."""
    now = execution()
    return now is not None and not now.cell and "VOILA_REQUEST_URL" not in os.environ


_carrier: Execution | None = None


def carries_library() -> bool:
    """Whether an output brings plotly: the first in a kernel does, and again when its cell is run again, which replaces it."""
    global _carrier
    now = execution()
    if now is None:
        return True
    carries = _carrier is None or (now.cell and _carrier.cell == now.cell and _carrier.request != now.request)
    _carrier = now if carries else _carrier
    return bool(carries)
