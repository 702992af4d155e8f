"""The folder of reference data: built from a local server with the artifacts' paths, resumed, verified, and what is not public."""

import hashlib
import pickle
import re
import urllib.parse
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from reproduce.reference import build, layouts
from reproduce.reference.__main__ import main
from reproduce.reference.artifact_files import artifact_files
from reproduce.reference.artifacts import NOT_PUBLIC, RECIPES, Recipe, each
from reproduce.reference.build import build_reference

pytest.importorskip("pooch")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PATH = f"owner/artifact/raw/{COMMIT}/some folder/jobs-{{load}}.csv"
FILES = {
    f"owner/artifact/raw/{COMMIT}/some%20folder/jobs-1.csv": b"name,time\na,1.5\nb,2\n",
    f"owner/artifact/raw/{COMMIT}/some%20folder/jobs-2.csv": b"name,time\r\nc,0.30000000000000004\r\n",
}
HELD = pl.DataFrame({"load": [1, 1, 2], "name": ["a", "b", "c"], "time": [1.5, 2.0, 0.1 + 0.2]})


@pytest.fixture
def small(monkeypatch, server):
    """A server of two files, which make one table."""
    schema = {"load": pl.Int64, "name": pl.String, "time": pl.Float64}
    recipe = Recipe(layouts.rows, each(PATH, of=[{"load": 1}, {"load": 2}]))
    monkeypatch.setattr(build, "RECIPES", {"profiles/held.parquet": recipe})
    content = build.Content(3, build.checksum(HELD), schema)
    monkeypatch.setattr(build, "contents", lambda: {"profiles/held.parquet": content})
    server.files.update(FILES)
    return server


def test_a_table_is_built_of_its_files_once(small, tmp_path):
    found = build_reference(tmp_path, base_url=f"{small.url}/")
    assert (found.built, found.kept, found.failed) == (("profiles/held.parquet",), (), {})
    assert_frame_equal(pl.read_parquet(tmp_path / "profiles/held.parquet"), HELD)
    again = build_reference(tmp_path, base_url="http://127.0.0.1:1")
    assert (again.built, again.kept, again.failed) == ((), ("profiles/held.parquet",), {})
    assert [path for path, _ in small.asked] == [f"/{name}" for name in FILES]


def test_a_broken_download_goes_on_where_it_stopped(small, tmp_path):
    small.breaks = 12
    found = build_reference(tmp_path, base_url=small.url)
    assert not found.built
    assert "jobs-1.csv: found the connection closed after 12 of 20 bytes" in found.failed["profiles/held.parquet"]
    assert build_reference(tmp_path, base_url=small.url).built == ("profiles/held.parquet",)
    assert [r for _, r in small.asked] == [None, "bytes=12-", None]
    assert_frame_equal(pl.read_parquet(tmp_path / "profiles/held.parquet"), HELD)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"name,time\na,1.5\nb,2.5\n", "found 3 rows with SHA256 [0-9a-f]{64}"),
        (b"name,time\na,1.5\n", "found 2 rows with SHA256"),
        (b"<html>Sign in</html>", r"found nothing readable \(ColumnNotFoundError: "),
        (b"", r"found nothing readable \(NoDataError: "),
    ],
)
def test_what_is_not_what_was_published_is_refused_and_removed(small, tmp_path, body, found):
    first = next(iter(FILES))
    small.files[first] = body
    text = build_reference(tmp_path, base_url=small.url).failed["profiles/held.parquet"]
    digits = build.checksum(HELD)
    pattern = (
        rf"reference profiles/held.parquet: {found}.*; expected 3 rows with SHA256 {digits} of their values, from "
    )
    assert re.search(pattern, text), text
    assert f"{small.url}/owner/artifact/raw/{COMMIT}/some folder/jobs-1.csv and 1 more. What was" in text
    assert text.endswith("call again; if it stays so, its owner has changed it.")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    small.files[first] = FILES[first]
    assert build_reference(tmp_path, base_url=small.url).built == ("profiles/held.parquet",)


def test_a_damaged_table_is_built_again_without_the_network(small, tmp_path):
    build_reference(tmp_path, base_url=small.url)
    pl.DataFrame({"load": [1]}).write_parquet(tmp_path / "profiles/held.parquet")
    assert build_reference(tmp_path, base_url="http://127.0.0.1:1").built == ("profiles/held.parquet",)
    assert_frame_equal(pl.read_parquet(tmp_path / "profiles/held.parquet"), HELD)


