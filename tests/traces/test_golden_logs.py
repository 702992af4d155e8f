"""Golden answers of the readers: every format with odd values in every field, options, reports, refusals."""

import copy
import json
import random
import warnings

import polars as pl
import pytest
from damage import damaged
from golden_answers import golden, refusal
from test_fuzz_files import FILES as TABLES
from test_fuzz_files import OPTIONS as TABLE_OPTIONS
from test_fuzz_files import PAI, entry
from test_intake_damaged import BATSIM, FILES, OPTIONS, job, pod

import gpuschedlab as lab
from gpuschedlab.traces import read, write_csv, write_parquet, write_swf
from gpuschedlab.traces.intake.read import taken_of

LOGS = {
    "slurm": "JobID|User|Account|Partition|Submit|Eligible|Start|End|Elapsed|Suspended|Timelimit|State|AllocTRES|ReqTRES|NNodes|ExitCode"
    "\n%d|u|acc|q|2025-03-03T08:00:00|2025-03-03T08:00:05|2025-03-03T08:10:00|2025-03-03T08:40:00|00:30:00|00:00:00|1-00:00:00|COMPLETED"
    "|cpu=4,gres/gpu:a100=2,node=1|cpu=4,gres/gpu=2|1|0:0",
    "openb": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    "\np%d,1000,99,1,500,V100|T4,LS,Running,7,907,17",
    "spot": "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n%d,7,A10,8,1,2,60,3600,HP",
    "acme": "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time"
    "\nj%d,u,1,8,9,Other,FAILED,2025-03-03T08:00:00+08:00,2025-03-03T08:01:00+08:00,2025-03-03T08:03:00+08:00,120,60,960",
    "supercloud": "id_job,id_user,partition,state,timelimit,time_submit,time_start,time_end,tres_alloc"
    '\n%d,7,normal,3,60,1614556800,1614556830,1614560430,"1=20,1002=1"',
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
    "\n%d,u,v,4,64,2,FAILED,2020-06-09 09:59:00,2020-06-09 10:00:00,2020-06-09 10:10:00,600,60",
    "itp": "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n%d,50,40285,bert,9000,64,4,3890",
    "workload": "name,time,application,num_replicas,batch_size\nn-%d,50,ncf,1,32768",
    "chronus": "job_id,user,num_gpu,submit_time,duration,expect_time_list,expect_value_list,job_type\n%d,vc_1,4,10,60,90-99,10-8,soft",
    "swf": "%d 10 5 60 4 -1 -1 8 7200 -1 1 3 2 9 1 -1 -1 -1",
    "gavel": "A3C\tpython3 main.py\t-x\t1\t2000\t%d.0\t1",
    "csv": "id,submitted,started,ended,gpus,runtime,limit,state,user,team,model,node"
    "\n%d,2025-03-03 08:00:00,2025-03-03 08:01:00,2025-03-03 08:11:00,2,600,3600,OK,u,t,bert,n1",
}
"""A head, and a row with the number of the job, of each format that is a table."""
ODD = [
    "",
    "0",
    "-1",
    "1.5",
    "nan",
    "1e400",
    "x",
    "00:30:00",
    "2-03:04:05",
    "2025-03-03T09:00:00Z",
    "1614556900",
    "PENDING",
    "TIMEOUT",
]
ODD += [
    "CANCELLED by 3",
    "OUT_OF_MEMORY",
    "RUNNING",
    "NODE_FAIL",
    "gres/gpu:h100=3,gres/gpu:a100=1",
    "gres/gpu=4",
    "gres/gpu:1g.5gb=2",
]
ODD += [
    "UNLIMITED",
    "A100",
    "V100|G2",
    "16",
    "90-80",
    "4294967295",
    "Unknown",
    "None",
    "best",
    "strict",
    "G1",
    "BE",
    "16M",
    "é",
]
MORE = TABLE_OPTIONS | OPTIONS


def outcome(call, *given, **named):
    """What a reader gives, or what it refuses."""
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = call(*given, **named)
    except lab.errors.LabError as error:
        return f"{type(error).__name__}: {error}"
    warned = [str(warning.message) for warning in said]
    if isinstance(found, tuple):
        return {"good": found[0], "bad": found[1].select("row", "problem"), "warned": warned}
    return found if isinstance(found, pl.DataFrame) else facts(found) | {"warned": warned}


def facts(found) -> dict:
    """An intake, without sizes of files."""
    report = {k: v for k, v in found.report.summary().items() if k not in ("bytes", "file")}
    return {
        "trace": found.trace,
        "cluster": found.cluster and str(found.cluster),
        "report": report,
        "line": found.report.line(),
    }


def split_of(name: str, text: str) -> list[str]:
    sign = {"slurm": "|", "swf": " ", "gavel": "\t"}.get(name, ",")
    return text.replace('"1=20,1002=1"', "1002=1").split(sign)


