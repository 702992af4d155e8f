"""`gpuschedlab versions`: versions of the package and of the packages that it uses."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.text import as_json, pairs

PARTS = ("plotly", "scikit-learn", "xgboost", "highspy", "mip", "pooch", "tqdm", "joblib", "dask", "jupyterlab")
"""Packages of optional parts that are listed."""


def add(parser):
    """Add the arguments."""
    add_json(parser)


def versions(args) -> int:
    """Print them, and return exit code 0."""
    found_versions = {
        package_name: _version(package_name)
        for package_name in ("gpuschedlab", "numpy", "polars", "numba", "scipy", *PARTS)
    }
    found_versions |= {"python": sys.version.split()[0], "platform": platform.platform()}
    if args.json:
        print(as_json(found_versions))
    else:
        print(pairs({package_name: version or "not installed" for package_name, version in found_versions.items()}))
    return 0


def _version(package_name: str) -> str | None:
    try:
        return version(package_name)
    except PackageNotFoundError:
        return None
