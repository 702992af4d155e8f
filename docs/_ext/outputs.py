"""Outputs of cells on a page: widgets are left out, since no kernel answers there and their figures stand beside them."""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

WIDGET = "application/vnd.jupyter.widget-view+json"


class DropWidgets(SphinxPostTransform):
    """Remove outputs that are views of widgets, before one of their other forms (a text such as `Box()`) is chosen."""

    default_priority = 1

    def run(self, **kwargs):
        """Remove them from the present document."""
        for bundle in list(self.document.findall(_is_bundle)):
            if any(getattr(child, "get", lambda _: None)("mime_type") == WIDGET for child in bundle.children):
                bundle.parent.remove(bundle)


def _is_bundle(node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "mime_bundle"


def drop_state(app, doctree):
    """Leave out the state of widgets, megabytes that only a page with a widget manager reads."""
    metadata = getattr(app.env, "nb_metadata", {}).get(app.env.docname, {})
    metadata.get("js_files", {}).pop("ipywidgets_state", None)


def setup(app):
    """Register the transform, and what pages depend on besides their text."""
    app.add_config_value("lab_code", "", "env", types=[str])
    app.connect("doctree-read", drop_state)
    app.add_post_transform(DropWidgets)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