def odd_rows(name: str) -> str:
    """Rows of a format, each with another odd value in one field; every other row is sound."""
    *head, row = LOGS[name].split("\n")
    sign = {"slurm": "|", "swf": " ", "gavel": "\t"}.get(name, ",")
    fields = split_of(name, row)
    rows = [*head]
    number = 1
    for at in range(len(fields)):
        for value in ODD:
            changed = [value if i == at and value != field else field for i, field in enumerate(fields)]
            changed = [(v or "-1").replace(" ", "_") if name == "swf" else v for v in changed]
            changed = changed if sign != "|" else [v.replace("|", "/") for v in changed]
            text = sign.join(changed)
            rows.append(text.replace("%d", str(number)))
            number += 1
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("name", LOGS)
@golden
def test_odd_values_in_every_field(tmp_path, name):
    file = tmp_path / {"helios": "cluster_log.csv", "slurm": "log.txt", "swf": "log.swf"}.get(name, "log.csv")
    file.write_text(odd_rows(name))
    options = MORE.get(name, {})
    whole = ["bad", "shards", "no_duration", "durations"]
    return {
        "kept": outcome(read, name, file, on_bad="drop", **options),
        "raised": outcome(read, name, file, **options),
        "accepted": outcome(lab.intake, (name, file), accept=whole, **options),
    }


