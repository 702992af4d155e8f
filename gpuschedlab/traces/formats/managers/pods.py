"""Pods of Kubernetes: what they ask for, when they were scheduled, and of which job they are."""

from collections.abc import Mapping

from gpuschedlab.traces.logs.devices import Devices, resource_gpus
from gpuschedlab.traces.logs.log_files import inside, number, several, text
from gpuschedlab.traces.logs.states import RUNNING, WAITING

#: Labels that name the job of a pod, the likeliest first.
JOBS = (
    "volcano.sh/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
)
PRODUCT = "nvidia.com/gpu.product"


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
