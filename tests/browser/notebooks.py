"""The notebooks that are opened: one explorer each, small, so that what is seen is the page and not the simulator."""

from present import present

TRACE = 'lab.generate("venus", days=1, jobs=600, load=0.9, cluster_gpus=48, rng=0)'
NOTEBOOKS = {
    "explorer": [
        f"import gpuschedlab as lab\nfrom gpuschedlab.widgets import Explorer\ntrace = {TRACE}",
        "cluster = lab.Cluster.homogeneous(6, 8)\n"
        "explorer = Explorer(trace, cluster, [lab.Fifo, lab.Tiresias, lab.Srtf])\nexplorer",
    ],
    "trace": [
        "from scenes.arrivals import TraceExplorer",
        'explorer = TraceExplorer(preset="philly", days=2, gpus=64)\nexplorer',
    ],
    "cluster": [
        "from scenes.placement import ClusterExplorer\nfrom gpuschedlab.widgets import SmallCluster",
        'explorer = ClusterExplorer(SmallCluster(nodes=3).with_knobs(placement="buddy"), jobs=60)\nexplorer',
    ],
}
NOTEBOOKS |= present(
    {
        "clusters": {
            "site": [
                "from gpuschedlab.widgets import SiteExplorer",
                "explorer = SiteExplorer()\nexplorer",
            ],
        },
        "copter": {
            "problems": [
                "from scenes.shards_and_links import LinkExplorer, ShardExplorer\nexplorer = ShardExplorer(24)\nexplorer",
                "explorer = LinkExplorer(12, 40)\nexplorer",
            ],
            "copter": [
                "from gpuschedlab.widgets import CopterExplorer, SimilarRounds",
                "explorer = CopterExplorer(SimilarRounds(jobs=20))\nexplorer",
            ],
            "scale": [
                "from gpuschedlab.widgets import SimilarRounds\nfrom scenes.scale import ScaleExplorer",
                "explorer = ScaleExplorer(SimilarRounds(jobs=20))\nexplorer",
            ],
        },
        "deadlines": {
            "unisched": [
                "from gpuschedlab.widgets import SmallLeases, UniSchedExplorer",
                "explorer = UniSchedExplorer(SmallLeases(nodes=2, jobs=12))\nexplorer",
            ],
        },
        "prompttuner": {
            "prompt": [
                "from gpuschedlab.widgets import PromptExplorer, PromptLab",
                'explorer = PromptExplorer(PromptLab(gpus=16).with_knobs(load="low"))\nexplorer',
            ],
        },
        "ymir": {
            "ymir": [
                "from gpuschedlab.widgets import YmirExplorer",
                "explorer = YmirExplorer(nodes=1, hours=2.0)\nexplorer",
            ],
        },
        "autosched": {
            "tuner_lab": [
                "from gpuschedlab.autosched import LiveDays, LiveTuning\nfrom gpuschedlab.widgets import TunerLab",
                "explorer = TunerLab(LiveDays(days=1, jobs=150, load=1.2), LiveTuning(evaluations=3), seed=3).play(8)\nexplorer",
            ],
            "causal_lab": [
                "from gpuschedlab.widgets import CausalLab",
                "explorer = CausalLab(rows=60, intervals=4)\nexplorer",
            ],
            "logbook": [
                "import gpuschedlab as lab\nfrom gpuschedlab.autosched import Rule\nfrom gpuschedlab.widgets import LogbookExplorer",
                'trace = lab.generate("venus", days=4, jobs=400, load=1.0, cluster_gpus=24, rng=0)\n'
                'scenario = lab.Scenario(trace.filter(trace["gpus"] <= 12), lab.Cluster.homogeneous(3, 8))\n'
                'explorer = LogbookExplorer(scenario, Rule(lab.Tiresias(), "pack_limit", (0.0, 0.5, 1.0)), {"length": 4})\nexplorer',
            ],
        },
    }
)
"""Cells of each notebook, by the explorer that it shows."""


LESSONS = {name: sum(cell.endswith("\nexplorer") for cell in cells) for name, cells in NOTEBOOKS.items()}
"""How many explorers each notebook shows."""

WEEK = [
    "import gpuschedlab as lab\nfrom ipywidgets.widgets.widget import _instances\nfrom gpuschedlab.widgets import Explorer\n"
    'trace = lab.generate("venus", days=7, jobs=10_000, load=0.9, cluster_gpus=560, rng=0)',
    "explorer = Explorer(trace, lab.Cluster.homogeneous(70, 8), [lab.Fifo, lab.Tiresias])\nexplorer",
    "print(len(_instances), 'widgets')",
]
"""A week of 10,000 jobs on 70 nodes, FIFO pinned, and how many widgets the kernel holds."""

WEEKS = [
    WEEK[0],
    "from gpuschedlab.widgets import Generated\n"
    'policies = {"Easy": lab.Fifo(backfill="easy"), "Tiresias": lab.Tiresias}\n'
    "explorer = Explorer(Generated(), lab.Cluster.homogeneous(70, 8), policies)\nexplorer",
]
"""The same week by its seed, EASY pinned: other weeks are played while nobody moves a control."""
