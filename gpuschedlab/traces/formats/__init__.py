"""Readers of published trace formats, one format a file."""
