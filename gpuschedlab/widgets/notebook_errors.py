"""Errors inside a notebook that ran to its end: those of cells, and of widgets, which nobody else reports.

A batch run of a notebook succeeds although a widget's callback failed: the error then stands in an output widget,
in the notebook's saved widget state. It succeeds, too, when a widget was sent values that JSON cannot say (nan, inf); only a
warning among a cell's outputs says so.
"""

import json
from pathlib import Path

from gpuschedlab.errors import RunError

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
UNSENDABLE = "Message serialization failed"
"""How jupyter_client begins its warning that a message had nan or inf in it, or something else that is not JSON."""


def find_errors(notebook) -> list[str]:
    """Return a list of the errors, a line (str) each, in the outputs and saved widget state of an executed notebook.

    Parameters
    ----------
    notebook : str, Path or dict
        Its file, or its content.

    Returns
    -------
    list of str
        Also when widgets are shown whose state was not saved, since nothing can be said about them then.

    Raises
    ------
    RunError
        The file is no notebook.

    Examples
    --------
    >>> bad = {"output_type": "error", "ename": "ValueError", "evalue": "no"}
    >>> find_errors({"cells": [{"cell_type": "code", "outputs": [bad]}], "metadata": {}})
    ['cell 0: ValueError: no']
    """
    content = notebook if isinstance(notebook, dict) else _read(Path(notebook))
    errors = []
    views = set()
    for i, cell in enumerate(content["cells"]):
        for output in cell.get("outputs", ()):
            errors += _errors(output, f"cell {i}")
            if VIEW in output.get("data", {}):
                views.add(output["data"][VIEW]["model_id"])
    state = content.get("metadata", {}).get("widgets", {}).get(STATE, {}).get("state", {})
    for widget_id, widget in state.items():
        for output in widget.get("state", {}).get("outputs") or ():
            errors += _errors(output, f"widget {widget_id[:8]}")
    if lost := views - set(state):
        errors.append(f"{len(lost)} widgets were shown, but their state was not saved")
    return errors


def _errors(output: dict, where: str) -> list[str]:
    stderr_text = "".join(output.get("text", ())) if output.get("name") == "stderr" else ""
    if UNSENDABLE in stderr_text:
        return [f"{where}: {' '.join(stderr_text[stderr_text.index(UNSENDABLE) :].split())[:120]}"]
    if output.get("output_type") != "error":
        return []
    return [f"{where}: {output.get('ename')}: {output.get('evalue')}"]


def _read(path: Path) -> dict:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        content["cells"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: {error}; expected an executed notebook (.ipynb).") from error
    return content