def test_a_table_that_fails_does_not_stop_the_others(small, tmp_path, monkeypatch):
    lost = Recipe(layouts.rows, each(f"owner/artifact/raw/{COMMIT}/lost.csv"))
    held = build.RECIPES["profiles/held.parquet"]
    content = build.contents()["profiles/held.parquet"]
    monkeypatch.setattr(build, "RECIPES", {"profiles/lost.parquet": lost, "profiles/held.parquet": held})
    monkeypatch.setattr(build, "contents", lambda: dict.fromkeys(build.RECIPES, content))
    found = build_reference(tmp_path, base_url=small.url)
    assert found.built == ("profiles/held.parquet",)
    assert "lost.csv: found HTTP Error 404" in found.failed["profiles/lost.parquet"]


def test_the_command_says_what_it_built_and_what_is_not_public(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GPUSCHEDLAB_DATA_DIR", str(tmp_path))
    assert main(["--mirror", small.url]) == 0
    said = capsys.readouterr().out
    assert "built  profiles/held.parquet" in said
    assert all(f"{file}: {why}" in said for file, why in NOT_PUBLIC.items())
    small.files.clear()
    (tmp_path / "profiles/held.parquet").unlink()
    (tmp_path / f"sources/owner/artifact/raw/{COMMIT}/some folder/jobs-2.csv").unlink()
    assert main([str(tmp_path), "--mirror", small.url]) == 1
    said = capsys.readouterr()
    assert "jobs-2.csv: found HTTP Error 404" in said.err
    assert "inputs/: small logs" in said.out
    monkeypatch.delenv("GPUSCHEDLAB_DATA_DIR")
    assert main([]) == 2
    assert "reference: found no FOLDER; expected one, or GPUSCHEDLAB_DATA_DIR" in capsys.readouterr().err


def test_checksums_tell_names_values_order_and_emptiness_apart():
    frames = [
        {"x": [1.0, 2.0]},
        {"y": [1.0, 2.0]},
        {"x": [2.0, 1.0]},
        {"x": [1.0, None]},
        {"x": ["1.0", "2.0"]},
        {"x": ["1.0", None]},
        {"x": ["1.0", ""]},
        {"x": [1.0, 2.0], "y": [0, 0]},
    ]
    sums = [build.checksum(pl.DataFrame(frame)) for frame in frames]
    assert len(set(sums)) == len(frames)
    assert build.checksum(pl.DataFrame({"x": [1, 2]})) == sums[0]
    by_hand = b"x\n" + bytes.fromhex("000000000000f03f0000000000000040")
    assert sums[0] == hashlib.sha256(by_hand).hexdigest()


def test_a_pickle_that_runs_code_is_refused(tmp_path):
    file = tmp_path / "bert.pkl"
    file.write_bytes(pickle.dumps({"configs": Path()}))
    with pytest.raises(pickle.UnpicklingError, match=r"pathlib\S* in a pickle, which is no plain data"):
        layouts.goodputs([file], {})


def test_every_source_is_pinned_and_every_table_described():
    files = {name for recipe in RECIPES.values() for part in recipe.parts for name in part.files}
    for name in files:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+/raw/[0-9a-f]{40}/.+", name), name
    assert set(build.contents()) == set(RECIPES)
    assert all(content.rows > 0 and len(content.sha256) == 64 for content in build.contents().values())
    # As the repositories show them.
    assert (
        "siasosp23/artifacts/raw/aaf7a0de7b6cb5eab06ea020467ede5d2fd18e70/sia-simulator/workloads/scale/rate_10/"
        "workload-2.csv" in files
    )
    assert (
        "gaow0007/TitanSched/raw/a43fea897715dd26ae4aa24dea8a2e75b8cd6ede/result/main/titan/FM-1.5-vit-True-True/"
        "titan_fairness.csv" in files
    )


def test_the_folder_equals_the_shared_one_row_by_row(data_dir, server, tmp_path):
    """What an owner's server would send is made of the shared tables; what is built of it must be these tables again."""
    server.files.update({urllib.parse.quote(name, safe=build.COMMON): body for name, body in artifact_files(data_dir)})
    found = build_reference(tmp_path, base_url=server.url, progress=False)
    assert found.failed == {}
    assert found.built == tuple(RECIPES)
    for file in RECIPES:
        load = pl.read_csv if file.endswith(".csv") else pl.read_parquet
        assert_frame_equal(load(tmp_path / file), load(data_dir / file))
    there = {
        path.relative_to(data_dir).as_posix()
        for part in ("reference", "profiles", "traces", "inputs/shockwave")
        for path in Path(data_dir / part).rglob("*")
        if path.is_file() and path.name != "README.md"
    }
    assert there == set(RECIPES) | {file for file in NOT_PUBLIC if not file.endswith("/")}
