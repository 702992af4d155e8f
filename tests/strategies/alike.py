"""Whether two objects are the same, if they have no equality of their own: part by part, arrays and generators too."""

from dataclasses import fields, is_dataclass

import numpy as np
import polars as pl
import scipy.sparse as sp


def alike(one: object, other: object) -> bool:
    """Return whether two objects are of one class and have the same parts, or are equal."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, pl.DataFrame | pl.Series):
        return one.equals(other)
    if isinstance(one, sp.sparray):
        return alike(one.toarray(), other.toarray())
    if isinstance(one, np.random.Generator):
        return one.bit_generator.state == other.bit_generator.state
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(alike, one.values(), other.values()))
    if is_dataclass(one):
        return all(alike(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if type(one).__eq__ is not object.__eq__:
        return bool(one == other) or one != one
    if callable(one) or not hasattr(one, "__dict__"):
        return False
    return alike(vars(one), vars(other))


def is_plain(value: object) -> bool:
    """Return whether the text of a value is an expression that makes it again: numbers, texts, tuples, and dataclasses of such."""
    if isinstance(value, dict):
        return is_plain(tuple(value.items()))
    if isinstance(value, tuple | list):
        return all(map(is_plain, value))
    if is_dataclass(value) and value.__dataclass_params__.frozen and type(value).__eq__ is not object.__eq__:
        return all(is_plain(getattr(value, field.name)) for field in fields(value) if field.repr)
    return value is None or type(value) in (bool, int, float, str)
