"""Optional parts: the one place that imports them, and says in one line which package is missing and how to get it."""

import importlib
from types import ModuleType

from gpuschedlab.errors import MissingExtra

_LAB = ("anywidget", "ipywidgets", "jupyterlab", "matplotlib", "nbformat", "papermill", "voila")
#: What each extra is for, and the packages (as imported) it brings.
EXTRAS = {
    "plots": ("plots", ("plotly",)),
    "estimators": ("learned estimators", ("kmedoids", "sklearn", "xgboost")),
    "optim": ("the optimisation solvers", ("highspy", "mip")),
    "traces": ("downloads of published traces", ("pooch",)),
    "sweep": ("sweeps", ("cloudpickle", "joblib", "dask", "distributed", "tqdm")),
    "lab": ("explorers and notebooks", ("IPython", "PIL", "traitlets", *_LAB)),
    "causal": ("causal graphs", ("causallearn", "networkx")),
    "causalnex": ("causal networks", ("pandas", "pathos", "pyparsing", "statsmodels", "threadpoolctl")),
    "gym": ("environments for learning agents", ("gymnasium",)),
    "autosched": ("black-box tuners", ("lightgbm", "optuna")),
    "arena": ("rivals in the solver arena", ("ortools",)),
}

#: They say Python < 3.11, numpy < 1.24, pandas < 2 and torch: no extra can hold them, as pip would refuse it.
UNBOUND = {"causalnex": "0.12.2", "pgmpy": "0.1.19"}

#: Packages in no extra whose name is not the one that is imported.
NAMES = {"yaml": "pyyaml"}


def commands(extra: str) -> tuple[str, ...]:
    """Return a tuple of the lines that install an extra; CausalNex needs a second one."""
    pins = " ".join(f"{name}=={version}" for name, version in UNBOUND.items())
    second = (f"pip install --no-deps --ignore-requires-python {pins}",) if extra == "causalnex" else ()
    return f'pip install "gpuschedlab[{extra}]"', *second


def need(module: str, what: str = "") -> ModuleType:
    """Import an optional package and return the module; raise MissingExtra, which says how to install it, if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        brought = {package: extra_name for extra_name, (_, packages) in EXTRAS.items() for package in packages}
        extra = "causalnex" if top in UNBOUND else brought.get(top)
        needing_part = what or (EXTRAS[extra][0] if extra else "some parts")
        lacking = getattr(error, "name", None)
        # A package that is there but lacks one of its own, or cannot load: the cause must not be hidden.
        why = "" if lacking and lacking.partition(".")[0] == top else f" ({error})"
        way_out = ", then ".join(commands(extra)) if extra else f"pip install {NAMES.get(top, top)}"
        raise MissingExtra(f"{needing_part} need {top}{why}: {way_out}", name=top) from error


def has(module: str) -> bool:
    """Whether an optional package can be imported (it is imported to find out)."""
    try:
        need(module)
    except MissingExtra:
        return False
    return True
