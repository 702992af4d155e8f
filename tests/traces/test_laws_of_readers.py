"""Laws of readers: a row by hand in each format; a damaged row changes no other; expressions, options, parts and profiles by hand."""

import copy
import datetime
import json
import warnings

import polars as pl
import pytest
from test_fuzz_files import OPTIONS as TABLE_OPTIONS
from test_fuzz_files import entry
from test_intake_damaged import BATSIM, OPTIONS, job, pod

import gpuschedlab as lab
from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.traces import read, write_csv, write_parquet, write_swf
from gpuschedlab.traces.intake.read import taken_of
from gpuschedlab.traces.logs.options import NAMES, options_in, options_of

MORE = TABLE_OPTIONS | OPTIONS
NAMED = {"helios": "cluster_log.csv", "slurm": "log.txt", "swf": "log.swf"}
SIGNS = {"slurm": "|", "swf": " ", "gavel": "\t"}
"""Name of the file and separator of a format, other than log.csv and a comma."""

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

EIGHT = datetime.datetime(2025, 3, 3, 8)
BY_HAND = {
    "slurm": {"gpus": 2, "duration": 1800, "user": "u", "vc": "q", "status": "completed", "clock": EIGHT, "account": "acc",
              "partitions": ["q"], "gpu_types": ["a100"], "requested_time": 86400, "eligible": 5, "started": 600,
              "state": "COMPLETED", "attempts": 1},
    "openb": {"gpus": 0.5, "duration": 890, "censored": True, "qos": "LS", "gpu_types": ["V100", "T4"], "started": 10,
              "state": "RUNNING"},
    "spot": {"gpus": 2, "duration": 3600, "vc": "7", "preemptible": False, "gpu_types": ["A10"]},
    "acme": {"gpus": 8, "duration": 120, "user": "u", "status": "failed", "clock": EIGHT, "started": 60, "state": "FAILED",
             "kind_of_work": "Other", "machines": 1},
    "supercloud": {"gpus": 1, "duration": 3600, "user": "7", "vc": "normal", "status": "completed",
                   "clock": datetime.datetime(2021, 3, 1), "gpu_types": ["volta"], "requested_time": 3600, "started": 30,
                   "state": "COMPLETED", "attempts": 1},
    "helios": {"gpus": 4, "duration": 600, "user": "u", "vc": "v", "status": "failed",
               "clock": datetime.datetime(2020, 6, 9, 9, 59), "machines": 2},
    "itp": {"gpus": 4, "duration": 3890, "model": "bert", "deadline": 8950, "target": 40285, "batch_size": 64},
    "workload": {"gpus": 1, "duration": 60, "model": "ncf", "batch_size": 32768},
    "chronus": {"gpus": 4, "duration": 3600, "user": "vc_1", "deadline": 5400, "reward": 100, "deadlines": [5400, 5940],
                "rewards": [100, 80], "kind": "soft"},
    "swf": {"gpus": 8, "duration": 60, "user": "3", "vc": "1", "name": "9", "status": "completed", "account": "2",
            "requested_time": 7200, "started": 5, "state": "1"},
    "gavel": {"gpus": 1, "duration": 200, "model": "A3C", "target": 2000},
    "csv": {"gpus": 2, "duration": 600, "user": "u", "model": "bert", "status": "completed", "clock": EIGHT, "limit": 3600,
            "started": 60, "state": "OK"},
    "k8s": {"gpus": 2, "duration": 1800, "vc": "n", "name": "p0", "status": "completed", "clock": EIGHT, "nodes": 1,
            "started": 60, "state": "Succeeded", "attempts": 1},
    "slurm json": {"gpus": 2, "duration": 600, "user": "u", "vc": "q", "status": "completed", "clock": EIGHT,
                   "partitions": ["q"], "requested_time": 3600, "started": 100, "state": "COMPLETED", "attempts": 1},
    "philly": {"gpus": 2, "duration": 1080, "user": "u", "vc": "v", "status": "completed", "censored": False,
               "clock": datetime.datetime(2020, 6, 9, 9), "started": 60, "attempts": 2, "machines": 1},
    "batsim": {"gpus": 2, "duration": 10, "name": "d", "requested_time": 99},
}  # fmt: skip
"""All columns that each format's row has, but for names and submissions: nothing else is assumed of a log."""

