"""Record streams of jobs on a real Slurm, on this machine: `make referee`, or `python data/slurm/make.py [STREAM ...]`.

It needs root and Debian's packages slurmctld, slurmd, slurm-client and slurm-wlm-basic-plugins, and for priorities that age slurmdbd,
slurm-wlm-mysql-plugin and mariadb-server; elsewhere it says why it records nothing. Everything listens on 127.0.0.1 and is stopped by
its process id. Cores stand for GPUs, jobs are `sleep`. A recording takes five to seven minutes and hardly any CPU; `--workers` of them
run at once. One during which a node did not answer is thrown away.
"""

import argparse
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

HERE = Path(__file__).resolve().parent
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins")
NEEDS = ("slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "sprio")
COUNTING = ("slurmdbd", "slurm-wlm-mysql-plugin", "mariadb-server")
PORT, CORES = 41_000, 8
NARROW, ODD = (1, 1, 1, 2, 2, 4, 4, 8, 8, 16), (1, 1, 3, 3, 3, 5, 5, 8, 8, 8, 16)
MIXED = ("a100", "v100", "v100", "a100", "a100")
OF_GPUS = "qos normal MaxTRESPU=gres/gpu=16; qos capped GrpTRES=gres/gpu=8; account b GrpTRES=gres/gpu=24"
WIDER = (1, 2, 2, 4, 4, 8, 8, 16, 16, 24)
SCHEDULER = "bf_interval=1,bf_resolution=1,sched_interval=1,bf_max_job_test=1000,default_queue_depth=1000,batch_sched_delay=0,bf_window=200"
CONF = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort={port}
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool/%n
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/slurmd.%n.pid
SlurmctldLogFile={here}/log/slurmctld.log
SlurmdLogFile={here}/log/slurmd.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
{scheduler}
JobAcctGatherType=jobacct_gather/none
KillWait=1
MinJobAge=3600
MailProg=/bin/true
SlurmdParameters=config_overrides
{lines}
"""
DATABASE = """\
AuthType=auth/none
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd}
SlurmUser=root
LogFile={here}/log/slurmdbd.log
PidFile={here}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"""
SHAPE = f"CPUs={CORES} Boards=1 SocketsPerBoard=1 CoresPerSocket={CORES} ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN"
BASIC = ("PriorityType=priority/basic",)
MULTIFACTOR = (
    "PriorityType=priority/multifactor",
    "PriorityWeightAge=1000",
    "PriorityWeightJobSize=1000",
    "PriorityMaxAge=0-00:05:00",
    "PriorityCalcPeriod=1",
    "PriorityDecayHalfLife=1-0",
)
FAIRSHARE = (
    "PriorityType=priority/multifactor",
    "PriorityWeightFairshare=10000",
    "PriorityWeightAge=1000",
    "PriorityMaxAge=0-00:05:00",
    "PriorityCalcPeriod=1",
    "PriorityDecayHalfLife=0-00:10:00",
)
ACCOUNTS, CAPPED, CAP = {"a": 3, "b": 1}, "capped", 8
"""Shares of two accounts, and a QOS whose jobs hold so many GPUs at most."""
USERS = {"daemon": 5, "bin": 3, "sys": 2, "games": 2}
"""Users of streams with limits, which any Debian has, and how often each submits."""


LIMITS = (
    (BASIC, "qos normal MaxTRESPU=cpu=12; qos capped GrpTRES=cpu=8"),
    (BASIC, "qos normal MaxJobsPU=3; qos capped GrpTRES=cpu=8; account b GrpTRES=cpu=16"),
    (FAIRSHARE, "qos normal MaxTRESPU=cpu=16; qos capped GrpTRES=cpu=10 MaxJobsPU=2; account b GrpTRES=cpu=16"),
    (MULTIFACTOR, "qos normal MaxTRESPU=cpu=12; qos capped GrpJobs=2"),
    (BASIC, "account a MaxJobs=3; account b GrpTRES=cpu=12; qos capped MaxTRESPA=cpu=12"),
    (MULTIFACTOR, "qos normal MaxTRESPU=cpu=16 MaxJobsPU=4; qos capped GrpTRES=cpu=12; account a GrpJobs=6"),
    (FAIRSHARE, "account a GrpTRES=cpu=20; account b GrpJobs=4; qos capped MaxJobsPU=1"),
    (BASIC, "qos normal MaxTRESPU=cpu=8; qos capped MaxTRESPU=cpu=16; account b GrpTRES=cpu=8"),
)
"""Priorities and limits of streams."""


@dataclass(frozen=True)
class Stream:
    """Jobs at random, and the Slurm that they are submitted to."""

    name: str
    seed: int
    jobs: int = 60
    nodes: int = 4
    gap: float = 2.5
    sizes: tuple[int, ...] = NARROW
    scheduler: str = "backfill"
    conf: tuple[str, ...] = BASIC
    tiers: tuple[tuple[str, int], ...] = (("p", 1),)
    special: str = ""
    counted: bool = False  # by a slurmdbd: without one priorities do not age
    types: tuple[
        str, ...
    ] = ()  # of the GPUs of each node, which then are Slurm's gres/gpu; "": one type without a name
    site: str = ""  # a slurm.conf, whose lines stand in the place of `conf`, `scheduler` and `tiers`
    limits: str = ""  # "qos NAME KEY=VALUE ...; account NAME KEY=VALUE ..." as sacctmgr sets them
    commands: tuple[str, ...] = ()  # of sacctmgr, after those of the limits
    outage: tuple[int, int, int] | None = None  # node, seconds after the first submission: down, and up again


STREAMS = (
    Stream("fifo", 61, jobs=90, scheduler="builtin"),
    Stream("busy", 62, jobs=90),
    Stream("long", 63, jobs=90, gap=2.2),
    Stream("wide", 64, jobs=120, nodes=8, gap=1.4, sizes=ODD),
    Stream("tiers", 65, jobs=70, gap=2.4, tiers=(("p", 1), ("urgent", 10))),
    Stream("dependencies", 66, jobs=70, special="after", gap=2.2),
    Stream("begin", 67, jobs=70, special="begin", gap=2.2),
    Stream("array", 68, jobs=45, special="array", gap=3.5),
    Stream("outage", 69, jobs=70, outage=(2, 60, 150), gap=2.8),
    Stream("multifactor", 70, jobs=90, gap=2.2, conf=MULTIFACTOR, counted=True),
    Stream("fairshare", 71, jobs=90, gap=2.2, conf=FAIRSHARE, special="account", counted=True),
    Stream("qos", 72, jobs=70, gap=2.2, special="qos", counted=True, limits=f"qos {CAPPED} GrpTRES=cpu={CAP}"),
    *(
        Stream(f"limits-{i}", 80 + i, jobs=70, gap=2.0, special="limits", counted=True, conf=conf, limits=words)
        for i, (conf, words) in enumerate(LIMITS, 1)
    ),
    Stream("types-1", 91, jobs=90, types=("a100", "a100", "v100", "v100")),
    Stream("types-2", 92, jobs=90, nodes=6, gap=1.6, types=("a100", "v100", "v100", "a100", "v100", "v100")),
    Stream("types-3", 93, jobs=70, gap=3.5, sizes=WIDER, types=("v100", "a100", "a100", "v100")),
    Stream("types-4", 94, jobs=80, nodes=5, gap=2.2, types=MIXED, conf=MULTIFACTOR, counted=True),
    Stream("types-5", 95, jobs=80, nodes=5, gap=2.2, types=MIXED, special="limits", counted=True, limits=OF_GPUS),
)


def why_not(counted: bool = False) -> str:
    """Why nothing can be recorded here; empty if it can. `counted`: with slurmdbd and its database."""
    needs = [*NEEDS]
    packages = [*PACKAGES]
    if counted:
        needs += ["slurmdbd", "mariadbd"]
        packages += COUNTING
    missing = [name for name in needs if shutil.which(name) is None]
    if sys.platform != "linux" or os.geteuid():
        return "recording a Slurm needs root on Linux"
    return f"found no {', '.join(missing)}; expected Debian's packages {', '.join(packages)}" if missing else ""


def drawn(stream: Stream) -> list[dict]:
    """Submissions of a stream, the same each time: seconds, sizes, run times, limits, and what is special of each."""
    draw, at, jobs = random.Random(stream.seed), 0.0, []
    for number in range(stream.jobs):
        at += draw.expovariate(1 / stream.gap)
        gpus, seconds = draw.choice(stream.sizes), min(150, max(4, int(draw.lognormvariate(3.0, 0.8))))
        minutes = max(1, -(-int(seconds * draw.choice([1.0, 1.2, 1.6, 2.5])) // 60), -(-seconds // 60))
        job = {
            "at": at,
            "nodes": max(1, -(-gpus // CORES)),
            "each": min(CORES, gpus),
            "seconds": seconds,
            "minutes": minutes,
        }
        job |= {"partition": draw.choices([name for name, _ in stream.tiers], [4, 1][: len(stream.tiers)])[0]}
        special = stream.special if draw.random() < 0.35 and number > 5 else ""
        job |= {"after": number - draw.randint(1, 6)} if special == "after" else {}
        job |= {"begin": draw.randint(10, 60)} if special == "begin" else {}
        job |= {"account": draw.choice([*ACCOUNTS])} if stream.special == "account" else {}
        job |= {"qos": CAPPED} if special == "qos" and gpus <= CAP else {}
        job |= owned(stream, draw, gpus) if stream.special == "limits" else {}
        named = [kind for kind in sorted({*stream.types} - {""}) if stream.types.count(kind) >= job["nodes"]]
        job |= {"type": draw.choices([*named, None], [3] * len(named) + [2])[0]} if named else {}
        tasks = draw.randint(3, 6)
        job |= {"tasks": tasks, "throttle": draw.randint(1, 2), "nodes": 1} if special == "array" else {}
        jobs.append(job)
    return jobs


def owned(stream: Stream, draw: random.Random, gpus: int) -> dict:
    """Owners of a job of a stream with limits, and no more GPUs than any of these leaves it."""
    user = draw.choices([*USERS], [*USERS.values()])[0]
    account = draw.choice([*ACCOUNTS])
    qos = draw.choices(["normal", CAPPED], [3, 1])[0]
    bounds = [part.split() for part in stream.limits.split(";")]
    words = [word for _, name, *words in bounds if name in (account, qos) for word in words]
    most = min([int(word.rpartition("=")[2]) for word in words if "TRES" in word], default=gpus)
    if gpus > most:
        gpus = min(CORES, most)
    return {"user": user, "account": account, "qos": qos, "nodes": -(-gpus // CORES), "each": min(CORES, gpus)}


def gres_of(kind: str, gpus: int) -> str:
    """GPUs, of a type if it has a name, as Slurm writes them."""
    return ":".join(filter(None, ("gpu", kind, str(gpus))))


class Server:
    """A Slurm of its own in a folder, on the ports from `port` on, until the block ends."""

    def __init__(self, stream: Stream, folder: Path, port: int):
        self.stream, self.here = stream, folder
        for part in ("state", "log", *(f"spool/n{i + 1}" for i in range(stream.nodes))):
            (folder / part).mkdir(parents=True)
        self.port = port
        scheduler = f"SchedulerType=sched/{stream.scheduler}\nSchedulerParameters={SCHEDULER}\n"
        lines = [*self.nodes(), *self.gpus(), *self.counting(port)]
        if stream.site:
            scheduler = stream.site
        else:
            lines += [*stream.conf, *self.partitions()]
        made = {"host": socket.gethostname(), "port": port, "here": folder, "scheduler": scheduler}
        (folder / "slurm.conf").write_text(CONF.format(**made, lines="\n".join(lines)))
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
        self.servers: list[subprocess.Popen] = []

    def nodes(self) -> list[str]:
        """Lines of slurm.conf about nodes."""
        lines = []
        for i in range(self.stream.nodes):
            place = f"NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={self.port + 1 + i}"
            gres = ""
            if self.stream.types:
                gres = f" Gres={gres_of(self.stream.types[i], CORES)}"
            lines.append(f"NodeName=n{i + 1} {place} {SHAPE}{gres}")
        return lines

    def partitions(self) -> list[str]:
        """Lines of slurm.conf about partitions."""
        lines = []
        for i, (name, tier) in enumerate(self.stream.tiers):
            rest = f"Nodes=n[1-{self.stream.nodes}] MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier={tier}"
            lines.append(f"PartitionName={name} Default={'NO' if i else 'YES'} {rest}")
        return lines

    def gpus(self) -> list[str]:
        """Lines of slurm.conf about GPUs; files stand for the devices that gres.conf names."""
        if not self.stream.types:
            return []
        devices = self.here / "dev"
        devices.mkdir()
        for i in range(CORES):
            (devices / f"gpu{i}").touch()
        lines = []
        for i, kind in enumerate(self.stream.types):
            of_type = f" Type={kind}" if kind else ""
            lines.append(f"NodeName=n{i + 1} Name=gpu{of_type} File={devices}/gpu[0-{CORES - 1}]\n")
        (self.here / "gres.conf").write_text("".join(lines))
        found = [] if self.stream.site else ["GresTypes=gpu"]
        if self.stream.counted:  # slurmctld counts for a database alone
            counted = ["gres/gpu", *(f"gres/gpu:{kind}" for kind in sorted({*self.stream.types} - {""}))]
            found.append(f"AccountingStorageTRES={','.join(counted)}")
        return found

    def counting(self, port: int) -> list[str]:
        """Lines of slurm.conf about accounts."""
        if not self.stream.counted:
            return ["AccountingStorageType=accounting_storage/none"]
        database = self.here / "slurmdbd.conf"
        database.write_text(DATABASE.format(here=self.here, dbd=port + 41, sql=port + 40))
        database.chmod(0o600)
        of = [
            "Type=accounting_storage/slurmdbd",
            "Host=127.0.0.1",
            f"Port={port + 41}",
            "Enforce=associations,limits,qos",
        ]
        return [f"AccountingStorage{line}" for line in of]

    def serve(self, *words: str) -> subprocess.Popen:
        """Start a daemon, which writes to a file of the folder."""
        with open(self.here / "log" / (words[0] + "".join(words[1:3]).replace("/", "") + ".out"), "w") as out:
            server = subprocess.Popen(words, env=self.environment, stdout=out, stderr=out)
        self.servers.append(server)
        return server

    def count(self) -> None:
        """Start a database and slurmdbd, with its accounts."""
        folder, socket_ = self.here / "db", self.here / "db.sock"
        self.ask("mariadb-install-db", "--no-defaults", f"--datadir={folder}", "--user=root", "--skip-test-db")
        where = [f"--datadir={folder}", f"--socket={socket_}", f"--port={self.port + 40}", "--bind-address=127.0.0.1"]
        self.serve("mariadbd", "--no-defaults", "--user=root", *where, f"--pid-file={self.here}/db.pid")
        grant = "create user slurm@'127.0.0.1' identified by 'slurm'; grant all on slurm.* to slurm@'127.0.0.1'"
        self.patiently("mariadb", "--no-defaults", f"--socket={socket_}", "-e", grant)
        self.serve("slurmdbd", "-D")
        self.patiently("sacctmgr", "-i", "add", "cluster", "lab")
        self.accounts()

    def accounts(self) -> None:
        """Add two accounts and a QOS, and users who may have both."""
        for name, shares in ACCOUNTS.items():
            self.ask("sacctmgr", "-i", "add", "account", name, "cluster=lab", f"fairshare={shares}")
        self.ask("sacctmgr", "-i", "add", "qos", CAPPED)
        for user in ("root", *(USERS if self.stream.special == "limits" or self.stream.site else ())):
            self.ask("sacctmgr", "-i", "add", "user", user, f"account={','.join(ACCOUNTS)}", "cluster=lab")
            self.ask("sacctmgr", "-i", "modify", "user", user, "set", f"qos=normal,{CAPPED}", "defaultqos=normal")

    def limit(self) -> None:
        """Set the limits, once slurmctld has told slurmdbd of the GPUs that it counts."""
        for part in filter(None, self.stream.limits.split(";")):
            kind, name, *words = part.split()
            self.patiently("sacctmgr", "-i", "modify", kind, name, "set", *words)
        for command in self.stream.commands:
            self.patiently(*command.split())

    def patiently(self, *words: str) -> None:
        """Say something to a daemon until it answers, for half a minute."""
        for left in range(30, -1, -1):
            try:
                self.ask(*words)
                return
            except subprocess.CalledProcessError as wrong:
                if not left:
                    raise RuntimeError(f"{self.stream.name}: {' '.join(words)}: {wrong.stderr[-300:]}") from wrong
            time.sleep(1)

    def ask(self, *words: str) -> str:
        """What a command prints."""
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=True).stdout.strip()

    def idle(self) -> bool:
        """Whether each node answers and has nothing to do."""
        ask = ["sinfo", "-h", "-N", "-o", "%T"]
        found = subprocess.run(ask, env=self.environment, capture_output=True, text=True).stdout.split()
        return found.count("idle") == self.stream.nodes * len(self.stream.tiers)

    def __enter__(self) -> "Server":
        return self

    def start(self) -> None:
        """Start all daemons, and wait until each node is idle."""
        if self.stream.counted:
            self.count()
        self.serve("slurmctld", "-D")
        time.sleep(2)
        for i in range(self.stream.nodes):
            self.serve("slurmd", "-N", f"n{i + 1}", "-D")
        for _ in range(60):
            time.sleep(1)
            if self.idle():
                self.limit()
                return
        raise RuntimeError(
            f"{self.stream.name}: found nodes that do not answer after a minute; see {self.here / 'log'}."
        )

    def __exit__(self, *_) -> None:
        for server in reversed(self.servers):
            server.terminate()
        for server in reversed(self.servers):
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def submitted(server: Server, jobs: list[dict], begin: float, watch) -> dict[str, int]:
    """Submit jobs, each when its time has come; numbers of the jobs by Slurm's."""
    ids, numbers = {}, {}
    for number, job in enumerate(jobs):
        while (left := begin + job["at"] - time.time()) > 0:
            watch()
            time.sleep(min(left, 0.4))
        words = [
            f"-N{job['nodes']}",
            "--ntasks-per-node=1",
            f"-c{job['each']}",
            "-t",
            str(job["minutes"]),
            "-p",
            job["partition"],
        ]
        words += [f"--dependency=afterany:{ids[job['after']]}"] if "after" in job else []
        words += [f"--begin=now+{job['begin']}"] if "begin" in job else []
        words += [f"--account={job['account']}"] if "account" in job else []
        words += [f"--qos={job['qos']}"] if "qos" in job else []
        words += [f"--uid={job['user']}", "--chdir=/tmp"] if "user" in job else []
        words += [f"--array=0-{job['tasks'] - 1}%{job['throttle']}"] if "tasks" in job else []
        words += [f"--gres={gres_of(job.get('type') or '', job['each'])}"] if server.stream.types else []
        done = ["--no-requeue", "--output=/dev/null", "--wrap", f"exec sleep {job['seconds']}"]
        ids[number] = server.ask("sbatch", "--parsable", *words, *done)
        numbers[ids[number]] = number
    return numbers


