"""Jobs of Kubernetes that admit their pods together: Kueue's Workloads and Volcano's Jobs."""

import re
from collections.abc import Mapping

from gpuschedlab.traces.formats.managers.pods import condition_of, devices_of
from gpuschedlab.traces.logs.devices import resource_gpus
from gpuschedlab.traces.logs.log_files import inside, number, several, text
from gpuschedlab.traces.logs.states import RUNNING, WAITING

FINAL = {"Completed": "completed", "Failed": "failed", "Aborted": "killed", "Terminated": "killed"}


def workload(item: Mapping) -> dict:
    """Row of a Workload: from Admitted to Finished, on the flavor of its GPUs."""
    gpus = sum(
        (number(p.get("count", 1)) or 0.0) * devices_of(inside(p, "template", "spec")).gpus
        for p in several(item, "spec", "podSets")
    )
    sets = several(item, "status", "admission", "podSetAssignments")
    flavors = [
        text(f) for s in sets for name, f in (inside(s, "flavors") or {}).items() if resource_gpus(str(name), 1.0).gpus
    ]
    start, end = condition_of(item, "Admitted"), condition_of(item, "Finished")
    why = " ".join(
        f"{c.get('reason')} {c.get('message')}"
        for c in several(item, "status", "conditions")
        if c.get("type") == "Finished"
    )
    outcome = next(
        (
            w
            for pattern, w in (("fail|error", "failed"), ("succe|finished", "completed"))
            if re.search(pattern, why.lower())
        ),
        None,
    )
    queue = text(inside(item, "status", "admission", "clusterQueue") or inside(item, "spec", "queueName"))
    return {
        "gpus": gpus,
        "gpu_types": [f for f in dict.fromkeys(flavors) if f] or None,
        "requested_time": number(inside(item, "spec", "maximumExecutionTimeSeconds")),
        **({"vc": queue} if queue else {}),
        "start": start,
        "end": end if start else None,
        "meaning": outcome if end and start else RUNNING if start else WAITING,
    }


def volcano(item: Mapping) -> dict:
    """Row of a Job: from Running to the last final condition."""
    gpus = sum(
        (number(t.get("replicas", 1)) or 0.0) * devices_of(inside(t, "template", "spec")).gpus
        for t in several(item, "spec", "tasks")
    )
    course = [(text(c.get("status")), text(c.get("lastTransitionTime"))) for c in several(item, "status", "conditions")]
    start = next((at for word, at in course if word == "Running"), None)
    phase = text(inside(item, "status", "state", "phase"))
    ended = [(FINAL[word], at) for word, at in course if word in FINAL] if phase in FINAL or phase is None else []
    meaning, end = (ended[-1] if ended else (RUNNING, None)) if start else (WAITING, None)
    queue = text(inside(item, "spec", "queue"))
    return {
        "gpus": gpus,
        **({"vc": queue} if queue else {}),
        "state": phase,
        "start": start,
        "end": end,
        "meaning": meaning,
    }
