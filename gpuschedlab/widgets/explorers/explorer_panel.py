"""The Explorer's controls: one row, and all that is seen with *more*."""

from html import escape

from gpuschedlab._extras import need
from gpuschedlab.cluster import Cluster
from gpuschedlab.widgets.parts.controls import KnobControls, button, control, quiet, row

PIN = "as it is now"
"""Choice that keeps the present policy to compare with."""
LETTERS = 34
"""Letters of all policies' names up to which each has a button."""


class Panel:
    """Controls of the first screen, policy, a knob and the reference, and those that are seen with *more*."""

    def __init__(self, owner, first: str, against: str, seed: int):
        ipywidgets = need("ipywidgets")
        self._owner = owner
        policy_names = list(owner.policies)
        self.trace = control("Dropdown", "trace", 172, 46, options=list(owner.traces))
        seed_tooltip = "another seed is another week with the same habits"
        self.seed = control("BoundedIntText", "seed", 96, 34, value=seed, min=0, max=10**6, tooltip=seed_tooltip)
        self.cluster = control("Dropdown", "cluster", 172, 46, options=list(owner.clusters))
        written = {"placeholder": "20x8:v100,10x4:t4", "tooltip": "NODESxGPUS[:TYPE],...", "continuous_update": False}
        self.own = control("Text", "own cluster", 200, 76, **written)
        self.nodes = control("IntSlider", "nodes", 180, 40, min=1, max=2)
        kind, picker_width = ("ToggleButtons", None) if sum(map(len, policy_names)) <= LETTERS else ("Dropdown", 172)
        self.policy = control(kind, "policy", picker_width, 46, options=policy_names, value=first).add_class(
            "gpuschedlab-policy"
        )
        control_tooltip = f"what is compared with, grey in all figures; '{PIN}' keeps the policy with its present knobs"
        self.against = control(
            "Dropdown", "against", None, 48, options=[*policy_names, PIN], value=against, tooltip=control_tooltip
        )
        self.charted = control("Dropdown", "Gantt of", 144, 58, options=["now", "before"])
        self.first_node = control("IntSlider", "first node", 190, 66, min=0, max=0)
        self.says = ipywidgets.HTML().add_class("gpuschedlab-says")
        self._first = ipywidgets.HBox()
        self._rest = ipywidgets.Box()
        self.report = ipywidgets.HTML(layout=ipywidgets.Layout(display="none"))
        self.code = ipywidgets.HTML()
        self.knobs = None
        self._make_knobs()
        self._fit_cluster()
        reset = button(owner, "Reset knobs", "the policy's own defaults", lambda: self.knobs.show(self._given))
        control_tooltip = "the run, its trace and its code, as one file"
        self.buttons = [reset, button(owner, "Download run", control_tooltip, owner.download)]
        answers = {
            self.trace: self._other_trace,
            self.seed: owner._changed,
            self.nodes: owner._changed,
            self.cluster: lambda _: self._quietly(self._fit_cluster),
            self.own: self._own_cluster,
            self.policy: lambda _: owner.guarded(lambda: self._quietly(self._make_knobs)),
            self.against: lambda menu_change: (
                owner.guarded(owner.pin) if menu_change["new"] == PIN else owner._changed()
            ),
            self.charted: (charted := lambda _: owner.opened and owner._redraw("gantt", owner._gantt)),
            self.first_node: charted,
        }
        for watched_control, answer in answers.items():
            watched_control.observe(answer, "value")
        self._other_trace(None)
        self.row = [self.policy, self._first.add_class("gpuschedlab-knob"), self.against]
        door = [owner.door.file, owner.door.shown] if owner.door else []
        pickers = row(self.nodes, self.trace, self.seed, self.cluster, self.own, *door)
        self.rest = [self._rest, pickers, *([owner.door.box] if owner.door else []), self.report]
        self.rest += [row(self.charted, self.first_node, *self.buttons), self.code]

    def _make_knobs(self):
        owner = self._owner
        earlier = self.knobs
        self._given = owner.policies[self.policy.value]
        self.knobs = KnobControls(self._given, owner._changed)
        front_controls = self.knobs.first
        for knob_control in front_controls:  # in the row its unit is in the hint
            knob_control.description = knob_control.description.partition(" (")[0]
        folded_knobs = [knob_control for knob_control in self.knobs.box.children if knob_control not in front_controls]
        self._first.children, self.knobs.box.children, self._rest.children = (
            front_controls,
            folded_knobs,
            [self.knobs.box],
        )
        if earlier is not None:
            earlier.close()

    def hold(self, name: str):
        """Choose the kept run that is the reference, by its name."""
        with quiet(self._owner):
            self.against.options = [*self._owner.policies, *({name} - self._owner.policies.keys()), PIN]
            self.against.value = name

    @property
    def resizable(self) -> bool:
        """Whether the number of nodes can be changed: one group, and no outages that name nodes."""
        cluster = self._owner.clusters[self.cluster.value]
        return len(cluster.groups) == 1 and not cluster.events

    def _fit_cluster(self):
        self.nodes.layout.display = None if self.resizable else "none"
        if self.resizable:
            nodes = self._owner.clusters[self.cluster.value].groups[0].nodes
            self.nodes.min = 1  # a slider takes no largest value below its smallest
            self.nodes.max = max(2 * nodes, nodes + 4)
            self.nodes.min = max(1, nodes // 4)
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
            cluster_of_trace = self.trace.value if self.trace.value in self._owner.clusters else self.cluster.value
            # The cluster that has the trace's name.
            self._quietly(lambda: setattr(self.cluster, "value", cluster_of_trace))

    def choose(self, trace: str):
        """Offer all traces and clusters that there are now, and choose a trace, with the cluster of its name."""
        with quiet(self._owner):
            for picker, menu_options in ((self.cluster, self._owner.clusters), (self.trace, self._owner.traces)):
                value = picker.value
                picker.options = list(menu_options)
                picker.value = next(
                    menu_name for menu_name in (trace, value, *menu_options) if menu_name in menu_options
                )
            self._other_trace(None)
            self._fit_cluster()
        self._owner._changed()

    def show(self, says: str, note: str, report=None):
        """Show each policy in words, the change by a control that moved, the intake of a log, and the code."""
        self.first_node.max = max(0, self._owner.cluster_of(self._owner.setting).total_nodes - 1)
        self.says.value = says + (f" <i>{escape(note)}</i>" if note else "")
        self.report.value = "" if report is None else report._repr_html_()
        self.report.layout.display = None if report else "none"
        if self._owner.opened:
            self.code.value = f'<p>Code</p><pre class="gpuschedlab-code" tabindex="0">{escape(self._owner.code)}</pre>'
