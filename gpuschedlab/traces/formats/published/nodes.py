"""Lists of nodes: Alibaba's openb (v2023) and spot (v2026)."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.cluster import Cluster, Nodes
from gpuschedlab.errors import IntakeError, TraceError
from gpuschedlab.traces.logs.ledger import Intake, Report
from gpuschedlab.traces.logs.log_files import tables
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.schema import shown

#: Columns of the node's GPUs and their type.
FORMS = (("gpu", "model"), ("gpu_capacity_num", "gpu_model"))


def recognises(head: str) -> bool:
    """Whether a file begins as a list of nodes."""
    header = head.partition("\n")[0].strip()
    header_names = set(header.split(","))
    return any(set(form) <= header_names for form in FORMS) and bool({"sn", "node_name"} & header_names)


def read(files: Sequence[Path], options: Options) -> Intake:
    """Return an `Intake` with the cluster of a list of nodes, those without GPUs left out; nodes of one type may differ in size."""
    node_rows = tables(files, "nodes", ())
    form = next((form for form in FORMS if set(form) <= set(node_rows.columns)), None)
    if form is None:
        raise TraceError(
            f"nodes {files[0].name}: found the columns {shown(node_rows.columns)}; expected gpu and model."
        )
    gpus_of_node = node_rows[form[0]].cast(pl.Float64, strict=False)
    wrong = gpus_of_node.is_null() | ~gpus_of_node.is_between(0, 10_000) | (gpus_of_node != gpus_of_node.floor())
    if wrong.any():
        wrong_row = wrong.arg_max()
        raise TraceError(
            f"nodes {files[0].name}, row {wrong_row + 2}, column {form[0]}: found {node_rows[form[0]][wrong_row]!r}; "
            "expected GPUs of a node."
        )
    nodes = node_rows.select(gpu_type=pl.col(form[1]).fill_null("gpu"), gpus=gpus_of_node.cast(pl.Int64))
    nodes = nodes.filter(pl.col("gpus") > 0)
    cpu_nodes = node_rows.height - nodes.height
    left_out = {}
    if cpu_nodes:
        first = int((gpus_of_node == 0).arg_max())
        left_out["cpu_only"] = {"rows": cpu_nodes, "gpu_hours": 0.0, "share": 0.0, "example": first + 2}
    report = Report("nodes", files[0].name, rows=node_rows.height, left_out=left_out, beside={"nodes": nodes.height})
    if nodes.is_empty():
        raise IntakeError(
            f"nodes {files[0].name}: found {node_rows.height:,} nodes without GPUs; expected at least one with.", report
        )
    kinds = nodes.group_by("gpu_type", "gpus", maintain_order=True).len()
    cluster = Cluster(tuple(Nodes(gpu_type, int(nodes), int(gpus)) for gpu_type, gpus, nodes in kinds.rows()))
    return Intake(None, cluster, report)
