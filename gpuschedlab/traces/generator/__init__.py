"""Traces like a published one: the figures measured in it, and the jobs drawn from them.

In all modules `submit` (s, ascending), `gpus` and `duration` (s) are arrays (n,) of the jobs; `batch` (n,) and `spell` are the
submission batch and the spell of work that each belongs to, from 0 up; `size` (b,) counts the jobs of each batch; `rng` is the
source of randomness.
"""
