"""Uploads that were made to harm, sent to a kernel as a browser sends them: each is a clear error, and the kernel answers after it."""

import ast
import os
from pathlib import Path

import pytest
from traces.test_uploads import LARGE, ROWS, SPECS

from gpuschedlab.errors import LabError

HERE = Path(__file__).resolve()
KernelManager = pytest.importorskip("jupyter_client.manager", reason="the extra lab is not installed").KernelManager

OPENED = """
from gpuschedlab import Cluster, Fifo, Scenario, Srtf
from gpuschedlab.widgets import Explorer
import asyncio, polars as pl
trace = pl.DataFrame({"job_id": ["a", "b"], "submit": [0.0, 1.0], "gpus": [1.0, 1.0], "duration": [10.0, 5.0]})
explorer = Explorer(Scenario(trace, Cluster.homogeneous(1, 2)), [Fifo(), Srtf()], upload=True)
ids = [part.comm.comm_id for part in (explorer.door.file, explorer.door.spec, explorer.door.again)]
"""
BOX = "[[o.get('ename'), o.get('evalue'), o.get('traceback')] for o in explorer.error.outputs]"
OTHERS = {
    "a spec": ("site.toml", b'path = "/etc/passwd"\n', "expected a log"),
    "no text": ("jobs.csv", bytes(range(256)) * 40, "expected"),
}
HARM = [(name, content, "", "") for name, content, _ in LARGE.values()]
HARM += [(name, content, "", words) for name, content, words in OTHERS.values()]
HARM += [("jobs.csv", ROWS, spec, "") for spec in SPECS]


class Kernel:
    """A kernel with an explorer in it, and what a browser sends to it."""

    def __init__(self, manager: KernelManager):
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)
        self.run(OPENED)
        self.file, self.spec, self.again = self.value("ids")

    def run(self, code: str, **more) -> dict:
        answer = self.client.execute_interactive(code, timeout=240, output_hook=lambda _: None, **more)["content"]
        assert answer["status"] == "ok", answer
        return answer

    def value(self, expression: str):
        found = self.run("", user_expressions={"it": expression})["user_expressions"]["it"]
        return ast.literal_eval(found["data"]["text/plain"])

    def send(self, comm: str, data: dict, buffers: tuple = ()):
        session = self.client.session
        message = session.msg("comm_msg", {"comm_id": comm, "data": data})
        session.send(self.client.shell_channel.socket, message, buffers=list(buffers))

    def change(self, comm: str, state: dict, paths: tuple = (), buffers: tuple = ()):
        self.send(comm, {"method": "update", "state": state, "buffer_paths": list(paths)}, buffers)

    def settle(self):
        """Let the kernel draw what has changed."""
        self.run("while explorer._timer is not None:\n    await asyncio.sleep(0.01)")

    def upload(self, name: str, content: bytes, spec: str):
        about = {"name": name, "type": "", "size": len(content), "last_modified": 1_700_000_000_000}
        self.change(self.file, {"value": [about]}, (["value", 0, "content"],), (content,))
        self.settle()
        if spec:
            self.change(self.spec, {"value": spec})
            self.send(self.again, {"method": "custom", "content": {"event": "click"}})


@pytest.fixture(scope="module")
def kernel():
    manager = KernelManager(kernel_name="python3")
    path = os.pathsep.join([str(HERE.parents[2]), os.environ.get("PYTHONPATH", "")])
    manager.start_kernel(env=os.environ | {"PYTHONPATH": path})
    try:
        yield Kernel(manager)
    finally:
        manager.shutdown_kernel(now=True)


@pytest.mark.slow
def test_each_of_twenty_is_a_clear_error_and_the_kernel_answers(kernel):
    assert len(HARM) >= 20
    ours = {kind.__name__ for kind in LabError.__subclasses__()}
    for name, content, spec, words in HARM:
        kernel.upload("good.csv", ROWS, "")  # a log that can be read empties the box
        assert kernel.value(BOX) == []
        kernel.upload(name, content, spec)
        (kind, message, trace), *_ = kernel.value(BOX)
        assert (kind in ours, trace) == (True, []), (name, spec, kind, message)
        assert "expected" in message
        assert words in message
        assert kernel.value("1 + 1") == 2
    kernel.upload("good.csv", ROWS, "")
    assert kernel.value("[len(explorer.trace_of(explorer.setting)), explorer.error.outputs]") == [1, ()]
    assert kernel.value(
        "int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) < 4e6"
    )  # kB; not the parent's
