"""A log explains its own waiting: hand cases of each reason, and made logs with a planted mechanism."""

from dataclasses import replace

import polars as pl
import pytest

from gpuschedlab.cli import main
from gpuschedlab.errors import LabError
from gpuschedlab.papers.clusters.explains.found import Found
from gpuschedlab.papers.clusters.explains.sweep import REASONS
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.whatif import UNTOLD, whatif
from reproduce.papers.clusters import explains, made_logs

ROWS = ("job_id", "submit", "gpus", "duration", "requested_time", "started", "nodelist")


@pytest.fixture
def site(tmp_path):
    """Function that makes a site of rows (`ROWS`), more columns, and more TOML."""

    def make(*rows, nodes="1x4", rule="easy", toml="", lists=True, **columns) -> Site:
        jobs = pl.DataFrame([dict(zip(ROWS, row, strict=True)) for row in rows]).with_columns(
            **{name: pl.Series(values) for name, values in columns.items()}
        )
        (jobs if lists else jobs.drop("nodelist")).write_csv(tmp_path / "jobs.csv")
        head = f'[log]\npath = "jobs.csv"\n[cluster]\nnodes = "{nodes}"\n[scheduler]\nbackfill = "{rule}"\n'
        (tmp_path / "site.toml").write_text(head + toml)
        return Site(str(tmp_path / "site.toml"))

    return make


def seconds(found, job: str) -> dict[str, float]:
    """Seconds that a job waited, by reason."""
    return {
        k: v for k, v in found.jobs.row(by_predicate=pl.col("job_id") == job, named=True).items() if v and k in REASONS
    }


def explain(site: Site):
    """Explanation of a site's log."""
    return site.explanation


# --- reasons, by hand


def test_too_few_gpus_then_a_launch(site):
    found = explain(site(("a", 0, 4, 60, 90, 0, "n0"), ("b", 10, 2, 60, 90, 62, "n0")))
    assert seconds(found, "a") == {}
    assert seconds(found, "b") == {"too few GPUs idle": 50, "launch": 2}


def test_gpus_are_idle_but_on_two_nodes(site):
    """Two nodes of 4, each with 2 in use: a job of 4 waits though 4 are idle, until one node is empty."""
    rows = ("a", 0, 2, 100, 100, 0, "n0"), ("b", 0, 2, 50, 100, 0, "n1"), ("c", 10, 4, 10, 20, 50, "n1")
    assert seconds(explain(site(*rows, nodes="2x4")), "c") == {"not on the nodes that it needs": 40}


def test_under_easy_a_job_waits_behind_a_promise_only_if_it_would_delay_it(site):
    """Job a holds 3 of 4 until 100; b wants 4 and is promised 100. c of 1 would end at 120: it waits. d of 1 for 30 s could start."""
    rows = [("a", 0, 3, 100, 100, 0, "n0"), ("b", 10, 4, 50, 50, 100, "n0"), ("c", 20, 1, 90, 100, 150, "n0")]
    found = explain(site(*rows, ("d", 30, 1, 30, 30, 150, "n0")))
    assert seconds(found, "c") == {"behind a promise": 80, "too few GPUs idle": 50}
    assert seconds(found, "d") == {
        "launch": found.log.rules.lag,
        "unexplained": 70 - found.log.rules.lag,
        "too few GPUs idle": 50,
    }
    strict = explain(site(*rows, ("d", 30, 1, 30, 30, 150, "n0"), rule="none"))
    assert seconds(strict, "d") == {"behind a promise": 70, "too few GPUs idle": 50}
    greedy = explain(site(*rows, rule="greedy"))
    assert seconds(greedy, "c")["unexplained"] == 80 - greedy.log.rules.lag


def test_a_plan_may_hold_nodes_for_any_job_that_waits(site):
    rows = ("a", 0, 3, 100, 100, 0, "n0"), ("d", 5, 1, 30, 30, 150, "n0"), ("b", 10, 4, 50, 50, 100, "n0")
    found = explain(site(*rows, rule="plan"))
    assert seconds(found, "d")["behind a promise"] == 90  # from 10 on; before, nothing keeps it


