"""Kueue's ClusterQueues as `kubectl get clusterqueues -o yaml` prints them, or as they are applied."""

import re
from dataclasses import replace

from gpuschedlab._extras import need
from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.papers.clusters.files.description import Description
from gpuschedlab.papers.clusters.queues import Queue

SCALE = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9}
QUOTAS = {"nominalQuota": "nominal", "borrowingLimit": "borrow", "lendingLimit": "lend"}
SPEC = {"cohort", "cohortName", "queueingStrategy", "resourceGroups", "preemption", "fairSharing", "flavorFungibility"}
FUNGIBILITY = {"whenCanBorrow": ("when_can_borrow", "Borrow"), "whenCanPreempt": ("when_can_preempt", "Preempt")}


def read_queues(text: str, source: str, site: Description) -> Description:
    """Return the site's `Description` with the queues of a YAML or JSON text; a resource counts if its name ends in "gpu"."""
    kueue_objects = _objects(text, source)
    cluster_queues = [item for item in kueue_objects if isinstance(item, dict) and item.get("kind") == "ClusterQueue"]
    if not cluster_queues:
        raise TraceError(
            f"kueue {source}: found {len(kueue_objects)} objects, none a ClusterQueue; expected at least one."
        )
    kinds = [item["kind"] for item in kueue_objects if isinstance(item, dict) and item.get("kind")]
    unknown: dict[str, None] = {f"kind {kind}": None for kind in kinds if kind != "ClusterQueue"}
    queues = []
    for item in cluster_queues:
        try:
            queues.append(_queue(item, unknown))
        except (LabError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise TraceError(
                f"kueue {source}, ClusterQueue {_name_of(item)!r}: found {error}; expected the layout of kueue.x-k8s.io."
            ) from error
    return replace(site, queues=tuple(queues), unmodelled=(*site.unmodelled, *unknown))


def _objects(text: str, source: str) -> list:
    """Return a list of the objects (dicts) of a YAML text, and those of its lists."""
    yaml = need("yaml", "ClusterQueues in YAML")
    try:
        documents = [document for document in yaml.safe_load_all(text) if isinstance(document, dict)]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = ""
        if mark:
            line = f", line {mark.line + 1}"
        raise TraceError(f"kueue {source}{line}: found no YAML; expected documents of kind ClusterQueue.") from error
    objects = []
    for document in documents:
        if document.get("kind") == "List":
            objects += document.get("items") or ()
        else:
            objects.append(document)
    return objects


def _name_of(item: dict) -> object:
    """Return the name of an object; None if it has none."""
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        return None
    return metadata.get("name")


def _queue(item: dict, unknown: dict[str, None]) -> Queue:
    """Return the `Queue` of a ClusterQueue."""
    spec = item["spec"]
    quotas = {"nominal": {}, "borrow": {}, "lend": {}}
    unknown |= _others("spec", spec, SPEC)
    for group in spec.get("resourceGroups") or ():
        unknown |= _others("resourceGroups", group, ("coveredResources", "flavors"))
        for flavor in group["flavors"]:
            unknown |= _others("flavors", flavor, ("name", "resources"))
            for resource in flavor["resources"]:
                unknown |= _others("resources", resource, ("name", *QUOTAS))
                if not str(resource["name"]).endswith("gpu"):
                    unknown |= {f"resource {resource['name']}": None}
                    continue
                for quota_key, ours in QUOTAS.items():
                    if resource.get(quota_key) is not None:
                        quotas[ours][str(flavor["name"])] = quantity(resource[quota_key])
    preemption = spec.get("preemption") or {}
    within = preemption.get("borrowWithinCohort") or {}
    unknown |= _others(
        "spec.preemption", preemption, ("reclaimWithinCohort", "withinClusterQueue", "borrowWithinCohort")
    )
    unknown |= _others("spec.preemption.borrowWithinCohort", within, ("policy", "maxPriorityThreshold"))
    sharing = spec.get("fairSharing") or {}
    unknown |= _others("spec.fairSharing", sharing, ("weight",))
    search = {}
    for queue_key, policy in (spec.get("flavorFungibility") or {}).items():
        if queue_key in FUNGIBILITY:
            field, stops = FUNGIBILITY[queue_key]
            search[field] = policy
            if policy == "MayStopSearch":  # its name from v1beta2 on
                search[field] = stops
        else:
            unknown[f"spec.flavorFungibility.{queue_key}"] = None
    cohort = spec.get("cohortName") or spec.get("cohort") or ""
    limits = {quota_name: tuple(of_types.items()) for quota_name, of_types in quotas.items()}
    return Queue(
        str(item["metadata"]["name"]),
        str(cohort),
        **limits,
        strict=spec.get("queueingStrategy") == "StrictFIFO",
        reclaim=preemption.get("reclaimWithinCohort", "Never"),
        within=preemption.get("withinClusterQueue", "Never"),
        borrow_within=within.get("policy", "Never"),
        threshold=float(within.get("maxPriorityThreshold", float("inf"))),
        weight=quantity(sharing.get("weight", 1)),
        **search,
    )


def _others(where: str, given: dict, known) -> dict[str, None]:
    """Return a dict of the keys that nothing here stands for, each with None."""
    return {f"{where}.{unknown_key}": None for unknown_key in given if unknown_key not in known}


def quantity(value: object) -> float:
    """Return a quantity of Kubernetes as a float."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([mkMG]?)", str(value))
    if not match:
        raise ValueError(f"the quantity {value!r}")
    return float(match[1]) * SCALE[match[2]]
