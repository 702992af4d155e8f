"""What Sphinx's parts would do for each docstring or page alike is done once: the site is built sooner, and is the same."""

from functools import cache

from numpydoc import docscrape_sphinx
from sphinx.search.en import SearchEnglish


def setup(app):
    """Read the template of docstrings once; find the stem of a word once."""
    make = docscrape_sphinx.SandboxedEnvironment
    kept = []

    def environment(loader):
        if not kept:
            kept.append(make(loader=loader))
        return kept[0]

    docscrape_sphinx.SandboxedEnvironment = environment
    SearchEnglish.stem = cache(SearchEnglish.stem)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
