"""Which files of public artifacts make each table of the reference data: addresses at pinned commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import polars as pl

from reproduce.reference import layouts as as_

FMS = ("roberta-base", "roberta-large", "vit", "vit-large")
#: Batch sizes with validation curves; like the GPU types below, in the order of the files' names.
VALIDATED = {
    "bert": (12, 192, 24, 384, 48, 96),
    "cifar10": (1024, 128, 2048, 256, 4096, 512),
    "deepspeech2": (160, 20, 320, 40, 640, 80),
    "gpt_pmp": (12, 192, 24, 384, 48, 96),
    "imagenet": (12800, 1600, 200, 3200, 400, 6400, 800),
    "ncf": (1024, 16384, 2048, 256, 32768, 4096, 512, 8192),
    "yolov3": (128, 16, 256, 32, 512, 64, 8),
}
PROFILED = dict.fromkeys(VALIDATED, ("aws", "azure", "dgx-ext", "dgx", "quad", "rtx")) | {"gpt_pmp": ("dgx-ext", "rtx")}


class Part(NamedTuple):
    """Files that make consecutive rows of a table, below an address such as https://github.com."""

    labels: dict  # columns that no file has
    files: tuple[str, ...]


class Recipe(NamedTuple):
    """How a table is made: what reads a part, and its parts in the order of its rows."""

    read: Callable[[list, dict], pl.DataFrame]
    parts: tuple[Part, ...]


def each(*files: str, of: Iterable[dict] = ({},)) -> tuple[Part, ...]:
    """A part for each set of labels, which stand in the names of its files."""
    return tuple(Part(labels, tuple(file.format(**labels) for file in files)) for labels in of)


def grid(first: str, firsts: Iterable, second: str, seconds: Iterable) -> list[dict]:
    """Sets of labels: each first one with each second one."""
    return [{first: a, second: b} for a in firsts for b in seconds]


_ADAPTDL = "petuum/adaptdl/raw/de25dcc90c350b8ade3a710e437a651a8d2efae6/simulator"
_SIA = "siasosp23/artifacts/raw/37c68be73bc2ea5f53c778190d1b88f6c00e7352/sia-simulator"
_SIA_SCALE = "siasosp23/artifacts/raw/aaf7a0de7b6cb5eab06ea020467ede5d2fd18e70/sia-simulator"
_COPTER = "suhasjs/continuous-scheduling/raw/{commit}/simulator"
_CHRONUS = "S-Lab-System-Group/ChronusArtifact/raw"
_TITAN = "gaow0007/TitanSched/raw/a43fea897715dd26ae4aa24dea8a2e75b8cd6ede"
_CURVES = "gaow0007/TitanSched/raw/37bb3839b5a966449f086b6c4450d78ab196c4d9/common/cache"
_CONVERTED = "mystous/gpu_scheduler/raw/01818af2b6c5baa56abe946443ae253416d28b9d/sim"
_SLICE = "felivalencia3/mini-compute-simulator/raw/fdaa58ab13f27beb4e063f3afb9a5493fb677061/tests/validation_traces"


def _sia() -> tuple[Part, ...]:
    """Workloads of the Sia artifact, in the order in which the table grew."""
    rates = [f"scale/rate_{rate}" for rate in (10, 20, 30, 40, 50)]
    sizes = [f"scale/scale_{size}x" for size in (16, 2, 32, 4, 8)]
    sets = [
        *((_SIA, ["philly"], range(1, 5)), (_SIA, ["saturn"], range(1, 6)), (_SIA_SCALE, sizes, [1])),
        *((_SIA, ["newtrace"], range(1, 4)), (_SIA_SCALE, rates, [1, 2]), (_SIA, ["philly"], range(5, 9))),
        *((_SIA, ["saturn"], range(6, 11)), (_SIA, ["newtrace"], range(4, 11))),
    ]
    file = "workloads/{set}/workload-{idx}.csv"
    return tuple(
        part for root, names, idx in sets for part in each(f"{root}/{file}", of=grid("set", names, "idx", idx))
    )


def _titan_runs() -> tuple[Part, ...]:
    """Results of TitanSched; the folders of its own policy end in the switches that were on, the first of them merging."""
    runs = {policy: (policy, "") for policy in ("srtf", "tiresias", "themis", "optimus", "pollux")}
    runs |= {"titan_nomerge": ("titan", "-False-True"), "titan_merge": ("titan", "-True-True")}
    cases = [
        case | {"policy": policy, "run": run, "on": on}
        for case in grid("load", (1.0, 1.5), "fm", FMS)
        for policy, (run, on) in runs.items()
    ]
    path = f"{_TITAN}/result/main/{{run}}/FM-{{load:g}}-{{fm}}{{on}}/{{run}}"
    return each(f"{path}.csv", f"{path}_fairness.csv", of=cases)


