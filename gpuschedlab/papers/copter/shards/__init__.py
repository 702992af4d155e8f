"""Balanced shards on servers, as programs and by methods."""
