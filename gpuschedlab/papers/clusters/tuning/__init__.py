"""A site's own knobs, tuned on its log."""
