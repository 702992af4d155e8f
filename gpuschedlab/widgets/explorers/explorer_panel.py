"""The Explorer's controls: pickers, knobs, buttons and the table, laid out."""

from html import escape

from gpuschedlab._extras import need
from gpuschedlab.cluster import Cluster
from gpuschedlab.widgets.parts.controls import button, control, row
from gpuschedlab.widgets.parts.knob_controls import KnobControls, quiet


class Panel:
    """Pickers of trace, cluster and policy; the policy's knobs; buttons; the table of differences."""

    def __init__(self, owner, first: str, seed: int):
        w = need("ipywidgets")
        self._owner = owner
        self.trace = self._pick("trace", list(owner.traces))
        other = "another seed is another week with the same habits"
        self.seed = control("BoundedIntText", "seed", 96, 34, value=seed, min=0, max=10**6, tooltip=other)
        self.cluster = self._pick("cluster", list(owner.clusters))
        written = {"placeholder": "20x8:v100,10x4:t4", "tooltip": "NODESxGPUS[:TYPE],...", "continuous_update": False}
        self.own = control("Text", "own cluster", 200, 76, **written)
        self.nodes = control("IntSlider", "nodes", 180, 40, min=1, max=2)
        self.policy = self._pick("policy", list(owner.policies), first)
        self.charted = control("Dropdown", "Gantt of", 144, 58, options=["now", "pinned"])
        self.table, self.note, self._knob_slot, self.knobs = w.HTML(), w.HTML(), w.VBox(), None
        self.report, self.code = (w.HTML(layout=w.Layout(display="none")) for _ in range(2))
        self._make_knobs()
        self._fit_cluster()
        answers = {
            "Pin this": ("compare what follows with the present policy and cluster", owner.pin),
            "Unpin": ("compare with nothing", owner.unpin),
            "Reset knobs": ("the policy's own defaults", lambda: self.knobs.show(owner.policies[self.policy.value])),
            "Download run": ("the run, its trace and its code, as one file", owner.download),
            "Code": ("show or hide the Python that makes this run again", self._toggle_code),
        }
        self.buttons = [button(owner, name, *what) for name, what in answers.items()]
        answers = {
            self.trace: self._other_trace,
            self.seed: owner._changed,
            self.nodes: owner._changed,
            self.cluster: lambda _: self._quietly(self._fit_cluster),
            self.own: self._own_cluster,
            self.policy: lambda _: owner.guarded(lambda: self._quietly(self._make_knobs)),
            self.charted: lambda _: owner._redraw_gantt(),
        }
        for part, answer in answers.items():
            part.observe(answer, "value")
        self._other_trace(None)
        chosen = w.VBox([row(self.policy, *self.buttons[:3]), self._knob_slot, self.note])
        pickers = row(self.trace, self.seed, self.nodes, self.cluster, self.own)
        door = [owner.door.file, owner.door.shown] if owner.door else []
        shown = row(self.charted, owner.player.box, *self.buttons[3:], *door)
        self.rows = [chosen.add_class("gpuschedlab-left"), self.table, self.report]
        self.rows += [each.add_class("gpuschedlab-pickers") for each in (pickers, shown)]
        self.rows += [owner.door.box] if owner.door else []

    def _pick(self, name: str, options: list, value=None):
        return control("Dropdown", name, 172, 46, options=options, value=value or options[0])

    def _make_knobs(self):
        owner, earlier = self._owner, self.knobs
        self.knobs = KnobControls(owner.policies[self.policy.value], owner._changed)
        self._knob_slot.children = [self.knobs.box]
        if earlier is not None:
            earlier.close()

    # What moves with what -----------------------------------------------------------------------------------

    @property
    def resizable(self) -> bool:
        """Whether the number of nodes can be changed: one group, and no outages that name nodes."""
        cluster = self._owner.clusters[self.cluster.value]
        return len(cluster.groups) == 1 and not cluster.events

    def _fit_cluster(self):
        self.nodes.layout.display = None if self.resizable else "none"
        if self.resizable:
            nodes = self._owner.clusters[self.cluster.value].groups[0].nodes
            self.nodes.max, self.nodes.min = max(2 * nodes, nodes + 4), max(1, nodes // 4)
            self.nodes.value = nodes

    def _quietly(self, do):
        """Do something that moves several controls, and answer to all of them at once."""
        with quiet(self._owner):
            do()
        self._owner._changed()

    def _own_cluster(self, change):
        """Choose the cluster that was written, as the command line reads it."""

        def take():
            cluster = Cluster.parse(self.own.value)
            self._owner.clusters[str(cluster)] = cluster
            self.cluster.options = list(self._owner.clusters)
            self.cluster.value = str(cluster)

        if self.own.value:
            self._owner.guarded(take)

    def _other_trace(self, change):
        self.seed.disabled = not callable(self._owner.traces[self.trace.value])
        if change:
            own = self.trace.value if self.trace.value in self._owner.clusters else self.cluster.value
            self._quietly(lambda: setattr(self.cluster, "value", own))  # the cluster that has the trace's name

    def _toggle_code(self):
        hidden = self.code.layout.display == "none"
        self.code.layout.display = None if hidden else "none"
        self._show_code()

    def _show_code(self):
        """Write the Python that makes the run again, while it is seen: what is hidden is not sent."""
        if self.code.layout.display is None:
            style = "background:rgba(128,128,128,.12);padding:8px;overflow:auto;line-height:1.4;user-select:all"
            self.code.value = f'<pre tabindex="0" style="{style}">{escape(self._owner.code)}</pre>'

    def choose(self, trace: str):
        """Offer all traces and clusters that there are now, and choose a trace, with the cluster of its name."""
        with quiet(self._owner):
            for picker, there in ((self.cluster, self._owner.clusters), (self.trace, self._owner.traces)):
                value, picker.options = picker.value, list(there)
                picker.value = next(name for name in (trace, value, *there) if name in there)
            self._other_trace(None)
            self._fit_cluster()
        self._owner._changed()

    def show(self, table: str, note: str, report=None):
        """Show the table, what followed a control that moved, what came in of a log, and the code."""
        self.table.value = table
        self.report.value = "" if report is None else report._repr_html_()
        self.report.layout.display = None if report else "none"
        self.note.value = f"<i>{escape(note)}</i>" if note else ""
        self._show_code()
