"""Objects of Kubernetes as rows: pods, and the jobs that admit theirs together (Kueue's Workloads, Volcano's Jobs)."""

import re
from collections.abc import Mapping

from gpuschedlab.traces.formats.managers.pod_requests import asked_by
from gpuschedlab.traces.logs.devices import in_sets, resource_gpus
from gpuschedlab.traces.logs.log_files import inside, mapping, number, several, text
from gpuschedlab.traces.logs.states import RUNNING, WAITING

#: Labels that name the job of a pod, the likeliest first.
JOBS = (
    "volcano.sh/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
)
#: Final conditions of Volcano's Jobs.
FINAL = {"Completed": "completed", "Failed": "failed", "Aborted": "killed", "Terminated": "killed"}


def condition_of(item: Mapping, kind: str) -> str | None:
    """Return the time at which a condition became true, a text; None if it is not."""
    true = [c for c in several(item, "status", "conditions") if c.get("type") == kind and c.get("status") == "True"]
    return text(true[-1].get("lastTransitionTime")) if true else None


def pod(item: Mapping) -> dict:
    """Return the row of a pod, a dict: its job by label, otherwise by owner, otherwise itself."""
    labels = mapping(item, "metadata", "labels")
    owner = [text(o.get("name")) for o in several(item, "metadata", "ownerReferences")]
    group = next((text(inside(labels, n)) for n in JOBS if inside(labels, n)), owner[0] if owner else None)
    phase = text(inside(item, "status", "phase")) or ""
    space = text(inside(item, "metadata", "namespace")) or "default"
    start = condition_of(item, "PodScheduled") or (
        text(inside(item, "status", "startTime")) if phase != "Pending" else None
    )
    ends = [text(inside(c, "state", "terminated", "finishedAt")) for c in several(item, "status", "containerStatuses")]
    # An evicted pod has no containers any more: its last change is its end.
    changed = [text(c.get("lastTransitionTime")) for c in several(item, "status", "conditions")]
    last = [e for e in ends if e] or [text(inside(item, "metadata", "deletionTimestamp")), *changed]
    end = max((e for e in last if e), default=None) if phase in ("Succeeded", "Failed") else None
    meaning = {"Succeeded": "completed", "Failed": "failed"}.get(phase, RUNNING if start else WAITING)
    asked_devices = asked_by(item).devices
    return {
        "gpus": asked_devices.gpus,
        "gpu_types": asked_devices.gpu_types or None,
        "shape": asked_devices.shape,
        "nodes": 1.0 if asked_devices.gpus else None,
        "nodelist": text(inside(item, "spec", "nodeName")),
        "requested_time": number(inside(item, "spec", "activeDeadlineSeconds")),
        **({"job_id": f"{space}/{group}"} if group else {}),
        "state": phase,
        "start": start,
        "end": end,
        "meaning": meaning,
    }


def _pods(item: Mapping, sets: str, count: str) -> list[tuple[float, float]]:
    """Return a list of the sets of pods of a job, each a tuple: how many, and GPUs of each."""
    pods = []
    for pod_set in several(item, "spec", sets):
        replicas = number(pod_set.get(count, 1)) or 0.0
        template = mapping(pod_set, "template")
        pods.append((replicas, asked_by(template).devices.gpus))
    return pods


def workload(item: Mapping) -> dict:
    """Return the row of a Workload, a dict: from Admitted to Finished, on the flavor of its GPUs."""
    gpus, nodes = in_sets(_pods(item, "podSets", "count"))
    sets = several(item, "status", "admission", "podSetAssignments")
    flavors = []
    for pod_set in sets:
        flavor_of = mapping(pod_set, "flavors")
        flavors += [
            text(flavor) for resource_name, flavor in flavor_of.items() if resource_gpus(str(resource_name), 1.0).gpus
        ]
    flavors = [flavor for flavor in dict.fromkeys(flavors) if flavor]
    start = condition_of(item, "Admitted")
    end = condition_of(item, "Finished")
    conditions = several(item, "status", "conditions")
    final = [condition for condition in conditions if condition.get("type") == "Finished"]
    why = " ".join(f"{condition.get('reason')} {condition.get('message')}" for condition in final)
    outcome_words = {"fail|error": "failed", "succe|finished": "completed"}
    outcome = next(
        (outcome_word for pattern, outcome_word in outcome_words.items() if re.search(pattern, why.lower())), None
    )
    meaning = WAITING
    if start:
        meaning = outcome if end else RUNNING
    log_row = {
        "gpus": gpus,
        "nodes": nodes,
        "gpu_types": flavors or None,
        "requested_time": number(inside(item, "spec", "maximumExecutionTimeSeconds")),
        "start": start,
        "end": end if start else None,
        "meaning": meaning,
    }
    queue = text(inside(item, "status", "admission", "clusterQueue") or inside(item, "spec", "queueName"))
    if queue:
        log_row["vc"] = queue
    return log_row


def volcano(item: Mapping) -> dict:
    """Return the row of a Job, a dict: from Running to the last final condition."""
    gpus, nodes = in_sets(_pods(item, "tasks", "replicas"))
    course = [(text(c.get("status")), text(c.get("lastTransitionTime"))) for c in several(item, "status", "conditions")]
    start = next((changed_at for phase_word, changed_at in course if phase_word == "Running"), None)
    phase = text(inside(item, "status", "state", "phase"))
    ended = (
        [(FINAL[phase_word], changed_at) for phase_word, changed_at in course if phase_word in FINAL]
        if phase in FINAL or phase is None
        else []
    )
    meaning, end = (ended[-1] if ended else (RUNNING, None)) if start else (WAITING, None)
    queue = text(inside(item, "spec", "queue"))
    return {
        "gpus": gpus,
        "nodes": nodes,
        **({"vc": queue} if queue else {}),
        "state": phase,
        "start": start,
        "end": end,
        "meaning": meaning,
    }