RECORDS = {"k8s": pod(0), "slurm json": job(0), "philly": entry(0), "batsim": BATSIM["jobs"][0] | {"walltime": 99}}
"""A record of each format that is JSON."""

ODD = [
    "",
    "0",
    "-1",
    "nan",
    "1e400",
    "x",
    "00:30:00",
    "2-03:04:05",
    "2025-03-03T09:00:00Z",
    "PENDING",
    "CANCELLED by 3",
]
ODD += ["gres/gpu:h100=3,gres/gpu:a100=1", "gres/gpu=4", "UNLIMITED", "90-80", "4294967295", "Unknown", "None", "é"]
ODD_JSON = [None, -1, 2.5, "", "x", "4", [], {}, True, "2025-03-03T09:00:00Z", "Failed", "500m", 1e300]
"""Values that stand in the place of each field."""


def quietly(call, *given, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*given, **named)


def rows_of(name: str, numbers) -> list[str]:
    return [LOGS[name].split("\n")[-1].replace("%d", str(number)) for number in numbers]


def written(folder, name: str, rows: list[str]):
    file = folder / NAMED.get(name, "log.csv")
    file.write_text("\n".join([*LOGS[name].split("\n")[:-1], *rows]) + "\n")
    return file


def records_of(name: str, records: list[dict]) -> list[dict] | dict:
    """A whole document of some records."""
    wholes = {
        "k8s": {"apiVersion": "v1", "kind": "List", "items": records},
        "slurm json": {"jobs": records, "meta": {}},
        "batsim": BATSIM | {"jobs": records},
    }
    return wholes.get(name, records)


def numbered(name: str, record: dict, number: int) -> dict:
    """A record with the name of another job."""
    made = copy.deepcopy(record)
    if name == "k8s" and isinstance(made.get("metadata"), dict):
        made["metadata"]["name"] = f"p{number}"
    keys = {"slurm json": ("job_id", number), "philly": ("jobid", f"a{number}"), "batsim": ("id", f"j{number}")}
    if name in keys:
        made[keys[name][0]] = keys[name][1]
    return made


def written_json(folder, name: str, records: list[dict]):
    file = folder / ("cluster_job_log" if name == "philly" else "log.json")
    file.write_text(json.dumps(records_of(name, records)))
    return file


def frame_of(name: str, file) -> pl.DataFrame:
    """Sound jobs of a file."""
    return quietly(read, name.split()[0], file, on_bad="drop", **MORE.get(name, {}))[0]


def frame_or_refusal(name: str, file) -> pl.DataFrame | str:
    """Sound jobs of a file, or the words by which the whole file is refused."""
    try:
        return frame_of(name, file)
    except LabError as error:
        return str(error)


@pytest.mark.parametrize("name", BY_HAND)
def test_a_row_has_the_values_that_it_says_and_no_other(name, tmp_path):
    if name in LOGS:
        frame = frame_of(name, written(tmp_path, name, rows_of(name, [1])))
    else:
        frame = frame_of(name, written_json(tmp_path, name, [numbered(name, RECORDS[name], 0)]))
    (row,) = frame.rows(named=True)
    assert {key: value for key, value in row.items() if key not in ("job_id", "submit")} == BY_HAND[name]


INSTANTS = ("submit", "started", "eligible")
"""Columns that count from the first submission of a log."""


