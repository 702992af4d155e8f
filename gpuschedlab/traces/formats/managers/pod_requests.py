"""GPUs that pods of Kubernetes request: of their containers, by annotation, with types and slices."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from gpuschedlab.traces.formats.managers.gpu_shares import annotated, of_cores
from gpuschedlab.traces.logs.devices import Devices, resource_gpus
from gpuschedlab.traces.logs.log_files import inside, mapping, number, several, text

PRODUCT = "nvidia.com/gpu.product"
ACCELERATORS = re.compile("gpu|cuda|ascend|gaudi|tpu|neuron|npu|mlu|dcu|gcu", re.IGNORECASE)


class Asked(NamedTuple):
    """GPUs that a pod requests (0 if none, or if that is not known), their types and slices; and which requests say no known share."""

    devices: Devices
    unknown: tuple[str, ...] = ()


class OfContainer(NamedTuple):
    """GPUs of a container, the profile of their slices, and a request of memory alone, or ""."""

    gpus: float
    shape: str | None
    unknown: str


def of_container(container: Mapping) -> OfContainer:
    """Return the GPUs that a container's limits and requests name, as `OfContainer`; shares of them if they name a part of each."""
    asked_resources = {}
    for request_part in ("limits", "requests"):
        resource_counts = mapping(container, "resources", request_part)
        asked_resources |= {
            str(resource_name): resource_count for resource_name, resource_count in resource_counts.items()
        }
    named = [
        resource_gpus(resource_name, number(resource_count) or 0.0)
        for resource_name, resource_count in asked_resources.items()
    ]
    shape = next((devices.shape for devices in named if devices.shape), None)
    share = of_cores(asked_resources, sum(devices.gpus for devices in named))
    return OfContainer(share.gpus or 0.0, shape, share.named)


def asked_by(pod: Mapping) -> Asked:
    """Return the GPUs of a pod, or of a template of pods, as `Asked`.

    They are its containers' together, or the largest init container's, or a share by annotation.
    """
    spec = inside(pod, "spec")
    containers = [of_container(c) for c in several(spec, "containers")]
    init = [of_container(c) for c in several(spec, "initContainers")]
    gpus = max(sum(c.gpus for c in containers), max((c.gpus for c in init), default=0.0))
    unknown = [c.unknown for c in [*containers, *init] if c.unknown]
    share = annotated(pod)
    if share is not None and not gpus:
        gpus = share.gpus or 0.0
        unknown += [share.named] * bool(share.named)
    shape = next((c.shape for c in [*containers, *init] if c.shape), None)
    return Asked(Devices(gpus, types_of(spec), shape), tuple(dict.fromkeys(unknown)))


def types_of(spec) -> list[str]:
    """Return a list of the GPU types that a pod's selector or affinity names."""
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
    return [t for t in types if t]


def not_counted(pod: Mapping) -> str | None:
    """Return a text of the accelerators of a pod, or of a template, that are no GPUs as far as is known, or None.

    The text has names of resources, or claims.
    """
    asked_devices = asked_by(pod)
    if asked_devices.unknown:
        return ", ".join(asked_devices.unknown)
    if asked_devices.devices.gpus:
        return None
    spec = inside(pod, "spec")
    containers = [*several(spec, "containers"), *several(spec, "initContainers")]
    resources = [mapping(c, "resources", how) for c in containers for how in ("limits", "requests")]
    accelerator_names = sorted(
        {str(n) for pod_resources in resources for n in pod_resources if number(pod_resources[n])}
    )
    accelerators = [n for n in accelerator_names if ACCELERATORS.search(n.partition("/")[2])]
    return ", ".join(accelerators) or ("resource claims" if several(spec, "resourceClaims") else None)