class Watch:
    """What changes while a stream runs: priorities of waiting jobs, nodes that do not answer, an outage."""

    def __init__(self, server: Server, begin: float):
        self.server, self.begin, self.seen, self.rows, self.outages = server, begin, {}, [], []
        self.looked, self.down = 0.0, None

    def __call__(self) -> None:
        """Look once."""
        now, stream = time.time(), self.server.stream
        if stream.conf != BASIC or stream.site:
            for line in self.server.ask("sprio", "-h", "-o", "%i %Y %A %J %F").splitlines():
                job, *found = line.split()
                if self.seen.get(job) != found:
                    self.seen[job] = found
                    self.rows.append((int(now), job, *map(int, found)))
        if stream.outage:
            node, down, up = stream.outage
            if self.down is None and now - self.begin >= down:
                self.server.ask("scontrol", "update", f"nodename=n{node}", "state=down", "reason=outage")
                self.down = int(time.time())
            elif self.down and not self.outages and now - self.begin >= up:
                self.server.ask("scontrol", "update", f"nodename=n{node}", "state=resume")
                self.outages.append((node, self.down, int(time.time())))
        if now - self.looked > 3 and not self.down:
            self.looked = now
            states = self.server.ask("sinfo", "-h", "-N", "-o", "%T").split()
            if any("*" in state or "down" in state for state in states):
                raise RuntimeError(
                    f"{stream.name}: found a node that does not answer ({' '.join(states)}): thrown away."
                )


