"""POP: its wrapper."""
