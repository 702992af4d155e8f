"""Frames that have been validated: whether one has changed since then, and values that follow from its content alone.

A frame is known as an object, and compared with a copy of its content, as polars changes frames in place in many ways, and
numpy changes arrays that a frame may share. To compare takes microseconds, while to validate takes milliseconds.
"""

import weakref
from dataclasses import dataclass, field

import polars as pl


@dataclass(frozen=True, eq=False)
class Validated:
    """Content of a validated frame; `canonical` has that of its canonical form (None: it is in that form)."""

    content: pl.DataFrame  # handed out in copies only
    schema: pl.Schema
    canonical: "Validated | None" = None
    derived: dict[str, object] = field(default_factory=dict)  # values that follow from the content alone, by name

    def copy(self) -> pl.DataFrame:
        """Return a frame with the content of the canonical form, which `recall` knows."""
        form = self.canonical or self
        frame = form.content.clone()
        _keep(frame, form)
        return frame


_entries: dict[int, tuple[weakref.ref, Validated]] = {}
"""What is known of frames that are alive, by identity."""


def _keep(frame: pl.DataFrame, validated: Validated) -> None:
    """Know a frame as long as it lives."""
    identity = id(frame)

    def forget(reference: weakref.ref) -> None:
        if identity in _entries and _entries[identity][0] is reference:
            del _entries[identity]

    _entries[identity] = weakref.ref(frame, forget), validated


def remember(frame: pl.DataFrame, columns: list[str]) -> Validated:
    """Return a `Validated` that knows a frame that is valid and owns its memory (`owned`); `columns` are its own in canonical order."""
    canonical = None
    if columns != frame.columns:
        form = frame.select(columns)
        canonical = Validated(form, form.schema)
    validated = Validated(frame.clone(), frame.schema, canonical)
    _keep(frame, validated)
    return validated


def remember_equal(frame: pl.DataFrame, validated: Validated) -> None:
    """Know a frame if its content is that of another that is known; return nothing."""
    if _has(frame, validated):
        _keep(frame, validated)


def recall(frame: pl.DataFrame) -> Validated | None:
    """Return the `Validated` form of a frame, or None if it has not been validated, or has changed since."""
    reference, validated = _entries.get(id(frame), (None, None))
    if reference is None or reference() is not frame:
        return None
    if _has(frame, validated):
        return validated
    _entries.pop(id(frame), None)
    return None


def _has(frame: pl.DataFrame, validated: Validated) -> bool:
    """Whether a frame has some content; polars cannot compare columns of Python's objects, of which a trace needs none."""
    if frame.schema != validated.schema:
        return False
    if pl.Object not in validated.schema.values():
        return frame.equals(validated.content)
    comparable = pl.exclude(pl.Object)
    return frame.select(comparable).equals(validated.content.select(comparable))


def owned(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with the same content in memory of its own: polars takes arrays of numpy as they are, without a copy."""
    shared = pl.exclude(pl.String, pl.Boolean, pl.Object)  # those of other types polars may share
    return frame.with_columns(shared.gather(pl.int_range(pl.len())))