def seconds(text: str) -> int:
    """Seconds of the epoch."""
    return int(datetime.fromisoformat(text).timestamp())


def table(server: Server, jobs: list[dict], numbers: dict[str, int]) -> tuple[int, list[dict], dict[str, str]]:
    """Epoch of the first submission, a row per job or task of an array, and names of the jobs by Slurm's ids."""
    rows, names = [], {}
    for line in server.ask("scontrol", "show", "jobs", "-o").splitlines():
        has = dict(re.findall(r"(\w+)=(\S*)", line))
        number = numbers[has.get("ArrayJobId", has["JobId"])]
        job, task = jobs[number], has.get("ArrayTaskId")
        name = names[has["JobId"]] = f"{number}_{task}" if task else f"{number}"
        times = [seconds(has[f"{what}Time"]) for what in ("Submit", "Eligible", "Start", "End")]
        asked = {
            "job_id": name,
            "nodes": job["nodes"],
            "gpus": job["nodes"] * job["each"],
            "requested_time": 60 * job["minutes"],
        }
        row = (
            asked
            | dict(zip(("submit", "eligible", "start", "end"), times, strict=True))
            | {"nodelist": has["NodeList"]}
        )
        row |= {"partition": job["partition"], "after": job.get("after"), "array": number if task else None}
        row |= {name: job.get(name) for name in ("account", "qos", "user", "type")}
        rows.append(row | {"throttle": job.get("throttle"), "order": (number, int(task or 0))})
    rows.sort(key=lambda row: row.pop("order"))
    first = min(row["submit"] for row in rows)
    for row in rows:
        row["duration"] = row["end"] - row["start"]
        row |= {name: row[name] - first for name in ("submit", "eligible", "start")}
    return first, rows, names


