"""Traces like a published one: the figures measured in it, and the jobs drawn from them."""