def alike(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether the jobs of a frame are in another, apart from the instant from which its times count."""
    shared = other.join(one.select("job_id"), on="job_id", how="semi")
    if shared.height != one.height:
        return False
    first = shared["submit"].min() - one["submit"].min()
    shared = shared.with_columns(pl.col(name) - first for name in INSTANTS if name in shared.columns)
    columns = [name for name in one.columns if name in shared.columns]
    return shared.select(columns).equals(one.select(columns))


@pytest.mark.parametrize("name", [name for name in LOGS if name != "gavel"])
def test_an_odd_value_changes_no_other_row(name, tmp_path):
    """Sound rows are read alike, whichever field of the rows between them has an odd value."""
    sign = SIGNS.get(name, ",")
    row = LOGS[name].split("\n")[-1].replace('"1=20,1002=1"', "1002=1")
    fields = row.split(sign)
    sound = rows_of(name, range(1, 6))
    alone = frame_of(name, written(tmp_path, name, sound))
    assert alone.height == 5
    for at in range(1, len(fields)):
        odd = []
        for number, value in enumerate(ODD):
            changed = (value or "-1").replace(" ", "_") if name == "swf" else value.replace("|", "/")
            parts = [changed if i == at else field for i, field in enumerate(fields)]
            odd.append(sign.join(parts).replace("%d", str(number + 100)))
        mixed = [*sound[:2], *odd, *sound[2:]]
        found = frame_or_refusal(name, written(tmp_path, name, mixed))
        assert isinstance(found, str) or alike(alone, found), f"field {at}"


def leaves(value, path=()):
    """Paths of the values within parsed JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from leaves(item, (*path, key))


def with_value(record: dict, path: tuple, value) -> dict:
    made = copy.deepcopy(record)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return made


@pytest.mark.parametrize("name", RECORDS)
def test_an_odd_value_changes_no_other_record(name, tmp_path):
    sound = [numbered(name, RECORDS[name], number) for number in range(5)]
    alone = frame_of(name, written_json(tmp_path, name, sound))
    assert alone.height == 5
    for path in leaves(RECORDS[name]):
        odd = [with_value(numbered(name, RECORDS[name], i + 100), path, value) for i, value in enumerate(ODD_JSON)]
        found = frame_or_refusal(name, written_json(tmp_path, name, [*sound[:2], *odd, *sound[2:]]))
        assert isinstance(found, str) or alike(alone, found), path


# --- expressions and options

ROWS = """id,submit,a,b,gres,none,odd name,took,state
x,0,2,3,gpu:H100:8,,5,0:01:04,done
y,10,4,1.5,gpu:a100:2,7,1,1-00:00:01,failed
z,20,1,9,,,2,90,done
"""
KEEP = {"accept": ["bad", "no_duration", "durations"], "running": "keep"}
VALUES = {
    "a": [2, 4, 1],
    "a + b": [5, 5.5, 10],
    "a * b": [6, 6, 9],
    "b / a": [1.5, 0.375, 9],
    "b // a + 1": [2, 1, 10],
    "b % a + 1": [2, 2.5, 1],
    "-a + 9": [7, 5, 8],
    "max(a, b, 3)": [3, 4, 9],
    "min(a, b)": [2, 1.5, 1],
    "round(b / a) + 1": [3, 1, 10],
    "first(none, b)": [3, 7, 9],
    "first(none, 4)": [4, 7, 4],
    "first(number(part(gres, ':', 2)), 1)": [8, 2, 1],
    "first(number(match(gres, ':([0-9]+)$')), 1)": [8, 2, 1],
    "first(number(match(gres, '[0-9]+$')), 1)": [8, 2, 1],
    "col('odd name')": [5, 1, 2],
    "4 if lower(match(gres, 'gpu:([a-zA-Z0-9]+)')) == 'h100' else 1": [4, 1, 1],
    "2 if a > b else 3": [3, 2, 3],
    "2 if a >= 2 else 3": [2, 2, 3],
    "2 if a < 2 else 3": [3, 3, 2],
    "2 if a <= 2 else 3": [2, 3, 2],
    "2 if a == 2 else 3": [2, 3, 3],
    "2 if a != 2 else 3": [3, 2, 2],
    "seconds(took)": [64, 86401, 90],
    "seconds('0:01:04') + a": [66, 68, 65],
    "(" * 40 + "a" + ")" * 40: [2, 4, 1],
}
"""Expressions over the columns above, and their values in the three rows."""


@pytest.mark.parametrize("text", VALUES)
def test_an_expression_by_hand(tmp_path, text):
    (tmp_path / "jobs.csv").write_text(ROWS)
    found = lab.intake(("csv", tmp_path / "jobs.csv"), columns={"gpus": "1", "duration": text}, **KEEP)
    assert found.trace["duration"].to_list() == VALUES[text]


def test_expressions_of_texts_by_hand(tmp_path):
    (tmp_path / "jobs.csv").write_text(ROWS)
    texts = {
        "vc": "lower(part(gres, ':', 1))",
        "user": "first(none, state)",
        "duration": "seconds(took) * a",
        "name": "'all' if a > 1 else state",
    }
    trace = lab.intake(("csv", tmp_path / "jobs.csv"), columns={"gpus": "a"} | texts, **KEEP).trace
    assert trace["vc"].to_list() == ["h100", "a100", None]
    assert trace["user"].to_list() == ["done", "7", "done"]
    assert trace["name"].to_list() == ["all", "all", "done"]
    assert trace["duration"].to_list() == [128, 345604, 90]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 +", "invalid syntax"),
        ("'", "unterminated"),
        ("fly(a)", "the call of fly"),
        ("a and b", "BoolOp"),
        ("None", "None"),
        ("nobody", "the name nobody; expected one of id, submit, a, b"),
        ("col(a)", "where a column's name stands"),
        ("part(gres, a, 1)", "where a separator stands"),
        ("match(gres, '(')", "the pattern"),
        ("round(a, b)", r"round\(\) with 2 values"),
        ("max()", r"max\(\) with 0 values"),
        ("[a]", "List"),
        ("a if a else 2", "as a condition"),
        ("2 ** 3", "BinOp"),
        ("1e300", "Constant"),
        ("-" * 50 + "a", "nested too deeply"),
        ("x" * 1200, "xxx"),
    ],
)
def test_an_expression_that_is_none_is_refused(tmp_path, text, words):
    (tmp_path / "jobs.csv").write_text(ROWS)
    with pytest.raises(TraceError, match=words):
        lab.intake(("csv", tmp_path / "jobs.csv"), columns={"gpus": text, "duration": "took"}, **KEEP)


