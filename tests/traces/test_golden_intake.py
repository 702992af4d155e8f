"""Golden answers of expressions over columns, specs, parts and attempts of jobs, lists of nodes, and logs of several files."""

import json
from pathlib import Path

import pytest
from golden_answers import golden, refusal
from test_golden_logs import outcome

import gpuschedlab as lab
from gpuschedlab.traces.logs.options import NAMES, options_in, options_of

ROWS = """id,submit,a,b,gres,none,odd name,took,state
x,0,2,3,gpu:H100:8,,5,0:01:04,done
y,10,4,1.5,gpu:a100:2,7,1,1-00:00:01,failed
z,20,1,9,,,2,90,done
"""
EXPRESSIONS = [
    *(
        "a",
        "a + b",
        "a - b + 3",
        "a * b",
        "b / a",
        "b // a",
        "b % a",
        "-a + 9",
        "max(a, b, 3)",
        "min(a, b)",
        "round(b / a)",
        "first(none, b)",
    ),
    *(
        "first(none, 4)",
        "number(part(gres, ':', 2))",
        "match(gres, ':([0-9]+)$')",
        "match(gres, '[0-9]+$')",
        "col('odd name')",
    ),
    *(
        "4 if lower(match(gres, 'gpu:([a-zA-Z0-9]+)')) == 'h100' else 1",
        "2 if a > b else 3",
        "2 if a >= 2 else 3",
        "2 if a < 2 else 3",
    ),
    *(
        "2 if a <= 2 else 3",
        "2 if a == 2 else 3",
        "2 if a != 2 else 3",
        "seconds(took)",
        "seconds('0:01:04') + a",
        "first(none, part(gres, ':', 1))",
    ),
    *(
        "a if gres != 'x' else none",
        "lower(gres)",
        "part(gres, ':', 9)",
        "1 +",
        "fly(a)",
        "a and b",
        "None",
        "nobody",
        "col(a)",
        "part(gres, a, 1)",
    ),
    *(
        "match(gres, '(')",
        "round(a, b)",
        "max()",
        "[a]",
        "a if a else 2",
        "2 ** 3",
        "1e300",
        "(" * 60 + "a" + ")" * 60,
        "-" * 50 + "a",
        "x" * 1200,
        "'",
        "a\n+ b",
    ),
]


@golden
def test_expressions(tmp_path):
    file = tmp_path / "jobs.csv"
    found = {}
    file.write_text(ROWS)
    base = {"accept": ["bad", "no_duration", "durations"], "running": "keep"}
    for text in EXPRESSIONS:
        made = outcome(lab.intake, ("csv", file), columns={"gpus": text, "duration": "took"}, **base)
        found[text[:60].replace("\n", " ")] = made if isinstance(made, str) else made["trace"].select("job_id", "gpus")
    texts = {
        "vc": "lower(part(gres, ':', 1))",
        "user": "first(none, state)",
        "duration": "seconds(took) * a",
        "name": "'all' if a > 1 else state",
    }
    made = outcome(lab.intake, ("csv", file), columns={"gpus": "a"} | texts, **base)
    return found | {"texts": made}


@golden
def test_specs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text(ROWS)
    (tmp_path / "two.csv").write_text(ROWS.replace("x,", "v,").replace("y,10", "w,40").replace("z,20", "u,50"))
    base = '[columns]\njob_id = "id"\ngpus = "a"\nduration = "took"\n'
    head = 'accept = ["bad", "durations"]\n'
    specs = {
        "plain": f'path = "one.csv"\nformat = "csv"\n{head}{base}',
        "recognised": f'path = "one.csv"\n{head}{base}',
        "two": f'path = ["one.csv", "two.csv"]\n{head}{base}',
        "pattern": f'path = "*.csv"\n{head}{base}',
        "cluster": f'path = "one.csv"\n{head}{base}[cluster]\nnodes = "2x8:h100"\n',
        "missing": f'path = "none.csv"\n{base}',
        "no path": base,
        "odd cluster": f'path = "one.csv"\n{base}[cluster]\nsize = "4"\n',
        "odd nodes": f'path = "one.csv"\n{base}[cluster]\nnodes = "4y"\n',
        "odd": "path =",
    }
    found = {}
    for name, text in specs.items():
        (tmp_path / f"{name}.toml").write_text(text)
        found[name] = outcome(lab.intake, f"{name}.toml")
        found[f"{name} over"] = (
            outcome(lab.intake, f"{name}.toml", columns={"gpus": "a + 1"}) if name in ("plain", "two") else ""
        )
    (tmp_path / "odd.txt").write_text("nothing known\n")
    found["unknown"] = refusal(lab.intake, "odd.txt")
    found["words"] = [refusal(lab.intake, source) for source in ("nobody:one.csv", 3, "csv:none.csv", "none.txt")]
    word = "csv:one.csv:gpus=a,duration=took"
    return found | {"word": outcome(lab.intake, word, accept=["bad", "durations"])}