def _measured(kind: str, fms=("roberta-base", "roberta-large", "vit-large", "vit"), gpus=("A100", "V100")) -> Recipe:
    """Measurements of foundation models; each GPU type at the commit that measured it."""
    commits = {"A100": "c9659896f429c42af1df708de72768062d40289a", "V100": "d4d61d1d1c2078383fd5cb47aff128f126c39b89"}
    cases = [case | {"commit": commits[case["gpu_type"]]} for case in grid("gpu_type", gpus, "fm", fms)]
    path = f"gaow0007/TitanSched/raw/{{commit}}/client/application/appinfo/fminfo/{{gpu_type}}/{{fm}}_{kind}.csv"
    return Recipe(as_.rows, each(path, of=cases))


def _step_times() -> tuple[Part, ...]:
    """Placements of all models, then nodes and replicas alone."""
    cases = [{"model": model, "gpu_type": gpu} for model, gpus in PROFILED.items() for gpu in gpus]
    kinds = ("placements", "scalability")
    return tuple(p for kind in kinds for p in each(f"{_SIA}/traces/{{model}}/{kind}-{{gpu_type}}.csv", of=cases))


def _elastic() -> tuple[Part, ...]:
    """Speeds of ElasticFlow; one model was added later."""
    a100 = ("vgg16", "resnet50_cifar10", "deepspeech2", "gpt2", "bert", "inception3", "resnet50")
    t4 = ("yolov3", "cifar10", "deepspeech2", "imagenet", "bert", "ncf")
    commits = {"resnet50_cifar10": "3fdee01804c02998e3eceb774d8045496d874652"}
    cases = [*grid("gpu_type", ["A100"], "model", a100), *grid("gpu_type", ["T4"], "model", t4)]
    cases = [c | {"commit": commits.get(c["model"], "57f2d97ea956bd825909f6485ca72feae2a4872d")} for c in cases]
    return each("pkusys/ElasticFlow/raw/{commit}/ElasticFlow/scheduler/throughputs_{gpu_type}/{model}.csv", of=cases)


def _copter() -> tuple[Part, ...]:
    commits = {
        "2k": "5b988c956e5986388da871dfa02c410fa4bb46a2",
        "10k": "d9e6e1296d8a049b82a5d70c0340f6759fd94500",
        "40k": "1bd3ed942cd40b4fe005574929f6d0fa74080c21",
    }
    cases = [{"set": name, "commit": commit} for name, commit in commits.items()]
    return each(f"{_COPTER}/workloads/{{set}}jobs_24hrs_pai/workload-1.csv", of=cases)


def _pickled(models: Iterable[str], commit: str) -> tuple[Part, ...]:
    """Profiles of COpter's jobs."""
    return each(f"{_COPTER}/jobs/profiles/{{model}}.pkl", of=grid("model", models, "commit", [commit]))


def _shockwave() -> tuple[Part, ...]:
    """A trace of Shockwave's artifact, and its simulations under seven policies."""
    root = "uw-mad-dash/shockwave/raw/e07dd205c52afe9981a4f092051c1d0f844ebf3d/scheduler"
    trace = "120_0.2_5_100_40_25_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic"
    runs = (
        "max_min_fairness finish_time_fairness min_total_duration max_sum_throughput_perf allox shockwave gandiva_fair"
    )
    pickles = [f"{root}/reproduce/pickles/tacc_32gpus/{run}_{trace}_simulation.pickle" for run in runs.split()]
    return each(f"{root}/traces/reproduce/{trace}.trace", *pickles)