def record(stream: Stream, number: int, port: int, jobs: list[dict] | None = None) -> dict[str, pl.DataFrame]:
    """Record a stream once: frames of the recording, its jobs, its priorities and its outages; `jobs` go before drawn ones."""
    folder = Path(tempfile.mkdtemp(prefix=f"slurm-{stream.name}-"))
    folder.chmod(0o755)  # jobs of other users read their scripts there
    jobs = jobs or drawn(stream)
    with Server(stream, folder, port) as server:
        server.start()
        begin = time.time() + 1
        watch = Watch(server, begin)
        numbers = submitted(server, jobs, begin, watch)
        while server.ask("squeue", "-h", "-t", "PD,R,CG"):
            watch()
            time.sleep(0.4)
        first, rows, names = table(server, jobs, numbers)
    of = {"stream": stream.name, "recording": number}
    expected = sum(job.get("tasks", 1) for job in jobs)
    if len(rows) != expected:
        raise RuntimeError(f"{stream.name}: found {len(rows)} jobs that ended; expected {expected}: thrown away.")
    about = {"nodes": stream.nodes, "gpus_per_node": CORES, "scheduler": stream.scheduler, "epoch": first}
    tiers = " ".join(f"{name}:{tier}" for name, tier in stream.tiers)
    types = " ".join(kind or "gpu" for kind in stream.types)
    columns = "job_id submit eligible nodes gpus duration requested_time start nodelist partition"
    columns += " after array throttle account qos user type"
    priorities = [(at - first, names[job], *found) for at, job, *found in watch.rows if job in names]
    outages = [(node, down - first, up - first) for node, down, up in watch.outages]
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "streams": pl.DataFrame([of | about | {"tiers": tiers, "limits": stream.limits, "types": types}]),
        "jobs": pl.DataFrame(
            [of | {name: row[name] for name in columns.split()} for row in rows], infer_schema_length=None
        ),
        "priorities": pl.DataFrame(
            [
                of | dict(zip(["at", "job_id", "priority", "age", "size", "fairshare"], row, strict=True))
                for row in priorities
            ]
        ),
        "outages": pl.DataFrame([of | dict(zip(("node", "down", "up"), row, strict=True)) for row in outages]),
    }


