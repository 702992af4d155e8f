"""The race that is watched."""