_SHAPES = [f"synthetic_{shape}_{length}" for shape in ("linear", "mixed", "sublinear") for length in ("long", "short")]
#: File below the folder -> how it is made. What it must hold stands in tables.csv.
RECIPES: dict[str, Recipe] = {
    "reference/pollux_workloads.parquet": Recipe(
        as_.rows, each(f"{_ADAPTDL}/workloads/workload-{{workload}}.csv", of=[{"workload": i} for i in range(1, 5)])
    ),
    "reference/pollux_artifact_jct.parquet": Recipe(
        as_.summary,
        each(
            f"{_ADAPTDL}/results-jobload/{{policy}}-1.0/summary.json",
            of=[{"policy": policy} for policy in ("optimus", "pollux", "tiresias")],
        ),
    ),
    "reference/sia_workloads.parquet": Recipe(as_.rows, _sia()),
    "reference/copter_workloads.parquet": Recipe(as_.rows, _copter()),
    "reference/titan_workloads.parquet": Recipe(
        as_.zipped, each(f"{_TITAN}/trace/main.zip", of=grid("load", (1.0, 1.5), "fm", FMS))
    ),
    "reference/titan_artifact_jct.parquet": Recipe(as_.fairness, _titan_runs()),
    "reference/chronus_philly_slo.parquet": Recipe(
        as_.rows,
        each(
            f"{_CHRONUS}/e79fa4ed8cbce46acdc19754f13c5c3d90f019f0/code/data/exp/trace_job_Philly_{{set}}.csv",
            of=[{"set": name} for name in ("SLO", "MIX1", "MIX2")],
        ),
    ),
    "traces/philly_pollux.parquet": Recipe(
        as_.philly, each(f"{_ADAPTDL}/traces/philly.csv", of=[dict.fromkeys(("user", "status", "name"))])
    ),
    "traces/helios_venus_gpu.parquet": Recipe(
        as_.venus, each(f"{_CONVERTED}/helios_trace.csv", f"{_SLICE}/helios_venus_2vc_sept.csv", of=[{"name": None}])
    ),
    "traces/pai2020_sample_8pct.parquet": Recipe(
        as_.pai, each(f"{_CONVERTED}/alibaba_trace_sub.csv", of=[{"status": "Terminated", "user": None, "vc": None}])
    ),
    "traces/inventory/acme_cluster_summary.csv": Recipe(
        as_.rows, each("InternLM/AcmeTrace/raw/6d6ac9cd15f3b01151ac6ba00ecddd9156f0dc73/data/cluster_summary.csv")
    ),
    "traces/inventory/helios_cluster_summary.csv": Recipe(
        as_.rows,
        each(
            "S-Lab-System-Group/HeliosArtifact/raw/6345d9ff28350018656f307c4aba5f8acebd91a6/analysis/"
            "1_compare with Philly trace/helios_cluster_summary.csv"
        ),
    ),
    "traces/inventory/helios_venus_vc_gpus_daily.csv": Recipe(
        as_.rows,
        each(
            "S-Lab-System-Group/HeliosData/raw/106713b0d0fc761c70073b4af018681656b60f48/data/Venus/"
            "cluster_gpu_number.csv"
        ),
    ),
    "profiles/goodput.parquet": Recipe(
        as_.goodputs,
        _pickled((m for m in VALIDATED if m != "gpt_pmp"), "d1683bc6699d17a9ff28254b1a3a826c9d1ae967"),
    ),
    "profiles/synthetic.parquet": Recipe(as_.scaling, _pickled(_SHAPES, "2e9ad514242e6b6b4294c8fed520621b50f2dacc")),
    "profiles/step_time.parquet": Recipe(as_.steps, _step_times()),
    "profiles/validation.parquet": Recipe(
        as_.rows,
        each(
            f"{_SIA}/traces/{{model}}/validation-{{batch_size}}.csv",
            of=[{"model": model, "batch_size": size} for model, sizes in VALIDATED.items() for size in sizes],
        ),
    ),
    "profiles/finetune_curves.parquet": Recipe(as_.tuned, each(f"{_CURVES}/hpo_task_info.npy")),
    "profiles/transfer_temporal.parquet": Recipe(as_.after, each(f"{_CURVES}/transfer_task_info.npy")),
    "profiles/transfer_spatial.parquet": Recipe(as_.together, each(f"{_CURVES}/multi_task_info.npy")),
    "profiles/fm_placements.parquet": _measured("placements"),
    "profiles/fm_scalability.parquet": _measured("scalability"),
    "profiles/fm_memory.parquet": _measured("memory"),
    "profiles/fm_context_switch.parquet": _measured("context_switch"),
    "profiles/fm_sharing.parquet": _measured("sharing", ("roberta-base", "vit"), ("V100",)),
    "profiles/elasticflow_speed.parquet": Recipe(as_.wide, _elastic()),
    "profiles/gavel_speed.parquet": Recipe(
        as_.packed,
        each(
            "stanford-futuredata/gavel/raw/4605a9cb122a6cfb0964ebfa2c6b29c1b578adbd/scheduler/"
            "oracle_throughputs_v2.json"
        ),
    ),
    "inputs/shockwave/tacc32.parquet": Recipe(as_.rounds_of_gavel, _shockwave()),
    "profiles/placement_slowdown.csv": Recipe(
        as_.slowdown, each(f"{_CHRONUS}/677eb83ea4e4760d12577e227429403eb0ed32ab/code/data/model_info.json")
    ),
}

#: File below the folder -> why it has no public source.
NOT_PUBLIC = {
    "reference/chronus_artifact_asrun.parquet": "made by running ChronusArtifact's scheduler, HiGHS in Gurobi's place",
    "traces/inventory/pai2020_machines_grouped.csv": "counted from PAI's table of machines",
    "traces/stats.json": "computed from the three traces",
    "inputs/": "small logs and right answers, made for the tests that read them, but for shockwave/",
}
