"""Examples of small internal functions: what they say is printed is printed."""

import pytest
from typed import failures

EXAMPLES = [
    (
        "gpuschedlab.papers.clusters.files.kueue_files",
        """\
>>> quantity("500m"), quantity(9), quantity("2k")
(0.5, 9.0, 2000.0)""",
    ),
    (
        "gpuschedlab.papers.copter.shards.methods",
        """\
>>> [s.tolist() for s, _ in shard_parts(random_fleet(8, 4), 2)]
[[0, 1], [2, 3]]""",
    ),
    (
        "gpuschedlab.papers.copter.shards.program",
        """\
>>> whole_shares(np.array([[0.5, 1e-9], [0.48, 1.0]])).round(2).tolist()
[[0.51, 0.0], [0.49, 1.0]]""",
    ),
    (
        "gpuschedlab.papers.copter.traffic.methods",
        """\
>>> routes = Routes(np.array([0, 1]), np.ones((1, 2)))
>>> parts = split_demands(routes, np.array([8.0, 8.0]), 2, np.random.default_rng(0))
>>> sum(parts).tolist()
[8.0, 8.0]""",
    ),
    (
        "gpuschedlab.papers.copter.traffic.program",
        """\
>>> routes = Routes(np.array([0]), sp.csc_array([[1.0]]))
>>> excess(routes, np.array([2.0]), np.array([4.0]), np.array([3.0]))
0.5""",
    ),
    (
        "gpuschedlab.papers.copter.traffic.program",
        """\
>>> routes = Routes(np.array([0, 0, 1]), sp.csc_array(np.ones((1, 3))))
>>> some_routes(routes, np.array([2]))[1].tolist()
[1]""",
    ),
    (
        "gpuschedlab.papers.copter.traffic.program",
        """\
>>> routes = Routes(np.array([0, 0, 1, 2]), sp.csc_array(np.ones((1, 4))))
>>> top_routes(routes, np.array([3.0, 9, 1]), share=0.3).tolist()
[2]""",
    ),
    (
        "gpuschedlab.papers.copter.traffic.program",
        """\
>>> routes = Routes(np.array([0, 1]), sp.csc_array([[1.0, 1.0]]))
>>> filled_flow(routes, np.array([2.0]), np.array([1.5, 3.0]), np.array([1.0, 0.0])).tolist()
[1.0, 1.0]""",
    ),
    (
        "gpuschedlab.papers.copter.traffic.program",
        """\
>>> routes = Routes(np.array([0, 1]), sp.csc_array([[1.0, 1.0]]))
>>> fitted_flow(routes, np.array([2.0]), np.array([1.0, 3.0]), np.array([2.0, 3.0])).tolist()
[0.5, 1.5]""",
    ),
    (
        "gpuschedlab.papers.deadlines.estimators.learning_curve",
        """\
>>> [np.round(v, 3).tolist() for v in rising(np.array([90.0, 40.0]), 25.0)]
[[0.1, 0.6], 0.75]""",
    ),
    (
        "gpuschedlab.papers.deadlines.estimators.learning_curve",
        """\
>>> measurements_to(tuple(1 - 0.8 / n for n in range(1, 20)), 0.97, 100.0) in (26.0, 27.0)
True""",
    ),
    (
        "gpuschedlab.papers.deadlines.leases.program",
        """\
>>> [a.tolist() for a in lease_choices(LeaseJobs.of([1], [[2, 3]], [[2, 4]], [[9, 5]]))]
[[0, 0, 0], [0, 1, 1], [0, 0, 1]]""",
    ),
    (
        "gpuschedlab.papers.deadlines.placing",
        """\
>>> chosen_by_count(np.array([2, 0, 1]), np.array([4.0, 1.0, 3.0]), 4.0).tolist()
[False, True, True]""",
    ),
    (
        "gpuschedlab.papers.pollux.genetic",
        """\
>>> survivors(np.array([1.0, 3.0, 3.0, 2.0]), 3).tolist()
[1, 3, 0]""",
    ),
    (
        "gpuschedlab.papers.prompttuner.estimators.prompt_bank",
        """\
>>> places = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
>>> medoids, cluster = k_medoids(abs(places[:, None] - places), 2)
>>> medoids.tolist(), cluster.tolist()
([1, 4], [0, 0, 0, 1, 1, 1])""",
    ),
    (
        "gpuschedlab.papers.prompttuner.jobs",
        """\
>>> worth_a_search(9.2, [45.0, 46.0]).tolist()
[False, True]""",
    ),
    (
        "gpuschedlab.papers.prompttuner.speeds.llms",
        """\
>>> search_as_work().seconds("cold bank", ["vicuna-7b"]).round(1).tolist()
[52.0]""",
    ),
    (
        "gpuschedlab.papers.prompttuner.speeds.llms",
        """\
>>> prompt_speeds(2).rates([0], [0.0], types=[0, 0], nodes=[1, 2], gpus=[1, 2]).round(2).tolist()
[[10.0, 19.9]]""",
    ),
    (
        "gpuschedlab.papers.ymir.estimators.iterations",
        """\
>>> curve = LossCurve(0.05, 1.0, 0.5)
>>> converged(curve), converged(curve, gain=0.2)
(43, 39)""",
    ),
    (
        "gpuschedlab.papers.ymir.speeds.switching",
        """\
>>> loader_switch(4.2, 30.0), loader_switch(4.2, 30.0, notice=0.0)
(4.2, 34.2)""",
    ),
    (
        "gpuschedlab.papers.ymir.speeds.tasks",
        """\
>>> task_curves("vit", ["cifar100", "mnist"]).select("mode", "model", "other").unique().height
6""",
    ),
]
"""Module, and what is typed and printed there."""


@pytest.mark.parametrize(("module", "typed"), EXAMPLES)
def test_what_is_typed_prints_what_is_said(module, typed):
    assert failures(module, typed) == 0
