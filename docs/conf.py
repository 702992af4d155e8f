"""How Sphinx builds the site; `make docs` runs assemble.py first, which puts its sources together in build/."""

import os
import sys
import tomllib
import warnings
from html import escape
from pathlib import Path
from textwrap import shorten

from docutils.nodes import paragraph

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests"), str(HERE / "_ext")]
os.environ.setdefault("TQDM_DISABLE", "1")
# Kernels without the user's settings, which log errors only: they warn of TCP on every start.
_kernels = HERE.parent / "build" / "docs-ipython"
(_kernels / "profile_default").mkdir(parents=True, exist_ok=True)
(_kernels / "profile_default" / "ipython_kernel_config.py").write_text('c.Application.log_level = "ERROR"\n')
os.environ["IPYTHONDIR"] = str(_kernels)

from settings import EXECUTE, REPOSITORY, code  # noqa: E402

_project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]

project = "gpuschedlab"
author = _project["authors"][0]["name"]
version = release = _project["version"]
copyright = f"{author}. Version {version}"

extensions = [
    "sphinx.ext.autodoc",
    "mathml",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "docstrings",
    "outputs",
    "once",
    "redirects",
]
html_math_renderer = "mathml"
default_role = "name"
nitpicky = True
exclude_patterns = []
suppress_warnings = ["mystnb.unknown_mime_type"]

# Docstrings -----------------------------------------------------------------------------------------------------
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
# numpydoc reads classes once more for their signatures, before docstrings.py takes this section out.
warnings.filterwarnings("ignore", "Unknown section Differs From The Paper In")
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False
python_use_unqualified_type_names = True

# Notebooks and pages with cells ---------------------------------------------------------------------------------
nb_execution_mode = "cache" if EXECUTE else "off"
# What other code has computed is not shown: it has a folder of its own, and pages are read again (`lab_code`).
lab_code = code()
nb_execution_cache_path = str(HERE.parent / "build" / "docs-cache" / lab_code)
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
nb_ipywidgets_js = {}
# Widgets need a kernel; what they display beside themselves, the figures as HTML, does not.
nb_mime_priority_overrides = [("*", "application/vnd.jupyter.widget-view+json", None)]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline", "dollarmath"]
myst_heading_anchors = 3
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = ">>> "

# The pages ------------------------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "gpuschedlab"
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}
html_static_path = ["_static", "../build/docs-static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "show_toc_level": 2,
    # Elsewhere figures get the width that a table of contents would take.
    "secondary_sidebar_items": {
        pattern: ["page-toc"] for pattern in ("howto/*", "systems/*", "api/*", "install", "contributing", "course")
    },
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    **({"github_url": f"https://github.com/{REPOSITORY}"} if REPOSITORY else {}),
}
html_sidebars = {"index": [], "install": [], "changelog": [], "contributing": [], "glossary": []}


def describe(app, page, template, context, doctree):
    """Say in the page's head what it is about, for search engines: its first paragraph of some length, or else what the project is."""
    texts = [" ".join(part.astext().split()) for part in doctree.findall(paragraph)] if doctree is not None else []
    words = next((text for text in texts if len(text) > 50), _project["description"])
    said = f'<meta name="description" content="{escape(shorten(words, 160, placeholder=" ..."))}">'
    context["metatags"] = context.get("metatags", "") + said


def setup(app):
    """Connect what is ours."""
    app.connect("html-page-context", describe)
