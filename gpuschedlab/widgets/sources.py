"""Traces and clusters of the explorers, and the Python that makes them again; no widgets here."""

import shutil
import sys
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path

import polars as pl

from gpuschedlab._files import parquet
from gpuschedlab.cluster import Cluster
from gpuschedlab.comparison import OF_LOG, OF_TRACE, OF_WEEK
from gpuschedlab.errors import PolicyError, RunError, TraceError
from gpuschedlab.knobs import knobs_of, word_of
from gpuschedlab.scenarios import recipes
from gpuschedlab.scenarios.week import Generated
from gpuschedlab.sim.recipe_base import Recipe
from gpuschedlab.traces.logs.ledger import Intake
from gpuschedlab.traces.schema import validate, with_jobs


@dataclass(frozen=True)
class TraceOf:
    """Trace of a recipe's scenario: called with a seed it makes the trace."""

    recipe: Recipe

    @property
    def drawn(self) -> bool:
        """Whether another seed makes another trace like it, rather than another part of a log."""
        return self.recipe.drawn

    @property
    def noun(self) -> str:
        """Name of its traces."""
        return self.recipe.noun

    def __call__(self, rng: int = 0) -> pl.DataFrame:
        """Make the frame of a seed's trace."""
        return self.recipe(rng).trace

    def code(self, rng: int = 0) -> str:
        """Write the expression that makes the trace, as Python text."""
        if self.imported:
            return f"{self.recipe!r}({rng}).trace"
        return f"lab.recipe_of({word_of(self.recipe)!r})({rng}).trace"

    @property
    def imported(self) -> str:
        """Line that imports the recipe's class, if it is none that has a word; "" otherwise."""
        kind = type(self.recipe)
        if recipes().get(kind.__name__.lower()) is kind:
            return ""
        return f"from {kind.__module__} import {kind.__name__}  # your recipe"


def named_traces(given) -> dict:
    """Return a dict of traces by name: a frame or a recipe as "trace", a dict as it is, a generated week without."""
    if given is None:
        traces = {"generated week (Venus)": Generated()}
    elif isinstance(given, dict):
        traces = dict(given)
    else:
        traces = {"trace": given}
    for trace_name, trace in traces.items():
        if isinstance(trace, pl.DataFrame):
            traces[trace_name] = with_jobs(validate(trace, source=trace_name), trace_name)
        elif not callable(trace):
            raise TraceError(
                f"explorer: found {type(trace).__name__} as trace {trace_name!r}; expected a frame, or a function of a seed "
                "that makes one. Pass lab.generate(...), or widgets.Generated('venus')."
            )
    return traces


def place_of_trace(source, log: bool) -> str:
    """Return in a few words whose facts a comparison on a trace says."""
    if log or not getattr(source, "drawn", True):
        return OF_LOG
    if getattr(source, "noun", "") == "weeks":
        return OF_WEEK
    return OF_TRACE


def has_others(source) -> bool:
    """Whether other seeds make traces like this one."""
    return callable(source) and getattr(source, "drawn", True)


def named_logs(trace, cluster) -> tuple:
    """Return a tuple of traces and clusters, of which logs (`gpuschedlab.intake`) are opened, and of a dict of reports by name.

    The cluster of a log has its name.
    """
    sources = trace
    if isinstance(trace, Intake):
        sources = {trace.report.file: trace}
    if not isinstance(sources, dict):
        return trace, cluster, {}
    logs = {log_name: log for log_name, log in sources.items() if isinstance(log, Intake)}
    if not logs:
        return trace, cluster, {}
    of_logs = {log_name: log.machines for log_name, log in logs.items() if log.machines is not None}
    clusters = {}
    if cluster is not None or not of_logs:
        clusters = named_clusters(cluster)
    traces = sources | {log_name: log.trace for log_name, log in logs.items()}
    reports = {log_name: log.report for log_name, log in logs.items()}
    if next(iter(sources)) in of_logs:
        return traces, of_logs | clusters, reports
    return traces, clusters | of_logs, reports


def named_clusters(given) -> dict[str, Cluster]:
    """Return a dict of each `Cluster` by name: one under its own text, a dict as it is, 70 nodes of 8 without."""
    if given is None:
        given = Cluster.homogeneous(70, 8)
    if isinstance(given, dict):
        return dict(given)
    return {str(given): given}


def named_policies(given, default) -> dict:
    """Return a dict of policies by name, given as instances or classes, in a list or by name; `default` without."""
    if given is None:
        given = default
    if isinstance(given, dict):
        policy_pairs = list(given.items())
    elif isinstance(given, list | tuple):
        policy_pairs = [(None, policy) for policy in given]
    else:
        policy_pairs = [(None, given)]
    policies = {}
    for given_name, policy in policy_pairs:
        if isinstance(policy, type):
            policy = policy()
        knobs_of(policy)
        policy_name = given_name
        if not isinstance(given, dict):
            policy_name = getattr(policy, "name", type(policy).__name__)
        if policy_name in policies:
            raise PolicyError(
                f"explorer: found two policies named {policy_name!r}; expected different names: pass a dict."
            )
        try:
            hash(policy)
        except TypeError:
            raise PolicyError(
                f"{type(policy).__name__}: found a field that cannot be hashed; expected numbers, texts and tuples, "
                "by which results are kept. Make lists tuples."
            ) from None
        policies[policy_name] = policy
    if not policies:
        raise PolicyError("explorer: found no policies; expected at least one, such as [Fifo(), Srtf()].")
    return policies


