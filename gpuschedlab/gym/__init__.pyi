"""Public names of `gym`, by module; loaded at first use."""

from .agent import Agent as Agent, first_come as first_come
from .dispatch import FEATURES as FEATURES, Dispatch as Dispatch
from .environment import REWARDS as REWARDS, SchedulingEnv as SchedulingEnv
