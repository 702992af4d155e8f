"""Scenes of the notebooks: jobs, tables and loops that their figures need, a module for each lesson that has some."""
