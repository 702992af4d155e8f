"""GPUs, their types and their slices, as Slurm, PBS and Kubernetes write them in texts."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import polars as pl

SLICES = 7  # compute slices of a GPU that is parted by MIG
MIG = re.compile(r"(\d)g[._](\d+)gb", re.IGNORECASE)
TRES = re.compile(r"(?:^|[,;\s])(?:gres[:/])?gpu(?:[:/]([^=,:]+))?=(\d+(?:\.\d+)?)")
GRES = re.compile(r"(?:^|[,;\s])(?:gres[:/])?gpu(?::([A-Za-z_][^:,=(]*|\d+g[^:,=(]*))?(?:[:=](\d+))?(?:\(|,|$)")
SHARD = re.compile(r"(?:gres[:/])?shard(?::[^=,:]+)?[=:](\d+)")
NUMBERS = dict.fromkeys(("shards", "nodes"), pl.Float64)


class Devices(NamedTuple):
    """GPUs (whole, or a share of one), their types in the order named, the MIG profile, shards, and nodes of as many GPUs each."""

    gpus: float
    gpu_types: list[str]
    shape: str | None = None
    shards: float = 0.0
    nodes: float | None = None


def devices(values: pl.Series, read: Callable[[str], Devices]) -> pl.DataFrame:
    """Return a frame of the devices of texts, each different text read once; null if there is no text."""
    texts = values.unique().drop_nulls()
    device_rows = [tuple(read(device_text)) for device_text in texts]
    schema = {"gpus": pl.Float64, "gpu_types": pl.List(pl.String), "shape": pl.String} | NUMBERS
    device_table = pl.DataFrame(device_rows, schema=schema, orient="row").with_columns(text=texts)
    text_frame = values.rename("text").to_frame()
    return text_frame.join(device_table, on="text", how="left", maintain_order="left").drop("text")


def of_tres(text: str) -> Devices:
    """Return the `Devices` of Slurm's TRES: `gres/gpu=N` is the count, entries with a type repeat it.

    Without the count these are added up.
    """
    entries = TRES.findall(text)
    untyped_counts = [float(tres_count) for kind, tres_count in entries if not kind]
    return _added([(kind, float(tres_count)) for kind, tres_count in entries if kind], untyped_counts, text)


def of_gres(text: str) -> Devices:
    """Return the `Devices` of Slurm's GRES: `gpu[:TYPE]:N`, of each node."""
    return _added([(kind, float(gres_count or 1)) for kind, gres_count in GRES.findall(text)], [], text)


def of_chunks(text: str) -> Devices:
    """Return the `Devices` of PBS selections: chunks, `N:ngpus=G+...`, or Torque's `N:ppn=P:gpus=G`. N may be a node's name."""
    sets = []
    types = []
    for chunk in text.split("+"):
        first, *chunk_parts = chunk.split(":")
        named = dict(
            chunk_part.partition("=")[::2]
            for chunk_part in (chunk_parts if "=" not in first else [first, *chunk_parts])
        )
        gpus_each = named.get("ngpus", named.get("gpus", "0"))
        sets.append((float(first) if first.isdigit() else 1.0, float(gpus_each) if gpus_each.isdigit() else 0.0))
        types += [named[type_key] for type_key in ("gpu_type", "gpu_model", "gputype") if type_key in named]
    gpus, nodes = in_sets(sets)
    return Devices(gpus, list(dict.fromkeys(types)), nodes=nodes)


def in_sets(sets: Iterable[tuple[float, float]]) -> tuple[float, float | None]:
    """Return a tuple: GPUs of sets of chunks or pods, and how many have GPUs, None if these are not alike.

    A set is (how many, GPUs of each).
    """
    has = [(count, gpus_each) for count, gpus_each in sets if count * gpus_each > 0]
    alike = len({gpus_each for _, gpus_each in has}) == 1
    return sum((count * gpus_each for count, gpus_each in has), 0.0), sum(count for count, _ in has) if alike else None


def of_ids(text: str, ids: dict[str, str]) -> Devices:
    """Return the `Devices` of TRES by number, as Slurm's database has them: `1=20,1002=2`.

    `ids` has the numbers of GPUs, and their types.
    """
    entries = [entry.partition("=")[::2] for entry in text.strip('"').split(",")]
    return of_tres(
        ",".join(f"gres/gpu:{ids[tres_id]}={tres_count}" for tres_id, tres_count in entries if tres_id in ids)
    )


def _added(typed: list[tuple[str, float]], untyped_counts: list[float], text: str) -> Devices:
    shards = sum((float(count) for count in SHARD.findall(text)), 0.0)
    sliced = [(kind, count) for kind, count in typed if MIG.search(kind)]
    if sliced:  # a count without a type counts slices, too
        slices = sum(_slices_of(kind) * count for kind, count in sliced)
        whole_gpus = sum(count for kind, count in typed if not MIG.search(kind))
        first_kind = sliced[0][0]
        return Devices(whole_gpus + slices / SLICES, [], MIG.search(first_kind)[0], shards)
    total = max(untyped_counts) if untyped_counts else sum((count for _, count in typed), 0.0)
    types = list(dict.fromkeys(kind for kind, count in typed if kind and count))
    return Devices(total, types, None, shards)


def _slices_of(kind: str) -> int:
    """Return the number of compute slices of a MIG profile, such as 2 of `2g.10gb`."""
    return int(MIG.search(kind)[1])


def resource_gpus(name: str, count: float) -> Devices:
    """Return the `Devices` of a Kubernetes resource, such as nvidia.com/gpu or nvidia.com/mig-1g.5gb.

    Others, and parts of a GPU's time, are no GPUs: `Devices` of 0.
    """
    vendor, _, kind = name.partition("/")
    whole_gpus = kind.startswith("gpu") and not re.search("shared|mem|core", kind)
    if kind == "gpu" or (whole_gpus and vendor in ("nvidia.com", "amd.com")):
        return Devices(count, [])
    if kind.startswith("mig-") and (mig_profile := MIG.search(kind)):
        return Devices(count * int(mig_profile[1]) / SLICES, [], mig_profile[0])
    return Devices(0.0, [])


def whole_or_share(gpus: pl.Expr) -> pl.Expr:
    """Return an expression (`pl.Expr`): GPUs as a trace holds them, a share below 1 as it is, others rounded up."""
    return pl.when(gpus < 1 - 1e-9).then(gpus).otherwise((gpus - 1e-9).ceil())