ANY = (
    "",
    "x",
    "HH:MM",
    ",",
    "each",
    "instances",
    "0",
    "1.5",
    "-1",
    "inf",
    "true",
    "keep",
    "s",
    "us",
    "node",
    "a, b",
    0,
    1,
    2.5,
    -1.0,
    float("inf"),
    True,
)
ANY += (["x"], [1], ["x", 2], {"x": "y"}, {"x": "done"}, {"x": 1}, {"submit": "ms"}, {"FINE": "killed"}, {1: "y"})


def option_or_refusal(name: str, value):
    """An option as it is read, or the error by which it is refused."""
    try:
        return getattr(options_of({name: value}, "log"), name)
    except TraceError as error:
        return error


@pytest.mark.parametrize("name", NAMES)
def test_an_option_takes_a_value_or_names_it(name):
    """Each is read to something that is read to itself, or refused with the option's name; lists and tuples are alike."""
    taken = 0
    for value in ANY:
        found = option_or_refusal(name, value)
        if isinstance(found, TraceError):
            assert name.rstrip("s") in str(found)
            continue
        taken += 1
        assert found is None or option_or_refusal(name, found) == found
        if isinstance(value, list):
            assert option_or_refusal(name, tuple(value)) == found
    assert taken > 0, "an option that takes nothing"


def test_options_as_words_by_hand():
    assert options_in(["zone=UTC", "columns.gpus=g"]) == {"zone": "UTC", "columns": {"gpus": "g"}}
    assert options_in(["a.b=1", "a.c=2"]) == {"a": {"b": "1", "c": "2"}}
    for words in (["zone"], ["a=1", "a.b=2"]):
        with pytest.raises(LabError):
            options_in(words)
    with pytest.raises(TraceError, match="columns"):
        options_of({"colums": {}}, "log")


# --- whole files


def test_what_is_written_is_read_again(tmp_path):
    trace = lab.generate("venus", days=0.2, jobs=30, rng=4)
    write_csv(trace, tmp_path / "a.csv")
    write_swf(trace, tmp_path / "a.swf")
    write_parquet(trace, tmp_path / "a.parquet")
    for word in (f"csv:{tmp_path}/a.csv", f"{tmp_path}/a.parquet"):
        found = taken_of(word)[0].trace
        assert found.select("job_id", "gpus").equals(trace.select("job_id", "gpus"))
        assert (found["submit"] - found["submit"].min()).to_list() == pytest.approx(
            (trace["submit"] - trace["submit"].min()).to_list()
        )
        assert found["duration"].to_numpy() == pytest.approx(trace["duration"].to_numpy())
    swf = taken_of(f"swf:{tmp_path}/a.swf")[0].trace
    assert swf["gpus"].to_list() == [max(1.0, gpus) for gpus in trace["gpus"]]
    assert swf["duration"].to_numpy() == pytest.approx(trace["duration"].to_numpy(), abs=1)
    doubled = taken_of(f"csv:{tmp_path}/a.csv", ["columns.gpus=gpus * 2"])[0].trace
    assert doubled["gpus"].to_list() == [2 * gpus for gpus in trace["gpus"]]
    for word in ("nowhere", "nobody:x", "csv:nowhere.csv"):
        with pytest.raises(LabError):
            taken_of(word)