def keep(found: dict[str, pl.DataFrame], folder: Path) -> None:
    """Put a recording into the files of a folder, in place of the one of its name and number."""
    which = ["stream", "recording"]
    for name, frame in found.items():
        path = folder / f"{name}.csv"
        if path.exists():
            before = pl.read_csv(path, infer_schema_length=None).join(
                found["streams"].select(which), on=which, how="anti"
            )
            frame = pl.concat([before, frame], how="diagonal_relaxed") if frame.height else before
        if frame.height:
            place = pl.col("stream").replace_strict({s.name: i for i, s in enumerate(STREAMS)}, default=len(STREAMS))
            frame.sort(place, "recording", maintain_order=True).write_csv(path)


def main() -> None:
    """Record the streams that are named, or all, each twice."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("streams", nargs="*", help=f"some of {', '.join(s.name for s in STREAMS)}; default: all")
    parser.add_argument("--folder", type=Path, default=HERE, help="where the files are kept")
    parser.add_argument("--workers", type=int, default=3, help="recordings at once")
    parser.add_argument("--port", type=int, default=PORT, help="the first port")
    given = parser.parse_args()
    if reason := why_not():
        return print(f"skipped: {reason}")
    chosen = [stream for stream in STREAMS if not given.streams or stream.name in given.streams]
    if shutil.which("slurmdbd") is None or shutil.which("mariadbd") is None:
        print(
            f"skipped: {', '.join(s.name for s in chosen if s.counted)}: expected Debian's packages {', '.join(COUNTING)}"
        )
        chosen = [stream for stream in chosen if not stream.counted]
    if unknown := set(given.streams) - {stream.name for stream in chosen}:
        parser.error(f"found {', '.join(sorted(unknown))}; expected some of {', '.join(s.name for s in STREAMS)}.")
    given.folder.mkdir(parents=True, exist_ok=True)
    tasks = [(stream, number) for number in (1, 2) for stream in chosen]
    with ThreadPoolExecutor(given.workers) as pool:
        going = [pool.submit(record, *task, given.port + 50 * i) for i, task in enumerate(tasks)]
        for (stream, number), one in zip(tasks, going, strict=True):
            try:
                found = one.result()
            except (RuntimeError, subprocess.CalledProcessError) as wrong:
                print(f"{stream.name} {number}: {wrong}")
                continue
            keep(found, given.folder)
            wait = found["jobs"].select((pl.col("start") - pl.col("submit")).mean()).item()
            print(f"{stream.name} {number}: {found['jobs'].height} jobs, mean wait {wait:.1f} s", flush=True)


if __name__ == "__main__":
    main()
