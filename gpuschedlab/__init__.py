"""A laboratory for GPU-cluster scheduling of deep-learning work: one simulator, one job model, every published scheduler.

The public names stand in `__init__.pyi`. Each is loaded when it is first used, so that the import itself is quick.
"""

from gpuschedlab._faces import attach

_load, __dir__ = attach(__name__)


def __getattr__(name: str):
    if name != "__version__":
        return _load(name)
    from importlib.metadata import version

    return version(__name__)
