"""HTCondor's jobs as `condor_history -json` prints them."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gpuschedlab.errors import TraceError
from gpuschedlab.traces.logs.log_files import json_of, number, text
from gpuschedlab.traces.logs.options import Options
from gpuschedlab.traces.logs.raw import Raw

#: Our columns <- attributes of a job's ClassAd: texts, and numbers.
TEXTS = {"user": "Owner", "account": "AcctGroup", "name": "JobBatchName", "state": "JobStatus"}
NUMBERS = {"submit": "QDate", "gpus": "RequestGPUs", "suspended": "CumulativeSuspensionTime"}
NUMBERS |= {"requested_time": "AllowedJobDuration", "priority": "JobPrio"}
STATUS = dict(enumerate(["pending", "running", "killed", "completed", "held", "running", "suspended"], 1))
SCHEMA = dict.fromkeys(("job_id", "nodelist", *TEXTS), pl.String)
SCHEMA |= dict.fromkeys((*NUMBERS, "start", "end"), pl.Float64)


def recognises(head: str) -> bool:
    """Whether a file begins as a list of ClassAds."""
    keys = ("ClusterId", "GlobalJobId", "QDate", "JobStatus")
    return head.lstrip().startswith("[") and any(f'"{key}"' in head for key in keys)


def read(files: Sequence[Path], options: Options) -> Raw:
    """Return a `Raw` of the jobs of the list: Unix seconds; the last of a job's runs, and as many GPUs as it requested."""
    # See HTCondor's manual, "Job ClassAd Attributes".
    expected = "the answer of condor_history -json"
    ads = [ad for condor_file in files for ad in json_of(condor_file, "condor", expected)]
    if wrong := next((i for i, ad in enumerate(ads, 1) if not isinstance(ad, dict)), None):
        raise TraceError(f"condor {files[0].name}, job {wrong}: found no object; expected {expected}.")
    log_rows = pl.DataFrame([_job(ad) for ad in ads], schema=SCHEMA, orient="row")
    missing = ["runs before the last are not in condor_history"]
    return Raw(log_rows, {ad_column: ad_column for ad_column in SCHEMA}, cpu=False, first_line=1, missing=missing)


def _job(ad: dict) -> dict:
    """Return one job as a dict; one that ended by itself and said so by its exit code has failed."""
    job = {ours: text(ad.get(ad_attribute)) for ours, ad_attribute in TEXTS.items()}
    job |= {ours: number(ad.get(ad_attribute)) for ours, ad_attribute in NUMBERS.items()}
    status = number(ad.get("JobStatus"))
    exit_code = number(ad.get("ExitCode")) or 0
    wrong = status == 4 and (ad.get("ExitBySignal") is True or exit_code != 0)
    start = number(ad.get("JobCurrentStartDate")) or number(ad.get("JobStartDate")) or None
    end = number(ad.get("CompletionDate")) or (number(ad.get("EnteredCurrentStatus")) if status in (3, 5) else None)
    host = text(ad.get("LastRemoteHost") or ad.get("RemoteHost"))
    cluster_id = text(ad.get("ClusterId"))
    process_id = text(ad.get("ProcId")) or 0
    state = STATUS.get(status, job["state"])
    if wrong:
        state = "failed"
    return job | {
        "job_id": f"{cluster_id}.{process_id}",
        "nodelist": host and host.rpartition("@")[2],
        "state": state,
        "start": start,
        "end": end if start else None,
    }
