"""Golden answers of clusters and placement: mixed nodes, every rule, failures, words, refusals."""

import numpy as np
import pytest
from golden_answers import digest, golden, refusal

from gpuschedlab.cluster import RULES, Cluster, Nodes, Outage, Window
from gpuschedlab.cluster.free_gpus import FreeGpus

TEXTS = ("4x8", "2x8:a100,3x4:t4", "1x1:x", "70x8:v100", "2x3:a,2x3:a")
WRONG = ("", "8", "2x", "0x4", "2x0", "ax4", "2x4:", "2x4:a,,", "1x99999")


@pytest.fixture
def added_up():
    """No runs here."""


@golden
def test_clusters():
    found = {}
    for text in TEXTS:
        cluster = Cluster.parse(text)
        kinds = np.arange(len(cluster.gpu_types))
        found[text] = {
            "words": [str(cluster), repr(cluster)],
            "numbers": [
                cluster.total_nodes,
                cluster.total_gpus,
                cluster.capacity,
                cluster.node_type[:9],
                cluster.node_gpus[:9],
            ],
            "largest": [list(each[:3]) for each in cluster.largest_nodes],
            "fewest": [cluster.fewest_nodes(np.full(5, k), np.array([1, 3, 4, 8, 11])) for k in kinds],
            "failures": [
                [(o.node, round(o.start, 3), round(o.end, 3)) for o in cluster.with_failures(*given).events[:5]]
                for given in ((20_000.0, 900.0, 90_000.0, 1), (4e6, 3600.0, 900_000.0, 2))
            ],
        }
    found["refused"] = [refusal(Cluster.parse, text) for text in WRONG]
    two = (Nodes("a", 2, 4), Nodes("b", 1, 8, ("p",)))
    odd = [
        (Outage(9, 0.0, 1.0),),
        (Outage(0, 5.0, 1.0),),
        (Outage(0, -1.0, 1.0),),
        (Outage(0, 0.0, 5.0), Outage(0, 3.0, 9.0)),
    ]
    found["odd"] = [refusal(Cluster, two, events) for events in odd] + [
        refusal(Nodes, "a", -1, 4),
        refusal(Cluster, ()),
        refusal(Window, 5.0, 1.0, (0,)),
    ]
    return found | {"two": digest(str(Cluster(two)))}


@pytest.mark.parametrize("rule", RULES)
@golden
def test_placement(rule):
    """Jobs come and go at random; each gets nodes by a rule."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        cluster = Cluster.parse(("3x8:a,2x4:a,2x3:b", "4x8:a", "2x4:a,3x8:b", "5x2:a,1x16:a")[seed])
        space = FreeGpus(cluster, rule=rule, up=rng.random(cluster.total_nodes) < 0.9)
        held = []
        for _ in range(40):
            gpus = float(rng.choice([0.25, 0.5, 1, 2, 3, 4, 8, 12]))
            fits = bool(space.fits(np.array([gpus]))[0])
            rows = space.take(gpus) if fits else np.zeros((0, 2))
            held.append([gpus, fits, rows])
        found += [digest(held), digest(space.free)]
    return found
