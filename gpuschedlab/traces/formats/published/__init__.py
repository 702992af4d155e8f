"""Traces that companies and universities have published."""
