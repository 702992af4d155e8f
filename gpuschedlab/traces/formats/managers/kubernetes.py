"""Kubernetes: pods, Kueue's Workloads and Volcano's Jobs, as `kubectl get ... -o json` prints them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.devices import Devices, resource_gpus, whole_or_share
from gpuschedlab.traces.logs.instants import instants
from gpuschedlab.traces.logs.log_files import head_of, inside, json_of, number, several, text, text_of
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import LINE, Raw
from gpuschedlab.traces.logs.states import RUNNING, WAITING

COMMAND = "kubectl get pods -A -o json > pods.json"
QUEUES = ("volcano.sh/queue-name", "kueue.x-k8s.io/queue-name")
TIME = r'"\w*(?:Time|Timestamp|At)"\s*:\s*"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"'
#: Labels that name the job of a pod, the likeliest first.
JOBS = (
    "volcano.sh/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
)
PRODUCT = "nvidia.com/gpu.product"
#: Final conditions of Volcano's Jobs.
FINAL = {"Completed": "completed", "Failed": "failed", "Aborted": "killed", "Terminated": "killed"}
SCHEMA = dict.fromkeys(
    ("job_id", "submit", "start", "end", "state", "meaning", "vc", "user", "name", "shape"), pl.String
)
SCHEMA |= {
    "gpus": pl.Float64,
    "requested_time": pl.Float64,
    "priority": pl.Float64,
    "gpu_types": pl.List(pl.String),
    LINE: pl.Int64,
}


def recognises(head: str) -> bool:
    """Whether a file begins as an answer of kubectl."""
    table = re.match(r"\s*(NAMESPACE|NAME)\s+(NAME|READY|STATUS)\b", head)
    return bool(table) or (head.lstrip().startswith("{") and ('"apiVersion"' in head or '"kind"' in head))


def read(files: Sequence[Path], options: Options) -> Raw:
    """Jobs of pods (those of one job are a gang), of Workloads or of Volcano's Jobs, by the `kind` of what is listed."""
    # See Kubernetes API, Pod v1; Kueue, Workload and ClusterQueue; Volcano, Job (batch.volcano.sh/v1alpha1).
    rows, latest = [], []
    for file in files:
        source = f"k8s {file.name}"
        if not head_of(file).lstrip().startswith(("{", "[")):
            raise TraceError(
                f"{source}: found a table for people, without GPUs and with ages for times; expected the answer of: {COMMAND}"
            )
        data = json_of(file, "k8s", f"the answer of: {COMMAND}")
        kind = text(inside(data, "kind")) or ""
        items = several(data, "items") if inside(data, "items") is not None else [data]
        for place, item in enumerate(items, 1):
            one = text(inside(item, "kind")) or kind.removesuffix("List")
            version = text(inside(item, "apiVersion")) or ""
            make = _KINDS.get("VolcanoJob" if one == "Job" and "volcano" in version else one)
            if make is None:
                raise TraceError(
                    f"{source}, entry {place}: found the kind {one!r}; expected Pod, Workload or a Job of Volcano: {COMMAND}"
                )
            rows.append(_common(item, options) | make(item) | {LINE: place})
        latest += re.findall(TIME, text_of(file))
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row").with_columns(gpus=whole_or_share(pl.col("gpus")))
    now = instants(pl.Series([max(latest, default=None)], dtype=pl.String))["early"][0]
    return Raw(
        table,
        {name: name for name in SCHEMA if name != LINE},
        gangs="last",
        repeats="attempts",
        snapshot=now,
        missing=["a snapshot: jobs that ended earlier may be missing", "time lost before an eviction is not known"],
    )


def _common(item: Mapping, options: Options) -> dict:
    """What every object has."""
    labels, own = inside(item, "metadata", "labels") or {}, inside(item, "metadata", "name")
    space = text(inside(item, "metadata", "namespace")) or "default"
    label = (options.user or "").removeprefix("label:")
    return {
        "job_id": f"{space}/{text(own)}" if own else None,
        "submit": text(inside(item, "metadata", "creationTimestamp")),
        "name": text(own),
        "user": text(inside(labels, label)) if label else None,
        "vc": next((text(labels[q]) for q in QUEUES if isinstance(labels, Mapping) and labels.get(q)), space),
        "priority": number(inside(item, "spec", "priority")),
    }


def devices_of(spec) -> Devices:
    """GPUs of a pod: its containers' together, or the largest init container's."""

    def of(container) -> tuple[float, str | None]:
        asked = {
            **(inside(container, "resources", "limits") or {}),
            **(inside(container, "resources", "requests") or {}),
        }
        found = [resource_gpus(str(name), number(count) or 0.0) for name, count in asked.items()]
        return sum(d.gpus for d in found), next((d.shape for d in found if d.shape), None)

    own, init = [of(c) for c in several(spec, "containers")], [of(c) for c in several(spec, "initContainers")]
    gpus = max(sum(g for g, _ in own), max((g for g, _ in init), default=0.0))
    types = [text(inside(spec, "nodeSelector", PRODUCT))]
    terms = several(
        spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"
    )
    rules = [
        rule
        for term in terms
        for rule in several(term, "matchExpressions")
        if rule.get("key") == PRODUCT and rule.get("operator") == "In"
    ]
    types += [text(v) for rule in rules for v in (rule.get("values") or [])]
    return Devices(gpus, [t for t in types if t], next((s for _, s in [*own, *init] if s), None))


def asked_of(spec, gpus: float | None = None) -> dict:
    """Columns of what a pod asks for."""
    found = devices_of(spec)
    return {"gpus": found.gpus if gpus is None else gpus, "gpu_types": found.gpu_types or None, "shape": found.shape}


def condition_of(item: Mapping, kind: str) -> str | None:
    """When a condition became true; None where it is not."""
    true = [c for c in several(item, "status", "conditions") if c.get("type") == kind and c.get("status") == "True"]
    return text(true[-1].get("lastTransitionTime")) if true else None


def pod(item: Mapping) -> dict:
    """Row of a pod: its job by label, otherwise by owner, otherwise itself."""
    labels = inside(item, "metadata", "labels") or {}
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
    asked = asked_of(inside(item, "spec")) | {"requested_time": number(inside(item, "spec", "activeDeadlineSeconds"))}
    return (
        asked
        | ({"job_id": f"{space}/{group}"} if group else {})
        | {"state": phase, "start": start, "end": end, "meaning": meaning}
    )


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


_KINDS = {"Pod": pod, "Workload": workload, "VolcanoJob": volcano}
