"""Files that are written whole or not at all, checksums in and beside them, and JSON lines that a killed process may have cut off."""

import contextlib
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from gpuschedlab.errors import MOST_CELLS, MOST_ROWS

KEY = "gpuschedlab sha256"
"""Entry of a parquet file's metadata: the checksum of all its bytes, those of the checksum itself taken as zeros."""

SEAL = b'{"sha256":"%b","record":'
"""What a file of JSON that carries its own checksum begins with."""

UNREADABLE = (
    *(OSError, EOFError, zlib.error, ValueError, OverflowError, RecursionError, MemoryError),
    *(pl.exceptions.PolarsError, pl.exceptions.PanicException),
)
"""What is raised where a file does not hold what was expected: by the disk, gzip, encodings, JSON and polars."""


def reason(error: BaseException) -> str:
    """Write the error in one line."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a path to write a file to, which takes the place of `path` when that is done; a write that fails leaves no trace."""
    # In the same folder, since a rename is atomic only within one file system.
    part_file = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part_file
        os.replace(part_file, path)
    finally:
        part_file.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return the checksum of a file, a text of 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sums(files: Mapping[str, Path]) -> str:
    """Return the checksums of files by name as text, as `sha256sum -c` reads them."""
    return "".join(f"{sha256(path)}  {file_name}\n" for file_name, path in files.items())


def verify(path: Path, note: Path):
    """Check a file against its line in a file of `sums`, which must have one; without a note a file is as good as any."""
    if not note.exists():
        return
    sum_lines = note.read_text(errors="replace").splitlines()
    checksum_of_name = {
        file_name: digits for digits, _, file_name in (sum_line.partition("  ") for sum_line in sum_lines)
    }
    if path.name not in checksum_of_name:
        raise OSError(f"no checksum of it in {note.name}, which was cut off or emptied")
    if checksum_of_name[path.name] != sha256(path):
        raise OSError(f"other bytes than were written: its checksum is not that in {note.name}")


def parquet(frame: pl.DataFrame, metadata: Mapping[str, str] = {}, **options) -> bytes:
    """Return the bytes of a parquet file of a frame, which carries its own checksum (`KEY`), for `frame_of`.

    Options are those of `polars.DataFrame.write_parquet`.
    """
    parquet_bytes = io.BytesIO()
    frame.write_parquet(parquet_bytes, metadata={**metadata, KEY: "0" * 64}, **options)
    raw = parquet_bytes.getvalue()
    checksum_start, _ = _sum_in(raw)
    parquet_bytes.seek(checksum_start)
    parquet_bytes.write(hashlib.sha256(raw).hexdigest().encode())
    return parquet_bytes.getvalue()


def _sum_in(raw: bytes) -> tuple[int, int] | None:
    """Return the place of the checksum in the bytes of a parquet file, a pair (start, end), or None if it has none.

    It comes after the key, and two bytes of type and length.
    """
    checksum_start = raw.rfind(KEY.encode()) + len(KEY) + 2
    return None if checksum_start < len(KEY) + 2 else (checksum_start, checksum_start + 64)


def frame_of(raw: bytes) -> pl.DataFrame:
    """Read the frame of a parquet file that is unchanged since it was written; one without a checksum is taken as it is."""
    if checksum_place := _sum_in(raw):  # before it is opened: polars may take the whole process down with a harmed file
        checksum_start, checksum_stop = checksum_place
        checksum = hashlib.sha256()
        for hashed_part in (
            memoryview(raw)[:checksum_start],
            b"0" * 64,
            memoryview(raw)[checksum_stop:],
        ):  # without a copy of a large file
            checksum.update(hashed_part)
        if checksum.hexdigest().encode() != raw[checksum_start:checksum_stop]:
            raise OSError("other bytes than were written: its checksum is not that in its metadata")
    try:
        row_count = pl.scan_parquet(raw).select(pl.len()).collect().item()
        column_count = len(pl.read_parquet_schema(raw))
        if row_count > MOST_ROWS or row_count * column_count > MOST_CELLS:
            raise OSError(
                f"{row_count:,} rows of {column_count} columns; expected at most {MOST_ROWS:,}, and {MOST_CELLS:,} values"
            )
        return pl.read_parquet(raw)
    except UNREADABLE as error:
        raise OSError(reason(error)) from error


def read_frame(path: Path, note: Path | None = None) -> pl.DataFrame:
    """Read the frame of a parquet file that is unchanged since it was written, by its own checksum and by that in `note`."""
    if note is not None:
        verify(path, note)
    return frame_of(path.read_bytes())


def sealed(record: dict) -> bytes:
    """Return the bytes of a record in JSON behind the checksum of its bytes, for `unsealed`."""
    record_json = json.dumps(record, separators=(",", ":")).encode()
    return SEAL % hashlib.sha256(record_json).hexdigest().encode() + record_json + b"}\n"


def unsealed(raw: bytes) -> dict:
    """Return the record of a `sealed` file, a dict; raise OSError if the bytes are not those that were written."""
    json_start = len(SEAL % (b"0" * 64))
    record_json = raw[json_start:-2]
    if raw != SEAL % hashlib.sha256(record_json).hexdigest().encode() + record_json + b"}\n":
        raise OSError("other bytes than were written: its checksum is not that in its first field")
    return json.loads(record_json)


def append_line(path: Path, record: dict, *, durable: bool = False):
    """Append a record as a line of JSON; a line that a killed process cut off is ended before."""
    # A `durable` one is on disk, not only with the system, when this returns.
    with path.open("ab+") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(record).encode() + b"\n")
        if durable:
            file.flush()
            os.fsync(file.fileno())


def json_lines(path: Path) -> Iterator[dict]:
    """Yield the dicts of a file with one in a line of JSON, but for lines that are none; nothing if there is no file."""
    for json_line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError, RecursionError):  # a killed process leaves half a line
            if isinstance(json_record := json.loads(json_line), dict):
                yield json_record