SACCT = "JobID|User|Submit|Start|End|Elapsed|State|AllocTRES|NNodes|NodeList\n"
PIECES = [
    ("1", "08:00:00", "08:00:00", "08:10:00", "00:10:00", "NODE_FAIL", 2, 1, "n1"),
    ("1", "08:10:30", "08:20:00", "08:30:00", "00:10:00", "REQUEUED", 2, 1, "n2"),
    ("1", "08:30:10", "08:40:00", "08:45:00", "00:05:00", "COMPLETED", 4, 2, "n1,n2"),
    ("2", "08:01:00", "08:02:00", "08:03:00", "00:01:00", "RESIZING", 4, 1, "n3"),
    ("2", "08:01:00", "08:03:00", "08:09:00", "00:06:00", "COMPLETED", 2, 1, "n3"),
    ("3+0", "08:03:00", "08:04:00", "08:05:00", "00:01:00", "COMPLETED", 1, 1, "n1"),
    ("3+1", "08:03:00", "08:04:00", "08:06:00", "00:02:00", "FAILED", 4, 1, "n2"),
    ("4+0", "08:05:00", "08:06:00", "08:08:00", "00:02:00", "COMPLETED", 2, 1, "n1"),
    ("4+1", "08:05:00", "08:06:00", "08:08:00", "00:02:00", "COMPLETED", 2, 1, "n1"),
    ("5", "08:06:00", "08:07:00", "08:08:00", "00:01:00", "COMPLETED", 1, 1, "n4"),
    ("5", "08:06:00", "08:07:00", "08:08:00", "00:01:00", "COMPLETED", 1, 1, "n4"),
    ("5", "09:06:00", "09:07:00", "09:08:00", "00:01:00", "FAILED", 1, 1, "n4"),
    ("6", "09:00:00", "09:01:00", "Unknown", "00:30:00", "RUNNING", 8, 2, "n5,n6"),
]


@pytest.mark.parametrize("attempts", ["merge", "each"])
@golden
def test_parts_and_attempts(tmp_path, attempts):
    file = tmp_path / "log.txt"
    day = "2025-03-03T"
    lines = []
    for job, submit, start, end, *rest in PIECES:
        took, state, gpus, nodes, names = rest
        last = end if end == "Unknown" else day + end
        lines.append(f"{job}|u|{day}{submit}|{day}{start}|{last}|{took}|{state}|gres/gpu={gpus}|{nodes}|{names}")
    file.write_text(SACCT + "\n".join(lines) + "\n")
    return [
        outcome(lab.intake, file, attempts=attempts),
        outcome(lab.intake, file, attempts=attempts, snapshot="2025-03-03 10:00"),
    ]


