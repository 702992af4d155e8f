"""Limits in Slurm's own pass: cases worked out by hand, what a QOS takes the place of, and that no limit is ever exceeded."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from few import few

from gpuschedlab import Cluster, Plan, Scenario, Slurm
from gpuschedlab.cluster.node_index import ANY_TYPE, SLOTS
from gpuschedlab.errors import PolicyError
from gpuschedlab.estimators import Requested
from gpuschedlab.papers.clusters.doubts import doubts
from gpuschedlab.papers.clusters.explains.limited import KEEPING_HOURS, broken
from gpuschedlab.papers.clusters.schedulers.limits import Limit, claims_of, with_partitions
from gpuschedlab.widgets import Site
from reproduce.papers.clusters.slurm_judge import UNWEIGHTED

EXACT = Slurm(**UNWEIGHTED, plan=Plan())
EIGHT = Cluster.homogeneous(1, 8, gpu_type="t4")
"""One node of eight GPUs."""


def starts(limits, jobs, cluster=EIGHT, **columns) -> dict[str, float | None]:
    """Start (s) of each job (name, submission, GPUs, run time, requested time), of users, accounts and so on by column."""
    names, submit, gpus, duration, requested = zip(*jobs, strict=True)
    numbers = {"submit": submit, "gpus": gpus, "duration": duration, "requested_time": requested}
    trace = pl.DataFrame({"job_id": names} | {k: np.array(v, float) for k, v in numbers.items()} | columns)
    scenario = Scenario(trace, cluster, estimator=Requested(), types="requested" if "gpu_type" in columns else None)
    run = scenario.run(replace(EXACT, limits=tuple(limits)))
    return dict(run.jobs.select("job_id", "start").iter_rows())


FOUR = [("a", 0, 4, 600, 600), ("b", 1, 4, 60, 60), ("c", 2, 4, 60, 60)]


def test_a_job_of_a_user_at_the_limit_is_passed_over():
    assert starts([], FOUR, user=["u", "u", "w"]) == {"a": 0, "b": 1, "c": 61}
    assert starts([Limit("user", gpus=4)], FOUR, user=["u", "u", "w"]) == {"a": 0, "b": 600, "c": 2}
    assert starts([Limit("user", jobs=1)], FOUR, user=["u", "u", "w"]) == {"a": 0, "b": 600, "c": 2}
    assert (
        starts([Limit("user", ("w",), gpus=3)], FOUR, user=["u", "u", "w"])["c"] is None
    )  # it alone is over the limit


def test_a_job_at_a_limit_is_promised_nothing():
    """Job b wants all GPUs, which are free at 600: c would keep four of them until 1,202, and may."""
    jobs = [("a", 0, 4, 600, 600), ("b", 1, 8, 60, 60), ("c", 2, 4, 1200, 1200)]
    assert starts([], jobs, user=["u", "u", "w"]) == {"a": 0, "b": 600, "c": 660}
    assert starts([Limit("user", gpus=8)], jobs, user=["u", "u", "w"]) == {"a": 0, "b": 1202, "c": 2}


def test_what_a_pass_has_started_counts_in_it():
    jobs = [("x", 0, 8, 100, 100), ("a", 1, 2, 60, 60), ("b", 2, 2, 60, 60), ("c", 3, 2, 60, 60)]
    assert starts([Limit("user", ("u",), gpus=4)], jobs, user=["w", "u", "u", "u"]) == {
        "x": 0,
        "a": 100,
        "b": 100,
        "c": 160,
    }


def test_a_qos_that_names_a_limit_overrides_that_of_the_account_and_counts_there():
    """Jobs a and b have the GPUs of their QOS; c, of the same account, waits until the account holds at most one more."""
    jobs = [("a", 0, 4, 600, 600), ("b", 1, 2, 60, 60), ("c", 2, 1, 60, 60), ("d", 3, 2, 60, 60)]
    owners = {"account": ["x"] * 4, "qos": ["high", "high", "normal", "normal"]}
    limits = [Limit("qos", ("high",), gpus=6), Limit("account", ("x",), gpus=2, exempt=("high",))]
    assert starts(limits, jobs, **owners) == {"a": 0, "b": 1, "c": 600, "d": 660}
    assert starts(limits[1:], jobs, **owners | {"qos": ["other"] * 4})["a"] is None


def test_a_groups_limit_is_of_those_below_it_together():
    limits = [Limit("accounts", ("g", "h"), gpus=4)]
    assert starts(limits, FOUR, account=["g", "h", "y"]) == {"a": 0, "b": 600, "c": 2}
    assert starts([Limit("account", ("g", "h"), gpus=4)], FOUR, account=["g", "h", "y"]) == {"a": 0, "b": 1, "c": 61}


def test_limits_of_a_type_count_gpus_of_that_type():
    """Job b asks for no type: it is not held, and counts while it has the type. d asks for it after b has taken two."""
    two = Cluster.parse("1x4:a100,1x4:t4")
    jobs = [("a", 0, 2, 600, 600), ("b", 1, 2, 300, 300), ("c", 2, 2, 60, 60), ("d", 3, 2, 60, 60)]
    types = ["a100", None, "t4", "a100"]
    limit = Limit("user", gpus=4, gpu_type="a100")
    found = starts([limit], jobs, two, user=["u"] * 4, gpu_type=types)
    assert found == {"a": 0, "b": 1, "c": 2, "d": 301}
    assert starts([limit], jobs, two, user=["u", "w", "u", "v"], gpu_type=types)["d"] == 301  # for want of GPUs
    three = replace(limit, gpus=3)
    assert starts([three], jobs, two, user=["u", "w", "u", "u"], gpu_type=types)["d"] == 600


def test_tasks_of_an_array_run_as_many_at_once_as_it_says():
    jobs = [("7_1", 0, 1, 100, 100), ("7_2", 0, 1, 100, 100), ("7_3", 0, 1, 100, 100), ("8", 1, 1, 9, 9)]
    assert starts([], jobs, throttle=[2.0, 2.0, 2.0, None]) == {"7_1": 0, "7_2": 0, "7_3": 100, "8": 1}
    assert starts([Limit("array", jobs=1)], jobs) == {"7_1": 0, "7_2": 100, "7_3": 200, "8": 1}


def test_a_job_that_asks_for_more_than_a_job_may_have_never_starts():
    limits = [Limit("user", ("u",), wall=300), Limit("qos", ("small",), size=2)]
    found = starts(limits, FOUR, user=["u", "u", "w"], qos=["normal", "normal", "small"])
    assert found == {"a": None, "b": 1, "c": None}


def test_the_qos_of_a_partition_is_of_its_jobs_and_goes_before_their_own():
    limits = [
        Limit("user", qos=("part",), gpus=4),
        Limit("user", qos=("own",), gpus=2),
        Limit("account", jobs=1, exempt=("part",)),
    ]
    of_part, own, account = with_partitions(limits, {"p": "part"})
    assert (of_part.partitions, own.exempt_in, account.exempt_in) == (("p",), ("p",), ("p",))
    jobs = [("a", 0, 2, 600, 600), ("b", 1, 2, 60, 60), ("c", 2, 2, 60, 60), ("d", 3, 2, 60, 60)]
    owners = {"user": ["u"] * 4, "account": ["x"] * 4, "qos": ["own"] * 4}
    found = starts((of_part, own, account), jobs, vc=["p", "p", "p", "q"], **owners)
    assert found == {
        "a": 0,
        "b": 1,
        "c": 61,
        "d": 600,
    }  # d has none of the four, is the own QOS' third, and the account's


HELD = "Account|User|ParentName|Share|GrpTRES|GrpJobs|MaxJobs|MaxTRES|MaxWall\nroot|||1|||||\n"
SHOW = "Name|Priority|GrpTRES|MaxTRESPU|MaxTRES|MaxJobsPU|MaxWall\n"


@pytest.fixture
def site(tmp_path):
    """A site with slurm.conf and answers of sacctmgr, and three jobs."""

    def make(assoc: str, qos: str, partition: str = "") -> Site:
        rows = "a,0,4,600,600,u,x,high,p,0\nb,1,4,60,60,u,x,high,p,600\nc,2,4,60,60,w,y,low,p,2\n"
        head = "job_id,submit,gpus,duration,requested_time,user,account,qos,vc,started\n"
        (tmp_path / "jobs.csv").write_text(head + rows)
        (tmp_path / "slurm.conf").write_text(
            f"NodeName=n1 Gres=gpu:t4:8\nPriorityWeightAge=1\nPartitionName=p Nodes=n1 {partition}\n"
        )
        (tmp_path / "assoc.txt").write_text(HELD + assoc)
        (tmp_path / "qos.txt").write_text(SHOW + qos)
        files = "".join(f'{key} = "{key}.txt"\n' for key in ("assoc", "qos"))
        (tmp_path / "site.toml").write_text(f'[log]\npath="jobs.csv"\n[slurm]\nconf="slurm.conf"\n{files}')
        return Site(str(tmp_path / "site.toml"))

    return make


def test_files_of_slurm_say_limits_of_types_times_and_sizes(site):
    made = site(
        "x||root|1|gres/gpu:t4=6||2|gres/gpu=4|1-0\nx|u||1|||||\n",
        "high|9|gres/gpu:t4=7|gres/gpu=4|gres/gpu=8||60\nlow|1|||||\n",
    )
    amounts = [(limit.of, limit.names, limit.gpu_type, limit.amounts) for limit in made.description.limits]
    assert amounts == [
        ("qos", ("high",), "t4", {"gpus": 7}),
        ("user", (), "", {"gpus": 4}),
        ("qos", ("high",), "", {"size": 8}),
        ("qos", ("high",), "", {"wall": 3600}),
        ("account", ("x",), "t4", {"gpus": 6}),
        ("member", ("x/u",), "", {"jobs": 2}),
        ("member", ("x/u",), "", {"size": 4}),
        ("member", ("x/u",), "", {"wall": 86_400}),
    ]
    assert [limit.exempt for limit in made.description.limits[4:]] == [("high",), (), ("high",), ("high",)]
    assert made.description.unmodelled == ()
    assert isinstance(made.own, Slurm)
    assert made.own.limits == made.description.limits
    assert not broken(made.own, made.description.limits)


def test_a_site_of_slurm_within_limits_is_played_and_judged(site):
    made = site("x||root|1|||||\n", "high|9||gres/gpu=4|||\nlow|1|||||\n")
    run = made().run(made.own)
    assert run.jobs["start"].to_list() == [0, 600, 2]
    notes = [*doubts(made, made())]
    assert not [note for note in notes if "limits" in note]


def test_a_partitions_qos_is_read_from_slurm_conf(site):
    made = site("", "high|9|||||\nlow|1|||||\npart|1||gres/gpu=4|||\n", "QOS=part")
    assert made.description.limits == (Limit("user", qos=("part",), gpus=4, partitions=("p",)),)
    assert made().run(made.own).jobs["start"].to_list() == [0, 600, 2]


def test_jobs_that_are_refused_are_noted(site):
    made = site("", "high|9|||||5\nlow|1|||||\n")
    assert made().run(made.own).jobs["start"].to_list() == [None, 1, 2]
    assert "1 jobs ask for more than a limit lets a job have, and never start" in [*doubts(made, made())]


def test_hours_and_tiers_are_not_played_by_slurms_rule():
    hours = Limit("qos", ("r",), hours="21:30-06:00")
    assert broken(EXACT, (hours,)) == KEEPING_HOURS
    with pytest.raises(PolicyError, match="expected limits of GPUs, jobs, and"):
        replace(EXACT, limits=(hours,))
    with pytest.raises(PolicyError, match="the general plan keeps to none"):
        Slurm(own=False, limits=(Limit("user", gpus=1),))


KINDS = (
    Limit("user", gpus=6), Limit("user", jobs=2), Limit("account", ("x",), gpus=9, exempt=("q1",)), Limit("qos", ("q1",), gpus=7),
    Limit("accounts", ("x", "y"), jobs=4), Limit("member", ("x/u0",), jobs=1), Limit("user", qos=("q0",), gpus=5), Limit("array", jobs=2),
    Limit("user", gpus=4, gpu_type="a100"), Limit("qos", ("q0",), gpus=6, gpu_type="t4", exempt=("q1",)),
)  # fmt: skip


def traffic(dice: np.random.Generator) -> tuple[pl.DataFrame, Cluster]:
    """Random jobs of a few users, accounts and QOS on one or two types of nodes."""
    n = 60
    cluster = Cluster.parse(str(dice.choice(["3x4:a100", "2x4:a100,2x4:t4"])))
    duration = dice.integers(5, 200, n).astype(float)
    types = ["a100", "t4", None] if len(cluster.gpu_types) > 1 else [None]
    columns = {
        "job_id": [f"{i // 4}_{i}" for i in range(n)],
        "submit": np.sort(dice.integers(0, 600, n)).astype(float),
        "gpus": dice.choice([1.0, 1, 2, 4], n),
        "duration": duration,
        "requested_time": duration * dice.choice([1, 2, 4], n),
        "user": [f"u{i}" for i in dice.integers(0, 3, n)],
        "account": [str(a) for a in dice.choice(["x", "y"], n)],
        "qos": [f"q{i}" for i in dice.integers(0, 2, n)],
        "gpu_type": pl.Series([types[i] for i in dice.integers(0, len(types), n)], dtype=pl.String),
    }
    return pl.DataFrame(columns), cluster


@pytest.mark.parametrize("seed", range(few(6, 20)))
def test_no_limit_is_ever_exceeded(seed):
    """At each start a job's quotas suffice for what ran before, whoever counts, and for all that start then and are held."""
    dice = np.random.default_rng(seed)
    trace, cluster = traffic(dice)
    some = tuple(KINDS[i] for i in dice.permutation(len(KINDS))[: int(dice.integers(1, 4))])
    every = dice.choice([0.0, 30.0])
    policy = replace(EXACT, plan=Plan(every=every), limits=some)
    scenario = Scenario(trace, cluster, estimator=Requested(), types="requested")
    jobs = scenario.run(policy).jobs
    found = claims_of(some, scenario.trace, cluster)  # in whose order the jobs are
    if found is None:
        assert jobs.equals(scenario.run(replace(policy, limits=())).jobs)
        return
    claims, most = found
    kind = jobs["gpu_type"].to_list() if "gpu_type" in jobs.columns else [None] * len(jobs)
    begin = jobs["start"].to_numpy()
    end = jobs["end"].to_numpy()
    assert np.isfinite(begin).all()
    placed = np.array([cluster.gpu_types.index(name) if name in cluster.gpu_types else -2 for name in kind])
    for i in range(len(begin)):
        running = (begin <= begin[i]) & (end > begin[i])
        counts = (claims["quota"] >= 0) & running[:, None]
        counts &= (begin < begin[i])[:, None] | (claims["held"] == 1)
        counts &= (claims["type"] == ANY_TYPE) | (claims["type"] == placed[:, None])
        used = np.bincount(claims["quota"][counts], claims["amount"][counts], len(most))
        held = claims[i]["quota"][(claims[i]["held"] == 1) & (claims[i]["quota"] >= 0)]
        assert (used[held] <= most[held]).all(), (i, some)


def test_a_limit_that_binds_no_job_changes_nothing():
    trace, cluster = traffic(np.random.default_rng(3))
    scenario = Scenario(trace, cluster, estimator=Requested(), types="requested")
    wide = (Limit("user", gpus=1000), Limit("array", jobs=1000), Limit("account", gpus=1000, gpu_type="t4"))
    assert scenario.run(replace(EXACT, limits=wide)).jobs.equals(scenario.run(EXACT).jobs)
    assert claims_of(wide, trace, cluster)[1].max() == 1000 * SLOTS
