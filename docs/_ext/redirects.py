"""Pages that left the site: where each stood, a page leads on to what took its place."""

from pathlib import Path
from posixpath import dirname, relpath

MOVED = {
    "howto/own-csv": "howto/own-log",
    "notebooks/01_traces": "notebooks/01_waiting",
    "notebooks/03_placement": "notebooks/01_waiting",
    "notebooks/07_scale": "notebooks/06_copter",
    "notebooks/08_other_problems": "notebooks/06_copter",
    "notebooks/11_autosched_results": "notebooks/11_arena",
}
"""Old page to new one, as Sphinx names them."""


def stub(old: str, new: str) -> str:
    """A page in the old one's place, which needs no script."""
    there = f"{relpath(new, dirname(old))}.html"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Moved</title>'
        f'<meta http-equiv="refresh" content="0; url={there}"><link rel="canonical" href="{there}">'
        f'</head><body><p>This page is now <a href="{there}">{new}</a>.</p></body></html>'
    )


def write(app, exception):
    """Write the stubs of those whose new page is there, once the pages are written."""
    if exception or app.builder.format != "html":
        return
    for old, new in MOVED.items():
        if new in app.env.found_docs:
            path = Path(app.outdir) / f"{old}.html"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(stub(old, new), encoding="utf-8")


def setup(app):
    """Register what is written at the end."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
