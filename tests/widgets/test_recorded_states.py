"""States that a page holds without a kernel: each is what the explorer shows there, and recording leaves it as it was."""

import base64
import gzip
import json
import re

import pytest

pytest.importorskip("ipywidgets", reason="ipywidgets, of the extra lab, is not installed")

from scenes.placement import ClusterExplorer

from gpuschedlab import plots
from gpuschedlab.plots.web import cell
from gpuschedlab.plots.web.cell import Execution
from gpuschedlab.plots.web.encode import plain, short
from gpuschedlab.policies import Tiresias
from gpuschedlab.widgets import KnobExplorer, SmallCluster
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.knob_explorer import PAIR


class Queues(KnobExplorer):
    """A weight for each queue."""

    places = (plots.Place("queues"), plots.Place("rare", more=True))
    front = ("queues", "metric")
    kept = {"queues": (1, 2, 4), "metric": ()}

    def _compute(self, policy):
        return [float(i) for i in range(policy.queues)], policy.metric

    def _page(self, answer) -> Page:
        weights, metric = answer
        lines = plots.Lines("Queues", "number", "weight", weights, {"all": weights})
        return Page(
            dict.fromkeys(("queues", "rare"), lines),
            words=f"{len(weights)} queues by {metric}.",
            below=f"<table><tr><td>{len(weights)}</td></tr></table>",
        )


def test_each_state_is_what_the_explorer_shows_there():
    explorer = Queues(Tiresias(queues=3, thresholds=(1e3, 1e4)))
    begin = explorer.status.value
    found = explorer.states()
    queues, metric = found["controls"]
    states = found["states"]
    assert queues == {"name": "queues", "texts": ["1", "2", "3", "4"]}, "the present value is among those that are kept"
    assert sorted(metric["texts"]) == metric["texts"] == ["gittins", "service", "time"]
    assert len(states) == 12
    assert (explorer.status.value, explorer.knobs.thing.queues, explorer.keeping) == (begin, 3, False)
    assert begin in states[found["first"]][0]
    other = Queues(Tiresias())
    for i, (note, figures, table) in enumerate(states):
        number = int(queues["texts"][i // 3])
        rule = metric["texts"][i % 3]
        other.knobs["queues"].value = number
        other.knobs["metric"].value = rule
        assert other.status.value in note
        assert f"{number} queues by {rule}." in note
        assert table == f"<table><tr><td>{number}</td></tr></table>"
        assert list(figures) == ["queues"], "what is seen with more is not recorded"
        assert found["figures"][figures["queues"]] == short(plain(other.board.drawings["queues"]))
    assert len(found["figures"]) == 4, "equal figures are kept once"


def packs(html: str) -> list[dict]:
    """What the scripts of a page hold."""
    found = re.findall(r"gpuschedlabQueue \?\?= \[\]\)\.push\((\{.*?\})\)</script>", html)
    return [json.loads(gzip.decompress(base64.b64decode(json.loads(each)["pack"]))) for each in found]


def test_a_page_of_its_own_holds_the_states():
    page = Queues(Tiresias()).html()
    (pack,) = packs(page)
    assert len(pack["states"]["states"]) == 9
    assert pack["figures"] == {}, "the states have them"
    assert "gpuschedlabStates" in page
    assert "data-states" in page


@pytest.mark.parametrize(("kind", "recorded"), [("", True), ("a cell", False)])
def test_states_are_recorded_where_a_program_runs_the_cells(monkeypatch, kind, recorded):
    """A front end names the cell that it runs; papermill and a site's build do not."""
    monkeypatch.setattr(cell, "execution", lambda: Execution(kind, "request"))
    assert cell.in_batch() == recorded
    monkeypatch.setenv("VOILA_REQUEST_URL", "http://127.0.0.1")
    assert not cell.in_batch()
    monkeypatch.setattr(cell, "execution", lambda: None)
    assert not cell.in_batch()


def test_stories_of_the_jobs_that_move_most_are_recorded():
    explorer = ClusterExplorer(SmallCluster(nodes=2, jobs=40))
    found = explorer.states()
    records = [found["figures"][figures["change"]]["record"] for _, figures, _ in found["states"]]
    assert {len(record["stories"]) for record in records} == {8}
    now = explorer.screen.compared
    for row, lit in records[found["first"]]["stories"].items():
        run = explorer.sides[0].run
        assert lit["why"][0] == run.story(str(run.jobs["job_id"][int(row)]))
        assert lit["now"] == pytest.approx(float(now.now[int(row)]), rel=1e-3)
    assert "stories" not in explorer._record()


def test_a_job_of_a_pair_tells_its_story_and_logs_it():
    """What a page asks for: a look at a job, and then the log of its waits."""
    assert [place.name for place in PAIR] == ["change", "story", "table"]
    explorer = ClusterExplorer(SmallCluster(nodes=2, jobs=40))
    row = int(explorer.run.jobs["queueing"].arg_max())
    explorer._asked("view", {"job": row, "mark": "1"})
    lit = explorer.board.drawings["change"].record["lit"]
    job = str(explorer.run.jobs["job_id"][row])
    assert (lit["id"], lit["logged"], lit["why"][0]) == (job, False, explorer.run.story(job))
    explorer._asked("story", row)
    lit = explorer.board.drawings["change"].record["lit"]
    rule = explorer.sides[0].name
    recipe = explorer.knobs.thing
    assert lit["logged"]
    assert lit["why"][0] == recipe(explorer.seed).run(recipe.policies[rule], log=job).story(job)
    assert not explorer.error.outputs