def test_a_spec_reads_as_its_options_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text(ROWS)
    (tmp_path / "two.csv").write_text(ROWS.replace("x,", "v,").replace("y,10", "w,40").replace("z,20", "u,50"))
    columns = '[columns]\njob_id = "id"\ngpus = "a"\nduration = "took"\n'
    for paths, jobs in (('"one.csv"', 3), ('["one.csv", "two.csv"]', 6), ('"*.csv"', 6)):
        (tmp_path / "log.toml").write_text(f'path = {paths}\naccept = ["bad", "durations"]\n{columns}')
        found = lab.intake("log.toml")
        assert found.trace.height == jobs
        assert found.trace["gpus"].to_list()[:1] == [2]
        more = lab.intake("log.toml", columns={"gpus": "a + 1"})
        assert more.trace["gpus"].to_list() == [gpus + 1 for gpus in found.trace["gpus"]]
    (tmp_path / "log.toml").write_text(
        f'path = "one.csv"\naccept = ["bad", "durations"]\n{columns}[cluster]\nnodes = "2x8:h100"\n'
    )
    assert str(lab.intake("log.toml").cluster) == str(lab.Cluster.parse("2x8:h100"))
    word = lab.intake("csv:one.csv:gpus=a,duration=took", accept=["bad", "durations"])
    assert word.trace["gpus"].to_list() == [2, 4, 1]
    wrong = {
        "none": f'path = "none.csv"\n{columns}',
        "path": columns,
        "4y": f'path = "one.csv"\n{columns}[cluster]\nnodes = "4y"\n',
    }
    for words, text in wrong.items():
        (tmp_path / "log.toml").write_text(text)
        with pytest.raises(LabError, match=words):
            lab.intake("log.toml")


PIECES = [
    ("1", "08:00:00", "08:00:00", "08:10:00", "00:10:00", "NODE_FAIL", 2),
    ("1", "08:10:30", "08:20:00", "08:30:00", "00:10:00", "REQUEUED", 2),
    ("1", "08:30:10", "08:40:00", "08:45:00", "00:05:00", "COMPLETED", 4),
    ("3+0", "08:03:00", "08:04:00", "08:05:00", "00:01:00", "COMPLETED", 1),
    ("3+1", "08:03:00", "08:04:00", "08:06:00", "00:02:00", "FAILED", 4),
    ("5", "08:06:00", "08:07:00", "08:08:00", "00:01:00", "COMPLETED", 1),
]
"""Attempts of job 1, two components of job 3, and a job of one piece."""


@pytest.mark.parametrize("attempts", ["merge", "each"])
def test_gpu_hours_of_parts_are_those_of_their_jobs(tmp_path, attempts):
    day = "2025-03-03T"
    head = "JobID|User|Submit|Start|End|Elapsed|State|AllocTRES|NNodes\n"
    lines = [
        f"{name}|u|{day}{submit}|{day}{start}|{day}{end}|{took}|{state}|gres/gpu={gpus}|1"
        for name, submit, start, end, took, state, gpus in PIECES
    ]
    file = tmp_path / "log.txt"
    file.write_text(head + "\n".join(lines) + "\n")
    found = quietly(lab.intake, file, attempts=attempts)
    components = 5 * 120  # of job 3: all its GPUs, until the last of them ends
    pieces = {
        "each": 2 * 600 + 2 * 600 + 4 * 300,
        "merge": 4 * (600 + 600 + 300),
    }  # of job 1; merged, with its last request
    seconds = pieces[attempts] + components + 1 * 60
    assert found.report.summary()["gpu_hours"] == pytest.approx(seconds / 3600)
    jobs = {job_id.partition("+")[0].partition("#")[0].split(".")[0] for job_id in found.trace["job_id"]}
    assert {"1", "5"} <= {name[:1] for name in jobs}
    if attempts == "merge":
        assert found.trace.filter(pl.col("job_id") == "1").height == 1
    else:
        assert found.trace.height > 3