def test_not_eligible_before_all_else(site):
    rows = ("a", 0, 4, 60, 90, 0, "n0"), ("b", 10, 4, 60, 90, 62, "n0")
    assert seconds(explain(site(*rows, eligible=[0, 40])), "b") == {
        "not eligible": 30,
        "too few GPUs idle": 20,
        "launch": 2,
    }


def test_a_window_of_the_site(site):
    """A job of 50 s may not start before a window at 100 that it would run into."""
    toml = "[[windows]]\nstart = 100\nend = 200\n"
    assert seconds(explain(site(("z", 0, 1, 9, 9, 0, "n0"), ("a", 60, 1, 50, 50, 200, "n0"), toml=toml)), "a") == {
        "in a window": 140
    }


def test_without_node_lists_there_are_bounds_and_no_limits(site):
    rows = ("a", 0, 2, 100, 100, 0, "n0"), ("b", 0, 2, 50, 100, 0, "n1"), ("c", 10, 4, 10, 20, 50, "n1")
    found = explain(site(*rows, nodes="2x4", lists=False))
    assert (found.least, found.unexplained) == (0, pytest.approx((40 - found.log.rules.lag) / 40))
    assert "no interval of a what-if: node lists: " in str(found)


def test_a_log_without_starts_or_with_other_nodes(site, tmp_path):
    (tmp_path / "bare.csv").write_text("job_id,submit,gpus,duration\na,0,1,5\n")
    with pytest.raises(LabError, match="explain: found no recorded starts"):
        explain(Site(f"csv:{tmp_path / 'bare.csv'}", "1x4"))
    assert not explain(site(("a", 0, 2, 10, 10, 0, "x[1-2]"))).log.listed  # two names, one node


# --- the gate


def test_a_whatif_has_no_verdict_where_the_waiting_is_unexplained(site):
    rows = ("a", 0, 2, 1000, 2000, 0, "n0"), ("b", 100, 2, 50, 2000, 1000, "n0")
    found = whatif(site(*rows), {"more": 1})
    assert found.table["verdict"].to_list() == [UNTOLD] * 3
    assert "no intervals: 99.8 % of the waiting are unexplained: look at" in str(found)
    assert found.sentence.startswith("No verdict: the model may miss as much (it misses ")
    told = whatif(site(("a", 0, 4, 1000, 2000, 0, "n0"), ("b", 100, 2, 50, 2000, 1000, "n0")), {"more": 1})
    assert told.missing == ""
    assert UNTOLD not in told.table["verdict"].to_list()
    rows = ("a", 0, 2, 100, 100, 0, "n0"), ("b", 10, 4, 10, 20, 150, "n1"), ("c", 11, 2, 40, 90, 100, "n0")
    bare = explain(site(*rows, nodes="2x4", rule="plan", lists=False))
    assert (bare.missing == "") == (bare.unexplained <= 0.01)


def test_replay_explains_before_it_simulates(site, capsys):
    made = site(("a", 0, 4, 60, 90, 0, "n0"), ("b", 10, 2, 60, 90, 62, "n0"))
    assert main(["replay", "--trace", made.file]) == 0
    assert capsys.readouterr().out.startswith("why jobs waited: too few GPUs idle 96.2 %, launch 3.8 %\n")


# --- limits, hours and tiers, played


def played(site, *lines) -> list[float]:
    """Starts of a site's jobs by its own rule, with more lines."""
    found = Site(site.file, lines="\n".join(lines))
    return found().run(found.own).jobs["start"].to_list()


JOBS = [(name, i, 1, 100, 100, 0, "n0") for i, name in enumerate("abcd")]
OWNERS = {"user": ["x", "x", "x", "y"], "qos": ["q", "q", "r", "q"]}


