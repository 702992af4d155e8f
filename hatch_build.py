"""What an index shows of the package: addresses, and the README with links that lead to the repository; and the machine code of a wheel.

The repository is `repository` of [tool.gpuschedlab] in pyproject.toml, or what GitHub's workflows say. Where none is named there
are no addresses, and the README has neither links to its files nor pictures.

GPUSCHEDLAB_MACHINE_CODE names a folder of machine code (`make dist`): the wheel carries it, and is for this Python and platform.
"""

import os
import re
import tomllib
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)]+)\)\n*")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


class CustomBuildHook(BuildHookInterface):
    """Puts machine code into a wheel."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Add the folder of machine code, if one is named."""
        folder = os.environ.get("GPUSCHEDLAB_MACHINE_CODE", "")
        if folder and self.target_name == "wheel" and version == "standard":
            build_data["force_include"][folder] = "gpuschedlab/_compiled/machine_code"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


class CustomMetadataHook(MetadataHookInterface):
    """Adds `urls` and `readme`, which pyproject.toml calls dynamic."""

    def update(self, metadata: dict) -> None:
        """Put them into the metadata."""
        text, named = Path(self.root, "README.md").read_text(encoding="utf-8"), repository(Path(self.root))
        metadata["urls"] = urls(named)
        metadata["readme"] = {"content-type": "text/markdown", "text": readme(text, named)}


def repository(root: Path) -> str:
    """OWNER/NAME on GitHub; "" where none is named."""
    own = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["gpuschedlab"]["repository"]
    return own or os.environ.get("GITHUB_REPOSITORY", "")


def urls(repository: str) -> dict[str, str]:
    """Addresses of a repository OWNER/NAME on GitHub, and of the site that its workflow publishes."""
    if not repository:
        return {}
    owner, _, name = repository.partition("/")
    home, site = f"https://github.com/{repository}", f"https://{owner.lower()}.github.io/{name}"
    return {
        "Homepage": site,
        "Documentation": site,
        "Repository": home,
        "Issues": f"{home}/issues",
        "Changelog": f"{home}/blob/HEAD/CHANGELOG.md",
        "Binder": f"https://mybinder.org/v2/gh/{repository}/HEAD?labpath=notebooks/00_quickstart.ipynb",
    }


def readme(text: str, repository: str) -> str:
    """The README for a page outside the repository."""
    if not repository:
        return LINK.sub(r"\1", PICTURE.sub("", text))
    text = PICTURE.sub(rf"![\1](https://raw.githubusercontent.com/{repository}/HEAD/\2)\n\n", text)
    return LINK.sub(rf"[\1](https://github.com/{repository}/blob/HEAD/\2)", text)