def policy_code(policy) -> str:
    """Write a policy as Python text, with the fields that differ from their defaults."""
    field_codes = [
        f"{policy_field.name}={value!r}"
        for policy_field in fields(policy)
        if (value := getattr(policy, policy_field.name)) != policy_field.default
    ]
    return f"{type(policy).__name__}({', '.join(field_codes)})"


def cluster_code(cluster: Cluster) -> str:
    """Write a cluster as Python text."""
    short = f"lab.Cluster.parse({str(cluster)!r})"
    if not cluster.events:
        return short
    outages = "".join(
        f"lab.Outage({outage.node}, {outage.start!r}, float('{outage.end!r}')), " for outage in cluster.events
    )
    return f"lab.Cluster({short}.groups, ({outages.strip()}))"


def _home(imported_thing) -> str:
    """Name of the shortest module of the package that gives a class or function; its own for those of others."""
    public = ".".join(imported_thing.__module__.split(".")[:2])
    if public.startswith("gpuschedlab.") and hasattr(sys.modules.get(public), imported_thing.__name__):
        return public
    return imported_thing.__module__


def argument_code(value) -> tuple[str, str]:
    """Write a part of a scenario as Python text, with the import that it needs, in a tuple; a function is one of the cluster."""
    maker = type(value)
    if callable(value) and hasattr(value, "__qualname__"):
        maker = value
    imported = ""
    if maker.__module__ != "builtins":
        imported = f"from {_home(maker)} import {maker.__name__}"
    if maker is value:
        return f"{value.__name__}(cluster)", imported
    argument_text = repr(value)
    if (
        len(argument_text) < 200
        and argument_text.isprintable()
        and not argument_text.startswith("<")
        and "array(" not in argument_text
    ):
        return argument_text, imported
    return f"...  # the {maker.__name__} that was given", ""


def _trace_code(source, rng: int, folder: Path | None) -> str:
    if hasattr(source, "code"):
        return source.code(rng)
    if callable(source):
        function_name = getattr(source, "__name__", "")
        return f"{function_name if function_name.isidentifier() else 'make_trace'}({rng})  # your function"
    if folder is None:
        return 'pl.read_parquet("trace.parquet")  # from the folder that explorer.export() writes'
    return f"pl.read_parquet({str(folder / 'trace.parquet')!r})"


def run_code(source, cluster: Cluster, policy, rng: int, extras: dict, folder: Path | None = None) -> str:
    """Write the few lines of Python that make a run again, as text."""
    kind = type(policy)
    trace = _trace_code(source, rng, folder)
    argument_codes = {argument_name: argument_code(value) for argument_name, value in extras.items()}
    own_class_note = "" if kind.__module__.startswith("gpuschedlab.") else "  # your class"
    makers = sorted(
        {
            f"from {_home(kind)} import {kind.__name__}{own_class_note}",
            *(import_line for _, import_line in argument_codes.values()),
        }
    )
    makers.append(getattr(source, "imported", ""))
    head = ["import polars as pl"] if "pl." in trace else []
    code_lines = [*head, "import gpuschedlab as lab", *filter(None, makers), "", f"trace = {trace}"]
    code_lines += [f"cluster = {cluster_code(cluster)}", f"policy = {policy_code(policy)}"]
    code_lines += [f"{argument_name} = {argument_text}" for argument_name, (argument_text, _) in argument_codes.items()]
    scenario_arguments = "".join(f", {argument_name}={argument_name}" for argument_name in argument_codes)
    code_lines.append(f"scenario = lab.Scenario(trace, cluster{scenario_arguments}, seed={rng})")
    return "\n".join([*code_lines, "run = scenario.run(policy)", "run"])


def export(run, trace: pl.DataFrame, folder: Path, code: str) -> Path:
    """Store a run with its trace and the lines that make it again, and return the path of the folder.

    It has parquet files and reproduce.py.
    """
    folder = run.to_parquet(folder)
    try:
        (folder / "trace.parquet").write_bytes(parquet(trace))
        (folder / "reproduce.py").write_text(code + "\n", encoding="utf-8")
    except OSError as error:
        raise RunError(
            f"explorer: {folder} could not be completed: {error.strerror or error}. Free some space, or choose "
            "another folder."
        ) from error
    return folder


def zipped(write) -> bytes:
    """Return the bytes of a zip file of the files that `write(folder)` puts into a folder."""
    with tempfile.TemporaryDirectory(prefix="gpuschedlab-") as zip_folder:
        write(Path(zip_folder) / "run")
        return Path(shutil.make_archive(f"{zip_folder}/packed", "zip", f"{zip_folder}/run")).read_bytes()