@pytest.mark.parametrize(
    ("lines", "starts"),
    [
        ('of = "user"\ngpus = 2', [0, 1, 100, 3]),
        ('of = "user"\njobs = 1', [0, 100, 200, 3]),
        ('of = "user"\nnames = ["y"]\njobs = 0', [0, 1, 2, None]),
        ('of = "user"\nqos = ["q"]\njobs = 1', [0, 100, 2, 3]),
        ('of = "qos"\nnames = ["q"]\ngpus = 2', [0, 1, 2, 100]),
        ('of = "account"\ngpus = 1', [0, 1, 2, 3]),  # the log has none
    ],
)
def test_a_limit_holds_its_owners_and_nobody_else(site, lines, starts):
    assert played(site(*JOBS, **OWNERS), "[[limits]]", lines) == starts


def test_a_job_at_a_limit_is_promised_nothing(site):
    """Of user x, b would be the first that waits; c of y starts beside it, d is promised the node when c ends."""
    rows = (
        ("a", 0, 2, 100, 100, 0, "n0"),
        ("b", 1, 4, 10, 10, 0, "n0"),
        ("c", 2, 2, 300, 300, 0, "n0"),
        ("d", 3, 4, 10, 10, 0, "n0"),
    )
    made = site(*rows, user=["x", "x", "y", "y"])
    assert played(made, "[[limits]]", 'of = "user"', "gpus = 4") == [0, 302, 2, 312]
    assert played(made, "[[limits]]", 'of = "user"', "jobs = 1") == [0, 302, 2, 312]
    rows = ("a", 0, 2, 100, 100, 0, "n0"), ("b", 1, 4, 10, 10, 0, "n0"), ("c", 2, 2, 300, 300, 0, "n0")
    assert played(site(*rows, user=["x", "x", "y"]), "[[limits]]", 'of = "user"', "gpus = 6") == [0, 100, 110]


def test_a_throttle_is_a_limit_of_an_array(site):
    rows = [(f"7_{i}", i, 1, 100, 100, 0, "n0") for i in range(3)] + [("8_0", 3, 1, 10, 10, 0, "n0")]
    assert played(site(*rows), "[[limits]]", 'of = "array"', 'names = ["7"]', "jobs = 1") == [0, 100, 200, 3]


def test_jobs_start_in_their_hours_and_higher_tiers_go_first(site):
    hours = '[[limits]]\nof = "qos"\nnames = ["r"]\nhours = "21:30-06:00"'
    made = replace(site(*JOBS, qos=["q", "q", "r", "r"]), lines=hours)
    for day, late in ((20 * 3600, 5400), (0, None), (22 * 3600, None), (6 * 3600 + 1800, 15 * 3600)):
        found = made().run(replace(made.own, day=float(day))).jobs["start"].to_list()
        assert found == [0, 1, *((late or 2, late or 3))]
    rows = [("a", 0, 4, 100, 100, 0, "n0"), ("b", 1, 4, 100, 100, 0, "n0"), ("c", 2, 4, 100, 100, 0, "n0")]
    made = site(*rows, qos=["q", "q", "r"])
    assert played(made, "[[limits]]", 'of = "qos"', 'names = ["r"]', "tier = 1") == [0, 200, 100]


def test_under_easy_with_limits_a_job_passes_only_if_it_delays_no_promise(site):
    """As the log of `test_under_easy_...`: b of 4 is promised 100; c of 1 would end at 120 and waits, d of 1 for 30 s passes."""
    rows = [
        ("a", 0, 3, 100, 100, 0, "n0"),
        ("b", 10, 4, 50, 50, 0, "n0"),
        ("c", 20, 1, 90, 100, 0, "n0"),
        ("d", 30, 1, 30, 30, 0, "n0"),
    ]
    limit = "[[limits]]", 'of = "user"', "gpus = 100"
    for rule, starts in (("easy", [0, 100, 150, 30]), ("none", [0, 100, 150, 150]), ("greedy", [0, 130, 20, 100])):
        made = site(*rows, rule=rule, user=["x"] * 4)
        assert played(made, *limit) == starts
        assert played(made) == starts


def test_a_window_and_a_limit(site):
    """A job of 50 s may not start before a window at 100 that it would run into."""
    rows = ("z", 0, 1, 9, 9, 0, "n0"), ("a", 60, 1, 50, 50, 0, "n0"), ("b", 61, 1, 20, 20, 0, "n0")
    windows = "[[windows]]", "start = 100", "end = 200", "[[limits]]", 'of = "user"', "gpus = 4"
    assert played(site(*rows, user=["x"] * 3), *windows) == [0, 200, 61]


