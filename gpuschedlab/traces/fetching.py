"""Published traces by name: downloaded from their owners, resumed, verified, kept."""

from __future__ import annotations

import errno
import os
import re
import tarfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from gpuschedlab._extras import need
from gpuschedlab._files import sha256 as sha256_of
from gpuschedlab.errors import TraceError


class Dataset(NamedTuple):
    """A published trace, at its owner's address."""

    what: str
    licence: str
    address: str
    files: Mapping[str, str | None]  # name -> SHA256; none where the owner publishes none
    megabytes: float  # about how much is downloaded


with Path(__file__).with_name("datasets.toml").open("rb") as table:
    DATASETS: dict[str, Dataset] = {name: Dataset(**given) for name, given in tomllib.load(table).items()}


def catalog() -> dict[str, str]:
    """Return a dict of the published traces that `fetch` knows: name -> its content, size and licence, a sentence.

    Examples
    --------
    >>> catalog()["philly"]
    "Microsoft Philly, 117,325 jobs, 2017; read('philly', folder); 1056 MB; CC-BY-4.0"
    """
    return {
        dataset_name: f"{d.what}; {d.megabytes:g} MB; {d.licence}"
        + ("" if all(d.files.values()) else "; no checksum published (fetch with sha256=None)")
        for dataset_name, d in DATASETS.items()
    }


def fetch(
    name: str,
    *,
    folder: str | Path | None = None,
    sha256: str | Mapping[str, str] | Literal["known"] | None = "known",
    base_url: str | None = None,
    progress: bool = True,
) -> Path:
    """Download a published trace from its owner into the cache, verify and unpack it, and return its path.

    Once there, no network is needed.

    A download that stops goes on where it was at the next call. Files with a known checksum are verified whenever they
    are fetched.

    Parameters
    ----------
    name : str
        One of `catalog()`.
    folder : path, optional
        Cache; by default gpuschedlab in the cache folder of the operating system.
    sha256 : "known", str, mapping, or None
        Checksums: those that the owner publishes; one of your own (or by file name); or None, which takes any file if
        none is known, notes its checksum beside it, and holds later downloads to that.
    base_url : str, optional
        Another place of the same files, such as a mirror.
    progress : bool
        Whether to show a bar (on terminals only).

    Returns
    -------
    Path
        Folder of the files, unpacked.

    Raises
    ------
    TraceError
        The name or a checksum is not known, the file is not the one expected, the disk is full, or there is no network:
        then it says where to put files that were fetched otherwise.
    MissingExtra
        pooch is not installed.

    Examples
    --------
    >>> fetch("borg")
    Traceback (most recent call last):
    gpuschedlab.errors.TraceError: fetch: found the name 'borg'; expected one of philly, helios, pai, ...
    """
    if name not in DATASETS:
        raise TraceError(
            f"fetch: found the name {name!r}; expected one of {', '.join(DATASETS)}. See gpuschedlab trace list."
        )
    pooch = need("pooch")
    target = Path(pooch.os_cache("gpuschedlab") if folder is None else folder) / name
    dataset = DATASETS[name]
    # The checksum of a file that came without one is noted beside it.
    notes = {dataset_file: target / f"{dataset_file}.sha256" for dataset_file in dataset.files}
    checksums = {
        dataset_file: _checksum(name, dataset_file, published_checksum, sha256, notes[dataset_file])
        for dataset_file, published_checksum in dataset.files.items()
    }
    for dataset_file, checksum in checksums.items():
        url = f"{(base_url or dataset.address).rstrip('/')}/{dataset_file}"
        bring(url, target, resume=checksum is not None, checksum=checksum, progress=progress)
        if checksum is None:
            notes[dataset_file].write_text(sha256_of(target / dataset_file))
    return target


def _checksum(name: str, file: str, published_checksum: str | None, wanted_checksum, note: Path) -> str | None:
    """Return the checksum to hold a file to, a text; None takes any file."""
    if isinstance(wanted_checksum, Mapping):
        wanted_checksum = wanted_checksum.get(file, "known")
    if wanted_checksum not in ("known", None):
        checksum_text = str(wanted_checksum).lower()
        if len(checksum_text) != 64 or set(checksum_text) - set("0123456789abcdef"):
            raise TraceError(
                f"fetch {name}: found sha256={wanted_checksum!r} for {file}; expected 64 hexadecimal digits."
            )
        return checksum_text
    if published_checksum:
        return published_checksum
    if note.is_file():
        return note.read_text().strip()
    if wanted_checksum == "known":
        raise TraceError(
            f"fetch {name}: found no published checksum of {file}; expected one to verify it by. Pass sha256='...' if you "
            "have one, or sha256=None to take what comes: its checksum is noted, and later downloads are held to it."
        )
    return None


