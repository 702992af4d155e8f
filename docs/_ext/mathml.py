"""Formulas as MathML, which browsers show by themselves: pages ask for no script of another site."""

from docutils import nodes
from latex2mathml.converter import convert


def inline(writer, node):
    """Write a formula of a sentence."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(writer, node):
    """Write a formula on a line of its own."""
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app):
    """Add the renderer; no other is asked for."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
