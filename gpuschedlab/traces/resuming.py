"""Downloads that go on where they stopped."""

import os
import re
import urllib.error
import urllib.request
from pathlib import Path

from gpuschedlab._extras import need

CHUNK, TIMEOUT = 1 << 18, 60.0  # bytes, s


class Resuming:
    """A downloader for pooch that keeps a partial download in a .part file, and requests the rest of it next time."""

    def __init__(self, part: Path, *, resume: bool, progress: bool):
        self.part, self.resume, self.progress = part, resume, progress

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
            shown = {"unit": "B", "unit_scale": True, "disable": None if self.progress else True}
            bar = need("tqdm.auto", "progress bars").tqdm(desc=self.part.stem, total=total, initial=have, **shown)
            with self.part.open("ab" if have else "wb") as file, bar:
                while chunk := answer.read(CHUNK):
                    file.write(chunk)
                    bar.update(len(chunk))
        size = self.part.stat().st_size
        if total is not None and size != total:
            raise ConnectionError(f"the connection closed after {size:,} of {total:,} bytes")


def _extent(answer, have: int) -> tuple[int, int | None]:
    """Return the byte that an answer begins at, and the size of the whole file (None: unknown)."""
    length = answer.headers.get("Content-Length")
    span = re.match(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range") or "")
    if answer.status == 206 and span and int(span[1]) == have:
        return have, None if span[2] == "*" else int(span[2])
    if answer.status == 206:
        raise ConnectionError(f"the server sent {span[0] if span else 'a part'}, not the bytes from {have:,} on")
    return 0, None if length is None else int(length)