def bring(url: str, target: Path, *, resume: bool, checksum: str | None = None, progress: bool = False) -> None:
    """Bring one file into a folder, unless it is there, and unpack it; return nothing."""
    # To resume puts together what came at two times: a checksum, or a commit in the address, must say that they belong together.
    pooch = need("pooch")
    downloaded_file = url.rpartition("/")[2]
    unpack = {".gz": _untar, ".zip": pooch.Unzip(extract_dir=".")}.get(Path(downloaded_file).suffix)
    downloader = Resuming(target / f"{downloaded_file}.part", resume=resume, progress=progress)
    pooch.get_logger().setLevel("WARNING")
    known_hash = None if checksum is None else f"sha256:{checksum}"
    try:
        pooch.retrieve(url, known_hash, fname=downloaded_file, path=target, downloader=downloader, processor=unpack)
    except TraceError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            way_out = f"found {error.strerror} at {target}; expected room for it. Free some, or pass folder=."
        else:
            way_out = (
                f"found {error}; expected a connection to its owner. Call again to go on where it stopped; offline, get the "
                f"file elsewhere, put it at {target / downloaded_file}, and call again: it is verified and unpacked without the network."
            )
        raise TraceError(f"fetch {url}: {way_out}") from error
    except Exception as error:  # pooch: a wrong hash is a ValueError; archives have errors of their own
        raise TraceError(
            f"fetch {url}: found {error}; expected the file as its owner publishes it"
            f"{'' if checksum is None else f' (SHA256 {checksum})'}. Try again; if it stays so, the owner has changed the file."
        ) from error


def _untar(file: str, action: str, _) -> None:
    """Unpack a tar archive beside itself, in place, unless all its files are there; members that lead elsewhere are refused."""
    folder = Path(file).parent
    with tarfile.open(file) as tar:
        member_names = [tarfile.data_filter(member, str(folder)).name for member in tar]
        if action != "fetch" or not all((folder / member_name).exists() for member_name in member_names):
            tar.extractall(folder, filter="data")


CHUNK = 1 << 18
TIMEOUT = 60.0  # bytes, s


class Resuming:
    """A downloader for pooch that keeps a partial download in a .part file, and requests the rest of it next time."""

    def __init__(self, part: Path, *, resume: bool, progress: bool):
        self.part = part
        self.resume = resume
        self.progress = progress

    def __call__(self, url: str, output_file, pooch) -> None:
        """Download `url` to `output_file`."""
        self.part.parent.mkdir(parents=True, exist_ok=True)
        if not self.resume:
            self.part.unlink(missing_ok=True)
        try:
            self._go_on(url)
        except urllib.error.HTTPError as error:
            if error.code != 416:  # the part is no beginning of what is there now
                raise
            self.part.unlink(missing_ok=True)
            self._go_on(url)
        os.replace(self.part, output_file)

    def _go_on(self, url: str) -> None:
        have = self.part.stat().st_size if self.part.exists() else 0
        # Without this, a server may compress on the way, and byte ranges mean something else.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as answer:
            have, total = _extent(answer, have)
            # disable=None: only where standard error is a terminal.
            bar_options = {"unit": "B", "unit_scale": True, "disable": None if self.progress else True}
            bar = need("tqdm.auto", "progress bars").tqdm(desc=self.part.stem, total=total, initial=have, **bar_options)
            with self.part.open("ab" if have else "wb") as part_file, bar:
                while chunk := answer.read(CHUNK):
                    part_file.write(chunk)
                    bar.update(len(chunk))
        size = self.part.stat().st_size
        if total is not None and size != total:
            raise ConnectionError(f"the connection closed after {size:,} of {total:,} bytes")


def _extent(answer, have: int) -> tuple[int, int | None]:
    """Return a tuple: the number of the byte that an answer begins at, and the size of the whole file (None: unknown)."""
    length = answer.headers.get("Content-Length")
    span = re.match(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range") or "")
    if answer.status == 206 and span and int(span[1]) == have:
        return have, None if span[2] == "*" else int(span[2])
    if answer.status == 206:
        raise ConnectionError(f"the server sent {span[0] if span else 'a part'}, not the bytes from {have:,} on")
    return 0, None if length is None else int(length)
