"""Explorers of single systems and questions, each shown in a notebook."""
