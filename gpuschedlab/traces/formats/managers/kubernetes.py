"""Kubernetes: pods, Kueue's Workloads and Volcano's Jobs, as `kubectl get ... -o json` prints them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.formats.managers.pod_requests import asked_by, not_counted
from gpuschedlab.traces.formats.managers.pods import pod, volcano, workload
from gpuschedlab.traces.logs.devices import whole_or_share
from gpuschedlab.traces.logs.instants import instants
from gpuschedlab.traces.logs.log_files import head_of, inside, json_of, mapping, number, several, text, text_of
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import LINE, Raw

COMMAND = "kubectl get pods -A -o json > pods.json"
QUEUES = ("volcano.sh/queue-name", "kueue.x-k8s.io/queue-name", "kai.scheduler/queue", "runai/queue")
TIME = r'"\w*(?:Time|Timestamp|At)"\s*:\s*"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"'
SCHEMA = dict.fromkeys(
    ("job_id", "submit", "start", "end", "state", "meaning", "vc", "user", "name", "shape", "nodelist", "left"),
    pl.String,
)
SCHEMA |= dict.fromkeys(("gpus", "nodes", "requested_time", "priority"), pl.Float64)
SCHEMA |= {"gpu_types": pl.List(pl.String), LINE: pl.Int64}


def recognises(head: str) -> bool:
    """Whether a file begins as an answer of kubectl."""
    printed_table = re.match(r"\s*(NAMESPACE|NAME)\s+(NAME|READY|STATUS)\b", head)
    return bool(printed_table) or (head.lstrip().startswith("{") and ('"apiVersion"' in head or '"kind"' in head))


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of jobs of pods (those of one job are a gang), of Workloads or of Volcano's Jobs, by the `kind` of the objects."""
    # See Kubernetes API, Pod v1; Kueue, Workload and ClusterQueue; Volcano, Job (batch.volcano.sh/v1alpha1).
    log_rows = []
    latest = []
    for kubectl_file in files:
        source = f"k8s {kubectl_file.name}"
        if not head_of(kubectl_file).lstrip().startswith(("{", "[")):
            raise TraceError(
                f"{source}: found a table for people, without GPUs and with ages for times; expected the answer of: {COMMAND}"
            )
        k8s_objects = json_of(kubectl_file, "k8s", f"the answer of: {COMMAND}")
        kind = text(inside(k8s_objects, "kind")) or ""
        k8s_items = several(k8s_objects, "items") if inside(k8s_objects, "items") is not None else [k8s_objects]
        for item_number, item in enumerate(k8s_items, 1):
            item_kind = text(inside(item, "kind")) or kind.removesuffix("List")
            version = text(inside(item, "apiVersion")) or ""
            make = _KINDS.get("VolcanoJob" if item_kind == "Job" and "volcano" in version else item_kind)
            if make is None:
                raise TraceError(
                    f"{source}, entry {item_number}: found the kind {item_kind!r}; expected Pod, Workload or a Job of Volcano: {COMMAND}"
                )
            log_row = _common(item, options) | make(item) | {LINE: item_number}
            sets = [*several(item, "spec", "podSets"), *several(item, "spec", "tasks")]
            pods = [item, *(mapping(pod_set, "template") for pod_set in sets)]
            log_rows.append(log_row | {"left": uncounted(pods, log_row["gpus"])})
        latest += re.findall(TIME, text_of(kubectl_file))
    log_table = pl.DataFrame(log_rows, schema=SCHEMA, orient="row").with_columns(gpus=whole_or_share(pl.col("gpus")))
    snapshot_instant = instants(pl.Series([max(latest, default=None)], dtype=pl.String))["early"][0]
    assumed = []
    if (log_table["nodes"] > 1).any():
        assumed.append("pods of a job stand on a node each")
    return Raw(
        log_table,
        {pod_column: pod_column for pod_column in SCHEMA if pod_column != LINE},
        gangs="last",
        assumed=assumed,
        repeats="attempts",
        snapshot=snapshot_instant,
        missing=["a snapshot: jobs that ended earlier may be missing", "time lost before an eviction is not known"],
    )


def uncounted(pods: Sequence[Mapping], gpus: float) -> str | None:
    """Return a text of the requests of a job's pods that leave it out, or None.

    They are shares that are not known, or without `gpus` possible GPUs.
    """
    unknown = [unknown_resource for pod in pods for unknown_resource in asked_by(pod).unknown]
    if unknown:
        return ", ".join(dict.fromkeys(unknown))
    if gpus:
        return None
    return next(filter(None, map(not_counted, pods)), None)


def _common(item: Mapping, options: Options) -> dict:
    """Return a dict of the fields that every object has."""
    labels = mapping(item, "metadata", "labels")
    object_name = inside(item, "metadata", "name")
    space = text(inside(item, "metadata", "namespace")) or "default"
    queue_labels = []
    if isinstance(labels, Mapping):
        queue_labels = [labels[name] for name in QUEUES if labels.get(name)]
    name = text(object_name)
    queue = text(queue_labels[0]) if queue_labels else space
    label = (options.user or "").removeprefix("label:")
    return {
        "job_id": f"{space}/{name}" if object_name else None,
        "submit": text(inside(item, "metadata", "creationTimestamp")),
        "name": name,
        "user": text(inside(labels, label)) if label else None,
        "vc": queue,
        "priority": number(inside(item, "spec", "priority")),
    }


_KINDS = {"Pod": pod, "Workload": workload, "VolcanoJob": volcano}