@golden
def test_lists_of_nodes(tmp_path):
    found = {}
    texts = {
        "openb": "sn,cpu_milli,gpu,model\na,1,8,V100\nb,1,0,\nc,1,8,V100\nd,1,2,T4\ne,1,4,V100\n",
        "spot": "node_name,gpu_model,gpu_capacity_num\nx,A10,1\ny,A10,1\nz,,4\n",
        "none": "sn,gpu,model\na,0,V100\n",
        "odd": "sn,gpu,model\na,8,V100\nb,1.5,V100\n",
        "other": "sn,cards,model\na,8,V100\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
        try:
            made = lab.intake(("nodes", tmp_path / f"{name}.csv"))
            found[name] = [str(made.cluster), made.report.line()]
        except lab.errors.LabError as error:
            found[name] = error
    return found


@golden
def test_google(tmp_path):
    events = ["time,type,collection_id,user,collection_type,priority,start_after_collection_ids"]
    course = {
        "1": [(10, 0), (20, 3), (90, 6)],
        "2": [(15, 0), (30, 3), (40, 4), (50, 3), (80, 5)],
        "3": [(16, "SUBMIT"), (35, "SCHEDULE")],
        "4": [(17, 0)],
        "5": [(18, 0), (25, 3), (60, 7)],
        "6": [(0, 0), (22, 3), (9_223_372_036_854_775_807, 6)],
        "7": [(19, 0), (21, 8), (33, 3), (66, 6)],
    }
    events += [
        f"{at * 1_000_000 if at < 1e9 else at},{kind},{job},u{job},{1 if job == '5' else 0},{100 + int(job)},{'[1]' if job == '2' else ''}"
        for job, each in course.items()
        for at, kind in each
    ]
    instances = [
        "time,type,collection_id,instance_index",
        *(f"5,0,{job},{i}" for job in course for i in range(int(job) % 3 + 1)),
    ]
    (tmp_path / "collection_events.csv").write_text("\n".join(events) + "\n")
    (tmp_path / "instance_events.csv").write_text("\n".join(instances) + "\n")
    found = {
        "csv": outcome(lab.intake, ("google2019", tmp_path), count="instances"),
        "each": outcome(lab.intake, ("google2019", tmp_path), count="instances", attempts="each"),
    }
    found["refused"] = refusal(lab.intake, ("google2019", tmp_path))
    (tmp_path / "instance_events.csv").unlink()
    return found | {"missing": refusal(lab.intake, ("google2019", tmp_path), count="instances")}


@golden
def test_profiles_of_batsim(tmp_path):
    profiles = {
        "d": {"type": "delay", "delay": 10},
        "c": {"type": "composed", "repeat": 3, "seq": ["d", "p"]},
        "s": {"type": "SequenceProfile", "sequence": ["d", "d"]},
        "p": {"type": "parallel", "cpu": [2e9, 6e9], "com": [0, 0, 0, 0]},
        "h": {"type": "parallel_homogeneous_total", "cpu": 8e9, "com": 0},
        "l": {"type": "composed", "seq": ["l"]},
        "n": {"type": "composed", "seq": "d"},
        "x": {"type": "smpi"},
    }
    jobs = [
        {"id": f"j{name}", "subtime": i, "res": 1 + i % 3, "walltime": -1 if i % 2 else 50 + i, "profile": name}
        for i, name in enumerate([*profiles, "gone"])
    ]
    jobs[1]["extra_data"] = '{"dependencies": ["jd"]}'
    jobs[2]["extra_data"] = {"dependencies": ["jd", "jc"]}
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 16, "jobs": jobs, "profiles": profiles}))
    return {
        f"{speed}": outcome(lab.intake, ("batsim", tmp_path / "w.json"), **({"speed": speed} if speed else {}))
        for speed in (None, 1e9)
    }


@golden
def test_speeds_of_gavel(tmp_path):
    seven = "A3C\tpython3 main.py\t-x\t1\t2000\t5.0\t1\nLM\tpython3 main.py\t-x\t1\t900\t9.0\t2\n"
    ten = "A3C\tcmd\tdir\t-x\t1\t2000\t1\t3\t1.5\t5.0\nLM\tcmd\tdir\t-x\t1\t900\t2\t1\t-1\t9.0\n"
    (tmp_path / "seven.trace").write_text(seven)
    (tmp_path / "ten.trace").write_text(ten)
    (tmp_path / "odd.trace").write_text(seven + "a\tb\n")
    rows = [
        "model,gpu_type,gpus,steps,partner",
        "A3C,v100,1,4.0,",
        "A3C,k80,1,2.0,",
        "LM,v100,2,3.0,",
        "LM,v100,2,9.0,A3C",
        "LM,k80,2,0.0,",
    ]
    (tmp_path / "speeds.csv").write_text("\n".join(rows) + "\n")
    table = str(tmp_path / "speeds.csv")
    found = {}
    for name in ("seven", "ten", "odd"):
        for options in (
            {},
            {"speeds": {"A3C": 4.0, "LM": 2.0}},
            {"speeds": {"A3C": 4.0}},
            {"speeds": table},
            {"speeds": table, "gpu_type": "k80"},
        ):
            key = f"{name} {str(options).replace(str(tmp_path), '')}"
            found[key] = outcome(lab.intake, ("gavel", tmp_path / f"{name}.trace"), **options)
    return found


