"""Explorers in a real browser: every opening drawn, and what a move costs, in JupyterLab and in Voila."""
