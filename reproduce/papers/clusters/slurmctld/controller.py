"""A real slurmctld with the slurm.conf of a site, beside a slurmdbd with its accounts; no job ever runs there."""

import re
import socket
import subprocess
import time
from pathlib import Path

from gpuschedlab.papers.clusters.recipe import Site
from reproduce.papers.clusters.slurmctld.recorder import recorder

REFUSED = re.compile(r"(?i)\b(fatal|invalid|ignor(?:ed|ing)|unrecognized|parse error)\b.*")
"""Words of the log of a slurmctld that does not take a value, though `scontrol show config` may give it back."""


class Controller(recorder.Server):
    """The slurmctld of a site in a folder, on the ports from `port` on, until the block ends."""

    def __init__(self, site: Site, folder: Path, port: int):
        self.of_site = site
        self.text = ""
        stream = recorder.Stream("controller", 0, counted=True, nodes=0, site="# no line yet")
        super().__init__(stream, folder, port)
        self.frame = (folder / "slurm.conf").read_text()

    def gpus(self) -> list[str]:
        """Lines of slurm.conf about GPUs: the site's nodes name them."""
        types = sorted({gpu_type for _, gpu_type, _ in self.of_site.description.nodes} - {"gpu"})
        counted = ",".join(["gres/gpu", *(f"gres/gpu:{name}" for name in types)])
        return ["GresTypes=gpu", f"AccountingStorageTRES={counted}"]

    def accounts(self) -> None:
        """Add the accounts, users and QOS of the site."""
        for account, user, parent, shares in self.of_site.description.accounts:
            if user:
                self.ask("sacctmgr", "-i", "add", "user", user, f"account={account}", f"fairshare={shares:.0f}")
            elif account != "root":
                self.ask(
                    "sacctmgr", "-i", "add", "account", account, f"parent={parent or 'root'}", f"fairshare={shares:.0f}"
                )
        for name, priority in self.of_site.description.qos:
            if name != "normal":
                self.ask("sacctmgr", "-i", "add", "qos", name, f"priority={priority:.0f}")

    def restart(self, text: str) -> None:
        """Start slurmctld anew with another slurm.conf of the site.

        Raises
        ------
        RuntimeError
            It does not start.
        """
        for server in [server for server in self.servers if server.args[0] == "slurmctld"]:
            server.terminate()
            server.wait(20)
            self.servers.remove(server)
        self.text = text
        (self.here / "slurm.conf").write_text(self.frame.replace("# no line yet", self.placed(text)))
        self.log.unlink(missing_ok=True)
        server = self.serve("slurmctld", "-D")
        for _ in range(100):
            time.sleep(0.1)
            if server.poll() is not None:
                raise RuntimeError(f"slurmctld: found that it ends: {self.refusals() or self.last_words()}")
            if self.answers():
                return
        raise RuntimeError(f"slurmctld: found no answer after ten seconds; see {self.log}.")

    def placed(self, text: str) -> str:
        """A slurm.conf whose nodes are on this machine, on ports of their own."""
        here = f"NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1"
        port = self.port + 1
        lines = []
        for line in text.splitlines():
            if re.match(r"(?i)\s*NodeName=(?!DEFAULT\b)", line):
                count = len(self.of_site.description.nodes)
                line = f"{line} {here} Port=[{port}-{port + count - 1}]"
                port += count
            lines.append(line)
        return "\n".join(lines)

    def answers(self) -> bool:
        """Whether slurmctld answers."""
        said = subprocess.run(["scontrol", "ping"], env=self.environment, capture_output=True, text=True)
        return "is UP" in said.stdout

    @property
    def log(self) -> Path:
        """The log of slurmctld."""
        return self.here / "log" / "slurmctld.log"

    def last_words(self) -> str:
        """The end of the log of slurmctld, and of its output."""
        outputs = [self.log, *sorted((self.here / "log").glob("slurmctld*.out"))]
        return " ".join(path.read_text()[-300:] for path in outputs if path.exists())

    def refusals(self) -> list[str]:
        """Lines of the log of slurmctld that say that it does not take a value."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if REFUSED.search(line)]

    def config(self) -> dict[str, str]:
        """Values of `scontrol show config` by key."""
        rows = (line.split("=", 1) for line in self.ask("scontrol", "show", "config").splitlines() if "=" in line)
        return {key.strip(): value.strip() for key, value in rows}

    def partitions(self) -> dict[str, dict[str, str]]:
        """Values of `scontrol show partition` by partition and key."""
        rows = self.ask("scontrol", "show", "partition", "-o").splitlines()
        pairs = [dict(re.findall(r"(\w+)=(\S*)", row)) for row in rows]
        return {row["PartitionName"]: row for row in pairs}
