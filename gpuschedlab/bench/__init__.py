"""Measurements of this project against its budgets and against published figures."""
