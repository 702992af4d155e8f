"""What is stored is read back to the bit, or not at all."""

import contextlib
import subprocess

import numpy as np
import polars as pl
import pytest

import gpuschedlab as lab
from gpuschedlab._files import KEY
from gpuschedlab.check import small_trace
from gpuschedlab.errors import RunError, TraceError
from gpuschedlab.sim.run import FRAMES, SUMS
from gpuschedlab.sweep import sweep
from gpuschedlab.traces import read_parquet, write_parquet

CLUSTER = lab.Cluster.homogeneous(2, 8)


def flip(path, place: int):
    """Flip a bit of a file."""
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)


def test_250_flipped_bits_of_a_trace_are_refused_or_change_nothing(tmp_path):
    """The file alone, as it is copied and sent: its checksum is within it."""
    trace = small_trace()
    path = write_parquet(trace, tmp_path / "trace.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["trace.parquet"]
    told = []
    for place in np.linspace(0, path.stat().st_size - 1, 250).astype(int):
        flip(path, place)
        try:
            assert read_parquet(path).equals(trace), "a bit of the checksum's own name, at most"
        except TraceError as error:
            told.append(str(error))
        flip(path, place)
    assert len(told) >= 245
    for words in ("trace.parquet: found other bytes than were written", "if another program has changed it"):
        assert all(words in text for text in told)
    assert read_parquet(path).equals(trace)


def test_no_bit_of_the_checksum_or_beside_it_changes_a_trace(tmp_path):
    trace = small_trace(3)
    path = write_parquet(trace, tmp_path / "trace.parquet")
    raw = path.read_bytes()
    start = raw.rfind(KEY.encode())
    for place in range(start - 3, start + len(KEY) + 70):
        for bit in range(8):
            path.write_bytes(raw[:place] + bytes([raw[place] ^ (1 << bit)]) + raw[place + 1 :])
            with contextlib.suppress(TraceError):  # and nothing else is raised, such as polars' PanicException
                assert read_parquet(path).equals(trace)


def test_a_trace_of_others_needs_no_checksum(tmp_path):
    path = tmp_path / "trace.parquet"
    small_trace().write_parquet(path)
    assert read_parquet(path).equals(read_parquet(write_parquet(small_trace(), path)))
    pl.read_parquet(path).head(5).write_parquet(path)
    assert read_parquet(path).height == 5
    assert not list(tmp_path.glob(".*"))


def test_what_is_stored_is_the_same_each_time(tmp_path):
    first, second = (write_parquet(small_trace(), tmp_path / name) for name in ("a.parquet", "b.parquet"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", [*(f"{name}.parquet" for name in FRAMES), "info.json"])
def test_a_flipped_bit_in_a_run_is_refused(tmp_path, name):
    folder = lab.simulate(small_trace(), CLUSTER, lab.Fifo()).to_parquet(tmp_path / "run")
    assert subprocess.run(["sha256sum", "-c", SUMS], cwd=folder, check=False, capture_output=True).returncode == 0
    size = (folder / name).stat().st_size
    flip(folder / name, size // 2)
    with pytest.raises(RunError, match=rf"{name}: found other bytes than were written"):
        lab.Run.from_parquet(folder)
    flip(folder / name, size // 2)
    (folder / SUMS).unlink()
    assert lab.Run.from_parquet(folder).jobs.height == small_trace().height
    if name != "info.json":
        flip(folder / name, size // 2)  # its own checksum holds without the others
        with pytest.raises(RunError, match=rf"{name}: found other bytes than were written"):
            lab.Run.from_parquet(folder)


def test_a_panic_of_polars_is_told_in_our_own_way(tmp_path, monkeypatch):
    def panics(_):
        raise pl.exceptions.PanicException("index out of bounds")

    path = write_parquet(small_trace(), tmp_path / "trace.parquet")
    folder = lab.simulate(small_trace(), CLUSTER, lab.Fifo()).to_parquet(tmp_path / "run")
    monkeypatch.setattr(pl, "read_parquet", panics)
    with pytest.raises(TraceError, match="index out of bounds"):
        read_parquet(path)
    with pytest.raises(RunError, match="index out of bounds"):
        lab.Run.from_parquet(folder)


@pytest.mark.parametrize("kept", [0, 100, 400])
def test_checksums_that_were_emptied_or_cut_off_vouch_for_nothing(tmp_path, kept):
    folder = lab.simulate(small_trace(), CLUSTER, lab.Fifo()).to_parquet(tmp_path / "run")
    (folder / SUMS).write_bytes((folder / SUMS).read_bytes()[:kept])
    with pytest.raises(RunError, match=f"found no checksum of it in {SUMS}"):
        lab.Run.from_parquet(folder)


def test_what_is_no_file_in_a_files_place_is_set_aside_by_a_sweep(tmp_path):
    scenario = lab.Scenario(small_trace(), CLUSTER)
    again = lambda: sweep(scenario, [lab.Fifo()], tmp_path, keep_runs=True, progress=False)  # noqa: E731
    again()
    (cell,) = tmp_path.glob("cells/*.json")
    (run,) = tmp_path.glob("runs/*")
    whole = cell.read_bytes()
    jobs = (run / "jobs.parquet").read_bytes()
    for path in (cell, run / "jobs.parquet", tmp_path / "sweep.json"):
        path.unlink()
        (path / "inside").mkdir(parents=True)
        again()
        assert (cell.read_bytes(), (run / "jobs.parquet").read_bytes()) == (whole, jobs)
        assert [found.name for found in path.parent.glob(f"{path.name}.*.aside/*")] == ["inside"]
    run.rename(tmp_path / "elsewhere")
    run.write_text("no folder")
    again()
    assert (run / "jobs.parquet").read_bytes() == jobs


@pytest.mark.parametrize("harm", ["cut off", "flipped", "gone", "emptied"])
def test_a_harmed_run_of_a_finished_sweep_is_run_again(tmp_path, harm):
    scenario = lab.Scenario(small_trace(), CLUSTER)
    sweep(scenario, [lab.Fifo(), lab.Srtf()], tmp_path, keep_runs=True, progress=False)
    harmed, fine = sorted(tmp_path.glob("runs/*/allocations.parquet"))
    whole = harmed.read_bytes()
    born = fine.stat().st_ino
    if harm == "cut off":
        harmed.write_bytes(whole[: len(whole) // 2])
    elif harm == "flipped":
        flip(harmed, len(whole) // 2)
    elif harm == "emptied":
        (harmed.parent / SUMS).write_text("")
    else:
        (harmed.parent / SUMS).unlink()
    sweep(scenario, [lab.Fifo(), lab.Srtf()], tmp_path, keep_runs=True, progress=False)
    assert harmed.read_bytes() == whole
    assert fine.stat().st_ino == born  # the other was left as it was
