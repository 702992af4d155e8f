"""The state of an Explorer as a few words, which an address holds after its `#`: `policy=Srtf&against=Fifo&nodes=70&job=06364`."""

from urllib.parse import parse_qsl, quote, urlencode

from gpuschedlab._knob import knob_word, parse_knob
from gpuschedlab.errors import RunError
from gpuschedlab.knobs import knobs_of
from gpuschedlab.widgets.explorers.first_screen import View
from gpuschedlab.widgets.parts.knob_controls import quiet

PICKERS = {"trace": str, "cluster": str, "seed": int, "nodes": int}
"""Controls with a value of their own, in the order in which they are set, and what that is."""


def written(explorer) -> str:
    """Write what is shown: all that differs from how the explorer begins, and always the policies and the nodes."""
    panel, view, now = explorer.panel, explorer.view, explorer.setting
    found = {"policy": now.name} | {i.name: knob_word(value) for i, value in now.moved(explorer.policies[now.name])}
    if panel.against.value in explorer.policies:
        found["against"] = panel.against.value
    choice = {"trace": len(explorer.traces) > 1, "cluster": len(explorer.clusters) > 1, "seed": not panel.seed.disabled}
    found |= {name: str(getattr(panel, name).value) for name in PICKERS if choice.get(name, True)}
    found |= {"by": view.by} if view.by != "run" else {}
    if view.job is not None:
        found["job"] = str(explorer.run.jobs["job_id"][view.job])
    found |= {name: f"{span[0]:g}_{span[1]:g}" for name in ("time", "size") if (span := getattr(view, name))}
    return urlencode(found | ({"more": "1"} if panel.opened else {}), quote_via=quote, safe=":,_")


def restore(explorer, text: str):
    """Show what was written; what an explorer does not have is an error that names it."""
    words, panel = dict(parse_qsl(text.removeprefix("#"))), explorer.panel
    names = [words.pop("policy", panel.policy.value), words.pop("against", panel.against.value)]
    if wrong := [name for name in names if name not in explorer.policies and name != panel.against.value]:
        raise RunError(f"explorer: found policy {wrong[0]!r}; expected one of {', '.join(explorer.policies)}.")
    given = explorer.policies[names[0]]
    knobs = {i.name: parse_knob(i, words.pop(i.name)) for i in knobs_of(given).values() if i.name in words}
    with quiet(explorer):
        for name, kind in PICKERS.items():
            if name in words and (name != "nodes" or panel.resizable):
                getattr(panel, name).value = kind(words[name])
        panel.policy.value, panel.against.value = names
        panel.knobs.show(given.with_knobs(**knobs))
    panel.open("more" in words)
    spans = {name: tuple(map(float, words[name].split("_"))) for name in ("time", "size") if name in words}
    explorer.view = View(words.get("by", "run"), **spans)
    if unknown := words.keys() - {*PICKERS, "more", "by", "time", "size", "job"}:
        raise RunError(
            f"explorer: found {', '.join(sorted(unknown))}; expected a policy, its knobs, {', '.join(PICKERS)}, job, time or size."
        )
    explorer.refresh()
    if job := words.get("job"):
        rows = [i for i, each in enumerate(explorer.run.jobs["job_id"]) if str(each) == job]
        if not rows:
            raise RunError(f"explorer: found job {job!r}; expected the job_id of one of the trace's.")
        explorer.view = explorer.view._replace(job=rows[0])
        explorer.refresh()
