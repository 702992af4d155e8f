"""A log of one's own in an explorer: chosen in the browser, read by a spec that can be edited."""

import json
import re
import tempfile
import tomllib
from pathlib import Path

from gpuschedlab._extras import need
from gpuschedlab.errors import TraceError
from gpuschedlab.traces.intake.door import taken
from gpuschedlab.traces.logs.ledger import Intake
from gpuschedlab.widgets.parts.controls import button


def uploaded(name: str, content: bytes, spec: str = "") -> Intake:
    """Read a log that was sent into an `Intake`, as a TOML spec says; without one, as it is recognised."""
    # The spec has the keys of a file's (`gpuschedlab.intake`), but for `path`: only what was sent is read.
    try:
        spec_options = tomllib.loads(spec)
    except tomllib.TOMLDecodeError as error:
        raise TraceError(
            f"spec of {name}: found no TOML ({error}); expected keys such as format, zone, [columns]."
        ) from error
    paths = [spec_key for spec_key in ("path", "speeds") if isinstance(spec_options.get(spec_key), str)]
    if paths:
        raise TraceError(
            f"spec of {name}: found {paths[0]} = {spec_options[paths[0]]!r}; expected none: the log is the file that was sent."
        )
    format = spec_options.pop("format", None)
    if format == "spec" or Path(name).suffix == ".toml":  # it would name a file of this machine
        raise TraceError(
            f"{name}: found a spec; expected a log. Send the log, and write the keys of its spec into the box."
        )
    with tempfile.TemporaryDirectory(prefix="gpuschedlab-") as folder:
        # A name is what a browser says: any text. Of one that is no file's, its end stays: it shows the format.
        path = Path(folder) / re.sub(r"(?a)[^\w.,()+= -]|^\.+$|^$", "_", re.split(r"[/\\]", name)[-1])[-100:]
        path.write_bytes(content)
        uploaded_log, _ = taken((format, path) if format else path, spec_options)
    if uploaded_log.trace is None:
        raise TraceError(f"{name}: found a list of nodes, and no jobs; expected a log of jobs.")
    return uploaded_log


def spec_of(found: Intake) -> str:
    """Return the TOML text by which a log is read again as it was: its format, its zone, and the meaning of its columns."""
    report = found.report
    spec_lines = [f'format = "{report.format}"', *([f'zone = "{report.zone}"'] if report.zone else [])]
    if report.format == "csv":  # others have columns of fixed names
        spec_lines += ["", "[columns]"]
        spec_lines += [
            f"{column_name} = {json.dumps(column_text, ensure_ascii=False)}"
            for column_name, column_text in report.used.items()
        ]
    return "\n".join(spec_lines) + "\n"


class OwnLog:
    """A button that takes a file, the spec that was guessed, in a box, and a button that reads the log by it again."""

    def __init__(self, owner):
        ipywidgets = need("ipywidgets")
        self._owner = owner
        control_tooltip = "a log of your own: sacct, PBS, Kubernetes, SWF, csv, ...; it stays on this machine"
        self.file = ipywidgets.FileUpload(
            description="own log", tooltip=control_tooltip, layout=ipywidgets.Layout(width="auto")
        )
        self.shown = ipywidgets.ToggleButton(
            description="how it was read", layout=ipywidgets.Layout(width="auto", display="none")
        )
        control_tooltip = "how the log is read: keys as in a TOML spec"
        self.spec = ipywidgets.Textarea(tooltip=control_tooltip, layout=ipywidgets.Layout(width="100%", height="110px"))
        self.again = button(owner, "Read again", "read the log as the box says", lambda: self._read(self.spec.value))
        self.box = ipywidgets.VBox([self.spec, self.again], layout=ipywidgets.Layout(width="100%", display="none"))
        self.file.observe(lambda _: owner.guarded(self._sent), "value")
        self.shown.observe(
            lambda menu_change: setattr(self.box.layout, "display", None if menu_change["new"] else "none"), "value"
        )

    def _sent(self):
        if self.file.value:
            self.shown.layout.display = None
            self._read("")

    def _read(self, spec: str):
        sent = self.file.value[-1]
        try:
            uploaded_log = uploaded(sent["name"], bytes(sent["content"]), spec)
        except TraceError:
            # What was not recognised can be named in the box.
            self.spec.value = spec or 'format = "csv"\n'
            self.shown.value = True
            raise
        self.spec.value = spec or spec_of(uploaded_log)
        self._owner.take(sent["name"], uploaded_log)
