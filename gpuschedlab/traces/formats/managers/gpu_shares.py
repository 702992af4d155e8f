"""Shares of a GPU that pods request: by annotations of KAI and Run:ai, and by resources of HAMi beside its count of GPUs."""

from collections.abc import Mapping
from typing import NamedTuple

from gpuschedlab.traces.logs.log_files import inside, number

FRACTION = "gpu-fraction"
MEMORY = "gpu-memory"
DEVICES = "gpu-fraction-num-devices"
ALLOCATED = "runai-allocated-gpus"
"""Annotations of pods: a share of a GPU, memory (MiB) of one, on how many GPUs; and what Run:ai gave."""
CORES = "gpucores"
PERCENTAGE = "gpumem-percentage"
MEGABYTES = "gpumem"
"""Resources beside nvidia.com/gpu: percent of a GPU's cores, percent of its memory, and memory (MiB), of each GPU."""


class Share(NamedTuple):
    """GPUs of a request; None if it names memory alone, so that its part of a GPU is not known: then `named` says which."""

    gpus: float | None
    named: str = ""


def annotated(pod: Mapping) -> Share | None:
    """Return the GPUs that a pod's annotations request (KAI, Run:ai) as a `Share`; None if they say nothing of GPUs."""
    notes = inside(pod, "metadata", "annotations")
    if not isinstance(notes, Mapping):
        return None
    if FRACTION not in notes and MEMORY not in notes:
        return None
    devices = number(notes.get(DEVICES)) or 1.0
    fraction = number(notes.get(FRACTION))
    if fraction is not None and 0 < fraction < float("inf"):
        return Share(fraction * devices)
    allocated = number(notes.get(ALLOCATED))
    if allocated is not None and 0 < allocated < float("inf"):
        return Share(allocated)
    if FRACTION in notes:
        return Share(None, FRACTION)
    return Share(None, MEMORY)


def of_cores(asked: Mapping[str, object], gpus: float) -> Share:
    """Return the `Share` of a container that asks for `gpus` GPUs, and perhaps (HAMi) for a part of each: of cores or memory.

    The part is the larger of the percentages of cores and of memory. Memory in MiB alone is no known part.
    """
    sizes = {resource_name.partition("/")[2]: number(value) for resource_name, value in asked.items()}
    percents = [sizes[resource_name] for resource_name in (CORES, PERCENTAGE) if sizes.get(resource_name)]
    if percents:
        return Share(gpus * min(max(percents), 100.0) / 100)
    if sizes.get(MEGABYTES):
        vendor = next(resource_name for resource_name in asked if resource_name.endswith(f"/{MEGABYTES}"))
        return Share(None, vendor)
    return Share(gpus)