def condition(kind: str, at: str, **more) -> dict:
    return {"type": kind, "status": "True", "lastTransitionTime": f"2025-03-03T{at}Z"} | more


@golden
def test_objects_of_kubernetes(tmp_path):
    template = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}}
    meta = {"namespace": "n", "creationTimestamp": "2025-03-03T08:00:00Z"}
    admitted = {"clusterQueue": "q", "podSetAssignments": [{"flavors": {"nvidia.com/gpu": "a100", "cpu": "x"}}]}
    ended = [condition("Admitted", "08:05:00"), condition("Finished", "08:35:00", reason="Succeeded", message="done")]
    failed = [
        condition("Admitted", "08:05:00"),
        condition("Finished", "08:35:00", reason="JobFinished", message="Job failed"),
    ]
    spec = {
        "podSets": [{"count": 3, "template": template}, {"template": template}],
        "queueName": "l",
        "maximumExecutionTimeSeconds": 7200,
    }
    items = [
        {
            "kind": "Workload",
            "metadata": meta | {"name": "w1"},
            "spec": spec,
            "status": {"conditions": ended, "admission": admitted},
        },
        {"kind": "Workload", "metadata": meta | {"name": "w2"}, "spec": spec, "status": {"conditions": failed}},
        {"kind": "Workload", "metadata": meta | {"name": "w3"}, "spec": spec, "status": {"conditions": ended[:1]}},
        {"kind": "Workload", "metadata": meta | {"name": "w4"}, "spec": spec, "status": {}},
    ]
    tasks = {"tasks": [{"replicas": 2, "template": template}], "queue": "v"}
    for i, (phase, words) in enumerate(
        (
            ("Completed", ("Pending", "Running", "Completed")),
            ("Failed", ("Running", "Failed")),
            ("Running", ("Running",)),
            ("Pending", ("Pending",)),
        )
    ):
        course = [
            {"status": word, "lastTransitionTime": f"2025-03-03T09:{10 * k:02}:00Z"} for k, word in enumerate(words)
        ]
        items.append(
            {
                "kind": "Job",
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "metadata": meta | {"name": f"v{i}"},
                "spec": tasks,
                "status": {"state": {"phase": phase}, "conditions": course},
            }
        )
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    (tmp_path / "some.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items[:4]}))
    return {name: outcome(lab.intake, ("k8s", tmp_path / f"{name}.json")) for name in ("all", "some")}


VALUES = (
    *("", "x", "0", "1.5", "-1", "inf", "true", "False", "keep", "s", "us", "node", "a, b"),
    *(0, 1, 2.5, -1.0, float("inf"), True, False, Path("a.csv")),
    *([], ["x"], [1], ("x", "y"), (1,), ("x", 2)),
    *({}, {"x": "y"}, {"x": 1}, {"submit": "ms"}, {"submit": "x"}, {"FINE": "done"}, {"FINE": "x"}, {1: "y"}),
)


@golden
def test_every_option_takes_what_it_says():
    """Each option with values of each kind: what is read of it, or the refusal."""
    found = {}
    for name in NAMES:
        told = found[name] = []
        for value in VALUES:
            try:
                told.append(f"{value!r}: {getattr(options_of({name: value}, 'log'), name)!r}")
            except lab.errors.TraceError as error:
                told.append(f"{value!r}: {error}")
    return {name: dict(enumerate(told)) for name, told in found.items()} | {
        "none": refusal(options_of, {"nobody": 1}, "log"),
        "near": refusal(options_of, {"colums": {}}, "log"),
        "settings": [
            str(options_in(words)) for words in (["zone=UTC", "columns.gpus=g"], ["units=ms"], ["a.b=1", "a.c=2"])
        ],
        "refused": [refusal(options_in, words) for words in (["zone"], ["=x"], ["a=1", "a.b=2"])],
    }