def test_profiles_of_batsim_by_hand(tmp_path):
    """A delay of 10 s; three times a delay and a parallel part; a sequence of two; compute over the speed of a node."""
    profiles = {
        "d": {"type": "delay", "delay": 10},
        "p": {"type": "parallel", "cpu": [2e9, 6e9], "com": [0, 0, 0, 0]},
        "c": {"type": "composed", "repeat": 3, "seq": ["d", "p"]},
        "s": {"type": "SequenceProfile", "sequence": ["d", "d"]},
    }
    jobs = [{"id": f"j{name}", "subtime": i, "res": 2, "profile": name} for i, name in enumerate(profiles)]
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 16, "jobs": jobs, "profiles": profiles}))
    found = quietly(lab.intake, ("batsim", tmp_path / "w.json"), speed=1e9).trace
    assert dict(found.select("name", "duration").rows()) == {"d": 10, "p": 6, "c": 48, "s": 20}


def test_speeds_of_gavel_give_its_durations(tmp_path):
    rows = "A3C\tpython3 main.py\t-x\t1\t2000\t5.0\t1\nLM\tpython3 main.py\t-x\t1\t900\t9.0\t2\n"
    (tmp_path / "seven.trace").write_text(rows)
    found = lab.intake(("gavel", tmp_path / "seven.trace"), speeds={"A3C": 4.0, "LM": 2.0}).trace
    assert found["duration"].to_list() == [500, 450]
    (tmp_path / "speeds.csv").write_text(
        "model,gpu_type,gpus,steps,partner\nA3C,v100,1,4.0,\nA3C,k80,1,2.0,\nLM,v100,2,3.0,\nLM,v100,2,9.0,A3C\n"
    )
    table = str(tmp_path / "speeds.csv")
    assert lab.intake(("gavel", tmp_path / "seven.trace"), speeds=table).trace["duration"].to_list() == [500, 300]
    with pytest.raises(LabError, match="LM"):
        lab.intake(("gavel", tmp_path / "seven.trace"), speeds={"A3C": 4.0})


@pytest.mark.parametrize(
    ("text", "cluster"),
    [
        ("sn,cpu_milli,gpu,model\na,1,8,V100\nb,1,0,\nc,1,8,V100\nd,1,2,T4\ne,1,4,V100\n", "2x8:V100,1x2:T4,1x4:V100"),
        ("node_name,gpu_model,gpu_capacity_num\nx,A10,1\ny,A10,1\nz,,4\n", None),
    ],
)
def test_a_list_of_nodes_is_a_cluster(tmp_path, text, cluster):
    (tmp_path / "nodes.csv").write_text(text)
    made = lab.intake(("nodes", tmp_path / "nodes.csv")).cluster
    counts = {}
    for size, kind in zip(made.node_gpus, made.node_type, strict=True):
        counts[made.gpu_types[kind], size] = counts.get((made.gpu_types[kind], size), 0) + 1
    if cluster:
        assert counts == {("V100", 8): 2, ("T4", 2): 1, ("V100", 4): 1}
    else:
        assert counts["A10", 1] == 2


@pytest.mark.parametrize(
    "text", ["sn,gpu,model\na,0,V100\n", "sn,gpu,model\na,8,V100\nb,1.5,V100\n", "sn,cards,model\na,8,V100\n"]
)
def test_a_list_of_no_nodes_is_refused(tmp_path, text):
    (tmp_path / "nodes.csv").write_text(text)
    with pytest.raises(LabError):
        lab.intake(("nodes", tmp_path / "nodes.csv"))


@pytest.mark.parametrize("odd", [4, "x", [], True, None])
def test_a_part_that_is_no_object_is_as_if_it_were_not_there(odd, tmp_path):
    """Labels, limits and templates of Kubernetes, and profiles of batsim."""
    labelled = with_value(numbered("k8s", RECORDS["k8s"], 9), ("metadata", "labels"), odd)
    requested = with_value(numbered("k8s", RECORDS["k8s"], 8), ("spec", "containers", 0, "resources", "limits"), odd)
    sound = numbered("k8s", RECORDS["k8s"], 1)
    assert frame_of("k8s", written_json(tmp_path, "k8s", [sound, labelled, requested]))["job_id"].to_list() == [
        "n/p1",
        "n/p9",
    ]
    (tmp_path / "w.json").write_text(json.dumps(BATSIM | {"profiles": odd}))
    with pytest.raises(LabError):
        quietly(lab.intake, ("batsim", tmp_path / "w.json"))
