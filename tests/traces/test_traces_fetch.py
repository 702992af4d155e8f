"""Downloads: from a local server, resumed, verified, kept, and offline."""

import hashlib
import io
import tarfile
import zipfile

import pytest

from gpuschedlab.errors import TraceError
from gpuschedlab.traces import catalog, fetch, fetching

pytest.importorskip("pooch")


def tarred(**files: str) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return held.getvalue()


BODY = bytes(range(256)) * 40


@pytest.fixture
def one(monkeypatch, server):
    """A dataset of one plain file with a known checksum."""
    server.files["log.bin"] = BODY
    files = {"log.bin": hashlib.sha256(BODY).hexdigest()}
    monkeypatch.setitem(fetching.DATASETS, "one", fetching.Dataset("a file", "none", server.url, files, 0.01))
    return server


def test_the_catalog_names_every_dataset_with_licence_and_size():
    told = catalog()
    assert {"philly", "helios", "pai", "itp", "pollux"} <= set(told)
    for name, dataset in fetching.DATASETS.items():
        assert dataset.licence in told[name]
        assert "MB" in told[name]
        assert dataset.address.startswith("https://")
        assert all(not h or len(h) == 64 for h in dataset.files.values())
        assert ("no checksum" in told[name]) == (not all(dataset.files.values()))


def test_a_file_is_fetched_once_and_then_without_network(one, tmp_path):
    folder = fetch("one", folder=tmp_path)
    assert (folder / "log.bin").read_bytes() == BODY
    assert fetch("one", folder=tmp_path, base_url="http://127.0.0.1:1") == folder
    assert one.asked == [("/log.bin", None)]
    assert [p.name for p in folder.iterdir()] == ["log.bin"]


def test_a_broken_download_goes_on_where_it_stopped(one, tmp_path):
    one.breaks = 1000
    with pytest.raises(TraceError, match=r"log.bin: found .*1,000 of 10,240 bytes.*Call again"):
        fetch("one", folder=tmp_path)
    assert (tmp_path / "one" / "log.bin.part").stat().st_size == 1000
    assert (fetch("one", folder=tmp_path) / "log.bin").read_bytes() == BODY
    assert one.asked == [("/log.bin", None), ("/log.bin", "bytes=1000-")]
    assert not (tmp_path / "one" / "log.bin.part").exists()


def test_a_server_without_ranges_starts_anew(one, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "log.bin.part").write_bytes(BODY[:100])
    one.ranges = False
    assert (fetch("one", folder=tmp_path) / "log.bin").read_bytes() == BODY


def test_a_part_longer_than_the_file_is_thrown_away(one, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "log.bin.part").write_bytes(BODY + b"more")
    assert (fetch("one", folder=tmp_path) / "log.bin").read_bytes() == BODY
    assert [r for _, r in one.asked] == ["bytes=10244-", None]


def test_what_is_not_what_was_published_is_refused(one, tmp_path):
    one.files["log.bin"] = BODY[:-1] + b"!"
    with pytest.raises(
        TraceError, match=r"log.bin: found .*hash.*expected the file as its owner publishes it \(SHA256"
    ):
        fetch("one", folder=tmp_path)
    assert not (tmp_path / "one" / "log.bin").exists()
    assert not (tmp_path / "one" / "log.bin.part").exists()
    one.files["log.bin"] = BODY
    assert (fetch("one", folder=tmp_path) / "log.bin").read_bytes() == BODY


def test_a_damaged_file_in_the_cache_is_fetched_again(one, tmp_path):
    file = fetch("one", folder=tmp_path) / "log.bin"
    file.write_bytes(b"damaged")
    assert (fetch("one", folder=tmp_path) / "log.bin").read_bytes() == BODY


def test_offline_it_says_what_to_do_and_that_works(one, tmp_path):
    with pytest.raises(TraceError, match="offline, get the file elsewhere, put it at") as told:
        fetch("one", folder=tmp_path, base_url="http://127.0.0.1:1")
    file = tmp_path / "one" / "log.bin"
    assert str(file) in str(told.value)
    file.write_bytes(BODY)
    assert fetch("one", folder=tmp_path, base_url="http://127.0.0.1:1") == file.parent


def test_a_file_that_is_not_there_any_more(one, tmp_path):
    one.files.clear()
    with pytest.raises(TraceError, match="log.bin: found .*404"):
        fetch("one", folder=tmp_path)


