"""Public names of `policies`, by module; loaded at first use. Their order is that of `ALL`; those of papers come after them."""

from collections.abc import Mapping

from gpuschedlab.papers import *  # noqa: F403
from gpuschedlab.sim.policy import Policy

from .simple import Fifo as Fifo, Sjf as Sjf, Srtf as Srtf, Edf as Edf
from .tiresias import Tiresias as Tiresias
from .themis import Themis as Themis
from .lucid import Lucid as Lucid
from .themis import ThemisRounds as ThemisRounds

ALL: Mapping[str, type[Policy]]