def leaves(value, path=()):
    """Paths of the values within parsed JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from leaves(item, (*path, key))


def changed(record: dict, path: tuple, value):
    made = copy.deepcopy(record)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return made


def unique(name: str, record: dict, i: int) -> dict:
    made = copy.deepcopy(record)
    if name == "k8s" and isinstance(made.get("metadata"), dict):
        made["metadata"]["name"] = f"p{i}"
    elif name == "slurm":
        made["job_id"] = i
    elif name == "philly":
        made["jobid"] = f"a{i}"
    elif name == "batsim":
        made["id"] = f"j{i}"
    return made


JSON = [None, -1, 0, 2.5, "", "x", "4", [], {}, True, "2025-03-03T09:00:00Z", 1740989000, "Failed", "500m", 1e300]
RECORDS = {"k8s": pod(0), "slurm": job(0), "philly": entry(0), "batsim": BATSIM["jobs"][0] | {"walltime": 99}}
WRAPPED = {
    "k8s": lambda rows: {"apiVersion": "v1", "kind": "List", "items": rows},
    "slurm": lambda rows: {"jobs": rows, "meta": {}},
    "philly": lambda rows: rows,
    "batsim": lambda rows: BATSIM | {"jobs": rows},
}


@pytest.mark.parametrize("name", RECORDS)
@golden
def test_odd_values_in_json(tmp_path, name):
    record = RECORDS[name]
    file = tmp_path / {"philly": "cluster_job_log"}.get(name, "log.json")
    rows = [
        changed(unique(name, record, i), path, v)
        for i, (path, v) in enumerate((p, v) for p in leaves(record) for v in JSON)
    ]
    file.write_text(json.dumps(WRAPPED[name](rows)))
    first = outcome(read, name, file, on_bad="drop")
    file.write_text(json.dumps(WRAPPED[name]([unique(name, record, i) for i in range(9)])))
    return {"kept": first, "sound": outcome(lab.intake, (name, file))}


@pytest.mark.parametrize("name", sorted(FILES | TABLES))
@golden
def test_damaged_files(tmp_path, name):
    rng = random.Random(len(name))
    found = {}
    format = name.split()[0]
    file, raw = TABLES[name] if name in TABLES else (f"log.{format}", FILES[name].encode())
    path = tmp_path / file
    for i in range(12):
        made = damaged(raw, rng)
        if not made.startswith(b"\x1f\x8b"):
            path.write_bytes(made)
            text = outcome(read, format, path, on_bad="drop", **MORE.get(name, {}))
            if isinstance(text, dict):
                text = f"{text['good'].height} good, {text['bad'].height} bad: {(text['bad']['problem'].to_list() or [''])[0]}"
            found[str(i)] = text.partition("found nothing readable")[0]
    return found


@golden
def test_tables_of_pai(tmp_path):
    odd = {"pai_job_table.csv": 5, "pai_task_table.csv": 9, "pai_group_tag_table.csv": 4}
    found = {}
    for file, fields in odd.items():
        for name, raw in PAI.items():
            (tmp_path / name).write_bytes(raw)
        rows = PAI[file].decode().splitlines()
        values = ["", "0", "-5", "nan", "Failed", "Running", "V100", "900.5"]
        for i in range(len(rows)):
            parts = rows[i].split(",")
            parts[1 + i % fields] = values[i * 3 % len(values)]
            rows[i] = ",".join(parts)
        (tmp_path / file).write_text("\n".join(rows) + "\n")
        for instances in (False, True):
            found[f"{file} {instances}"] = outcome(read, "pai", tmp_path, on_bad="drop", instances=instances)
    return found


CSV = """No,Day,began,finished,n,m,Took,Limit,state,who,kind of card,Grp
a,03.03.2025 08:00,03.03.2025 08:10,03.03.2025 09:40,2,4,90,1d,Evicted,u1,v100,g
b,03.03.2025 08:30,03.03.2025 08:30,03.03.2025 08:40,1,1,"1,800",UNLIMITED,done,u2,a100,g
c,04.03.2025 02:30,04.03.2025 02:31,,3,2,,02:30,Running,u1,,h
d,04.03.2025 02:40,,,1,8,0,10:00,Pending,,t4,h
e,30.03.2025 02:30,30.03.2025 03:31,30.03.2025 04:00,1,0,29,600,weird,u3,v100,
"""
COLUMNS = {"job_id": "No", "submit": "Day", "gpus": "n * m", "duration": "Took", "requested_time": "Limit"}
MEANINGS = {"Evicted": "killed", "weird": "failed"}
BASE = {
    "columns": COLUMNS,
    "units": {"duration": "min"},
    "states": MEANINGS,
    "dates": "%d.%m.%Y %H:%M",
    "accept": ["bad", "no_duration", "durations"],
}
VARIED = {
    "as it is": {},
    "in a zone": {"zone": "Europe/Berlin"},
    "drop what runs": {"running": "drop"},
    "starts": {"columns": COLUMNS | {"start": "began", "end": "finished"}},
    "ends only": {
        "columns": {k: v for k, v in COLUMNS.items() if k != "duration"} | {"start": "began", "end": "finished"}
    },
    "snapshot": {"snapshot": "2025-04-01 00:00", "columns": COLUMNS | {"start": "began", "end": "finished"}},
    "since": {"since": "1 h"},
    "since a date": {"since": "2025-03-04 00:00"},
    "spans": {"spans": "HH:MM"},
    "spans in minutes": {"spans": "MM:SS"},
    "decimal": {"decimal": ","},
    "hours": {"units": "h"},
    "more columns": {"columns": COLUMNS | {"user": "who", "gpu_types": "col('kind of card')", "vc": "lower(Grp)"}},
    "a cluster": {"cluster": {"nodes": "2x8:a100+1x4:v100"}},
    "conditions": {"columns": COLUMNS | {"gpus": "max(n, m) if who == 'u1' else round(n / 2 + 0.6) % 3 + 1"}},
    "no such option": {"colour": "red"},
    "no such unit": {"units": {"duration": "y"}},
    "no such state": {"states": {"Evicted": "gone"}},
    "no such zone": {"zone": "Mars/Base"},
    "no such choice": {"running": "perhaps"},
    "wrong kind": {"dates": 3},
    "no number": {"processors": "many"},
}


@golden
def test_options_of_a_log(tmp_path):
    file = tmp_path / "own.csv"
    file.write_text(CSV)
    return {name: outcome(lab.intake, ("csv", file), **BASE | more) for name, more in VARIED.items()}


@golden
def test_options_of_managers(tmp_path):
    found = {}
    for name, options in {
        "slurm": [
            {"attempts": "each"},
            {"gres": "total"},
            {"shards": 4},
            {"zone": "Europe/Stockholm"},
            {"running": "drop"},
        ],
        "swf": [{"processors": 3}, {"zone": "UTC"}, {"since": "5 s"}],
        "gavel": [{"speeds": {"A3C": 3.0}, "gpu_type": "p100"}],
        "supercloud": [{"tres": {"1002": "volta"}}, {"tres": {"7": "x"}}],
        "openb": [{"running": "drop"}],
        "chronus": [{"workload": "1"}],
        "workload": [{"durations": {"ncf": 7.0}}, {"durations": {"bert": 7.0}}],
    }.items():
        sound = [
            LOGS[name].split("\n")[-1].replace("%d", str(i)).replace("08:00:00", f"08:00:{i:02}") for i in range(9)
        ]
        file = tmp_path / f"log-{name}.{'swf' if name == 'swf' else 'csv'}"
        file.write_text("\n".join([*LOGS[name].split("\n")[:-1], *sound]) + "\n")
        for more in [{}, *options]:
            found[f"{name} {more}"] = outcome(lab.intake, (name, file), **MORE.get(name, {}) | more)
    return found


@golden
def test_what_is_written_is_read_again(tmp_path):
    trace = lab.generate("venus", days=0.2, jobs=30, rng=4)
    write_csv(trace, tmp_path / "a.csv")
    write_swf(trace, tmp_path / "a.swf")
    write_parquet(trace, tmp_path / "a.parquet")
    texts = {name: (tmp_path / f"a.{name}").read_text().splitlines()[:30] for name in ("csv", "swf")}
    words = [f"csv:{tmp_path}/a.csv", f"swf:{tmp_path}/a.swf", f"{tmp_path}/a.parquet"]
    found = {word.rpartition(".")[2]: facts(taken_of(word)[0]) for word in words}
    more = taken_of(words[0], ["since=1 h", "columns.gpus=gpus * 2"])[0]
    refused = [refusal(taken_of, word) for word in ("nowhere", "nobody:x", "csv:nowhere.csv")]
    return texts | found | {"more": facts(more), "refused": refused}