def test_a_whatif_without_what_was_found_says_so(site):
    held = explain(site(*JOBS, **OWNERS))
    limit = Found("limit", "each user", (1, "jobs"), 1e6, "[[limits]]\nof = 'user'\njobs = 1")
    assert "what was found (`Site.completed`): " in replace(held, found=(limit,)).unsaid
    assert replace(held, plays=False, found=()).unsaid == ""


def test_lines_of_limits_are_checked(site):
    for lines, said in (
        ('of = "team"', "expected one of user, account, qos, vc, array, member, accounts"),
        ('of = "user"\nhours = "20:00-06:00"', "expected those of a qos"),
        ('of = "qos"\nhours = "20:15-06:00"', "expected those of a qos"),
    ):
        with pytest.raises(LabError, match=said):
            played(site(*JOBS), "[[limits]]", lines)


# --- made logs


def made(kind, tmp_path, weeks=4):
    """A made log, and the site of its files."""
    log = made_logs.make(kind, 3 if kind == "maxjobs" else 2, weeks=weeks)  # seed 2's users never have so many jobs
    return log, made_logs.site_of(log, made_logs.sim(log), tmp_path)


@pytest.mark.compiled("tens of thousands of jobs")
@pytest.mark.parametrize(
    "kind", ["qospu", *(pytest.param(kind, marks=pytest.mark.slow) for kind in (*made_logs.PLANTED, "acctlim"))]
)
def test_what_is_planted_is_found_with_its_value(kind, tmp_path):
    log, site = made(kind, tmp_path)
    assert made_logs.judged(kind, log, site.explanation.found) == (True, True, [])
    assert site.explanation.unexplained <= 0.01
    again = site.completed.explanation  # its lines say what was found
    assert again.found == ()
    assert (again.missing, again.unsaid) == ("", "")
    assert again.seconds == pytest.approx(site.explanation.seconds)


@pytest.mark.compiled("tens of thousands of jobs")
@pytest.mark.parametrize(
    ("kind", "least"),
    [("plain", 0), *(pytest.param(*case, marks=pytest.mark.slow) for case in (("parts", 0), ("deps", 0.01)))],
)
def test_nothing_else_is_named(kind, least, tmp_path):
    """A log by EASY alone is explained, with partitions as well; dependencies that nobody tells are not."""
    found = made(kind, tmp_path)[1].explanation
    assert found.found == ()
    assert least <= found.unexplained <= (1 if least else 0.001)
    assert bool(found.missing) == bool(least)


@pytest.mark.compiled("tens of thousands of jobs")
@pytest.mark.parametrize("kind", ["plan", pytest.param("passes", marks=pytest.mark.slow)])
def test_nothing_is_named_in_a_log_by_slurms_plan_or_by_passes(kind, tmp_path):
    log = explains.made_of(kind, 5900)
    found = made_logs.site_of(log, explains.played(kind, log), tmp_path).explanation
    assert (found.found, found.missing) == ((), "")


@pytest.mark.compiled("tens of thousands of jobs")
@pytest.mark.parametrize(("kind", "low", "high"), [("plain", 0, 0.001), ("tier", 0, 0.02), ("fair", 0.3, 1)])
def test_the_order_of_starts(kind, low, high, tmp_path):
    """Share of starts that pass an equal, earlier job, tiers that are found allowed for."""
    assert low <= made(kind, tmp_path)[1].explanation.passed <= high


@pytest.mark.compiled("tens of thousands of jobs")
def test_without_node_lists_the_share_lies_between_bounds(tmp_path):
    log = made_logs.make("userlim", 2, weeks=4)
    played = made_logs.sim(log)
    listed = explain(made_logs.site_of(log, played, tmp_path / "listed"))
    bare = explain(made_logs.site_of(log, played, tmp_path / "bare", lists=False))
    assert bare.least <= listed.unexplained <= bare.unexplained
    assert bare.missing.startswith("node lists")