def test_archives_are_unpacked(monkeypatch, server, tmp_path):
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as made:
        made.writestr("data/Venus/cluster_log.csv", "b")
    bodies = {"x.tar.gz": tarred(**{"trace-data/cluster_job_log": "[]"}), "y.zip": zipped.getvalue()}
    server.files.update(bodies)
    files = {name: hashlib.sha256(body).hexdigest() for name, body in bodies.items()}
    monkeypatch.setitem(fetching.DATASETS, "two", fetching.Dataset("", "", server.url, files, 1))
    for _ in range(2):
        folder = fetch("two", folder=tmp_path)
        assert (folder / "trace-data/cluster_job_log").read_text() == "[]"
        assert (folder / "data/Venus/cluster_log.csv").read_text() == "b"
    assert len(server.asked) == 2


def linked(name: str, target: str, kind: bytes) -> bytes:
    """An archive of a file and a link."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("inside"))
        info = tarfile.TarInfo(name)
        info.type = kind
        info.linkname = target
        tar.addfile(info)
    return held.getvalue()


@pytest.mark.parametrize(
    "body",
    [
        tarred(**{"fine": "a", "../escaped": "b"}),
        tarred(**{"deep/../../escaped": "b"}),
        linked("../escaped", "inside", tarfile.LNKTYPE),
        linked("escaped", "../..", tarfile.SYMTYPE),
        linked("escaped", "/etc", tarfile.SYMTYPE),
        linked("escaped", "../../secret", tarfile.LNKTYPE),
    ],
    ids=["up", "down and up", "link placed outside", "link up", "absolute link", "hard link out"],
)
def test_archives_that_lead_out_of_the_cache_are_refused(monkeypatch, server, tmp_path, body):
    (tmp_path / "secret").write_text("mine")
    server.files["x.tar.gz"] = body
    files = {"x.tar.gz": hashlib.sha256(body).hexdigest()}
    monkeypatch.setitem(fetching.DATASETS, "evil", fetching.Dataset("", "", server.url, files, 1))
    for _ in range(2):  # the second time it is in the cache already
        with pytest.raises(
            TraceError, match=r"x.tar.gz: found .*(outside|absolute path).*expected the file as its owner publishes it"
        ):
            fetch("evil", folder=tmp_path / "cache")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cache", "secret"]
    assert [p.name for p in (tmp_path / "cache").iterdir()] == ["evil"]
    assert {p.name for p in (tmp_path / "cache" / "evil").iterdir()} <= {"x.tar.gz", "fine", "inside"}


def test_absolute_paths_in_archives_are_taken_as_relative(monkeypatch, server, tmp_path):
    outside = tmp_path / "outside"
    server.files["x.tar.gz"] = body = tarred(**{str(outside): "b"})
    files = {"x.tar.gz": hashlib.sha256(body).hexdigest()}
    monkeypatch.setitem(fetching.DATASETS, "evil", fetching.Dataset("", "", server.url, files, 1))
    folder = fetch("evil", folder=tmp_path / "cache")
    assert not outside.exists()
    assert (folder / str(outside).lstrip("/")).read_text() == "b"


def test_without_a_published_checksum_the_caller_decides(monkeypatch, server, tmp_path):
    server.files["log.bin"] = BODY
    monkeypatch.setitem(fetching.DATASETS, "bare", fetching.Dataset("", "", server.url, {"log.bin": None}, 1))
    with pytest.raises(TraceError, match=r"no published checksum of log.bin.*sha256=None"):
        fetch("bare", folder=tmp_path)
    with pytest.raises(TraceError, match="expected 64 hexadecimal digits"):
        fetch("bare", folder=tmp_path, sha256="abc")
    with pytest.raises(TraceError, match="hash"):
        fetch("bare", folder=tmp_path, sha256={"log.bin": "0" * 64})
    file = fetch("bare", folder=tmp_path, sha256=None) / "log.bin"
    assert (tmp_path / "bare" / "log.bin.sha256").read_text() == hashlib.sha256(BODY).hexdigest()
    file.unlink()
    server.files["log.bin"] = b"something else"
    for again in (None, "known"):
        with pytest.raises(TraceError, match="hash"):
            fetch("bare", folder=tmp_path, sha256=again)


def test_without_a_checksum_parts_are_not_joined(monkeypatch, server, tmp_path):
    server.files["log.bin"] = BODY
    monkeypatch.setitem(fetching.DATASETS, "bare", fetching.Dataset("", "", server.url, {"log.bin": None}, 1))
    server.breaks = 1000
    with pytest.raises(TraceError, match="1,000 of 10,240"):
        fetch("bare", folder=tmp_path, sha256=None)
    assert (fetch("bare", folder=tmp_path, sha256=None) / "log.bin").read_bytes() == BODY
    assert [r for _, r in server.asked] == [None, None]
