"""The Explorer's controls: pickers, knobs, buttons and the table, laid out."""

from html import escape

from gpuschedlab._extras import need
from gpuschedlab.widgets.controls import KnobControls

STYLE = {"description_width": "60px"}


class Panel:
    """Pickers of trace, cluster and policy; the policy's knobs; buttons; the table of differences.

    Parameters
    ----------
    owner : Explorer
        Whom the controls tell that they moved; it gives the choices.
    first : str
        Name of the policy chosen first.
    seed : int
        Seed to begin with.
    """

    def __init__(self, owner, first: str, seed: int):
        w = need("ipywidgets")
        self._owner = owner
        self.trace = self._pick("trace", list(owner.traces))
        self.seed = w.BoundedIntText(
            value=seed, min=0, max=10**6, description="seed", style=STYLE, layout=w.Layout(width="140px"),
            tooltip="another seed is another week with the same habits",
        )  # fmt: skip
        self.cluster = self._pick("cluster", list(owner.clusters))
        self.nodes = w.IntSlider(description="nodes", min=1, max=2, style=STYLE, layout=w.Layout(width="300px"))
        self.policy = self._pick("policy", list(owner.policies), first)
        self.whose = w.Dropdown(
            options=["now", "pinned"], description="Gantt of", style=STYLE, layout=w.Layout(width="170px")
        )
        self.table = w.HTML()
        self.note = w.HTML()
        self.code = w.HTML(layout=w.Layout(display="none"))
        self._knob_slot = w.VBox()
        self._make_knobs()
        self._fit_cluster()
        self._buttons()
        for part, answer in (
            (self.trace, self._other_trace), (self.seed, owner._changed), (self.nodes, owner._changed),
            (self.cluster, self._other_cluster), (self.policy, self._other_policy),
            (self.whose, lambda change: owner._draw_gantt_later()),
        ):  # fmt: skip
            part.observe(answer, "value")
        self._other_trace(None)
        line = w.Layout(flex_flow="row wrap", align_items="center")
        pickers = w.Box([self.trace, self.seed, self.cluster, self.nodes], layout=line)
        chosen = w.Box([self.policy, *self.buttons], layout=line)
        left = w.VBox(
            [chosen, self._knob_slot, self.note, self._owner.error], layout=w.Layout(flex="1 1 420px", min_width="0")
        )
        both = w.Box([left, self.table], layout=w.Layout(flex_flow="row wrap", align_items="flex-start"))
        self.rows = [pickers, both, self.code]

    def _pick(self, name: str, options: list, value=None):
        w = need("ipywidgets")
        layout = w.Layout(width="300px")
        return w.Dropdown(options=options, value=value or options[0], description=name, style=STYLE, layout=layout)

    def _make_knobs(self):
        owner = self._owner
        self.knobs = KnobControls(owner.policies[self.policy.value], owner._changed)
        self._knob_slot.children = [self.knobs.box]

    def _buttons(self):
        w = need("ipywidgets")
        told = {
            "Pin this": ("compare what follows with the present policy and cluster", self._owner.pin),
            "Unpin": ("compare with nothing", self._owner.unpin),
            "Reset knobs": ("the policy's own defaults", self._reset),
            "Export run": ("store the run, its trace and its code in a folder", self._export),
            "Code": ("show or hide the Python that makes this run again", self._toggle_code),
        }
        self.buttons = []
        for name, (help, answer) in told.items():
            button = w.Button(description=name, tooltip=help, layout=w.Layout(width="auto"))
            button.on_click(lambda _, answer=answer: self._owner.guarded(answer))
            self.buttons.append(button)

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
        owner = self._owner
        before, owner._quiet = owner._quiet, True
        try:
            do()
        finally:
            owner._quiet = before
        owner._changed()

    def _other_cluster(self, change):
        self._quietly(self._fit_cluster)

    def _other_policy(self, change):
        self._owner.guarded(lambda: self._quietly(self._make_knobs))

    def _other_trace(self, change):
        self.seed.disabled = not callable(self._owner.traces[self.trace.value])
        if change:
            self._quietly(self._take_its_cluster)

    def _take_its_cluster(self):
        """Choose the cluster that has the trace's name, if there is one."""
        if self.trace.value in self._owner.clusters:
            self.cluster.value = self.trace.value

    def _reset(self):
        self.knobs.show(self._owner.policies[self.policy.value])

    def _export(self):
        folder = self._owner.export()
        self.note.value = f"Stored in <code>{escape(str(folder))}</code>: parquet files and reproduce.py."

    def _toggle_code(self):
        self.code.layout.display = None if self.code.layout.display == "none" else "none"

    @staticmethod
    def coded(text: str) -> str:
        """HTML of some lines of Python."""
        style = "background:rgba(128,128,128,.12);padding:8px;overflow:auto;line-height:1.4;user-select:all"
        return f'<pre tabindex="0" style="{style}">{escape(text)}</pre>'

    def tell(self, table: str, note: str):
        """Show the table, and what followed a control that moved."""
        self.table.value = table
        self.note.value = f"<i>{escape(note)}</i>" if note else ""
