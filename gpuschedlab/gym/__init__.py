"""Scheduling as an environment for learning agents (Gymnasium), and the trained agent as a policy.

`gymnasium.make("gpuschedlab/Scheduling-v0", scenario=scenario)` makes the environment once this module is imported, and
`Agent(act)` is a policy that asks a function for the same actions. The policy needs no Gymnasium.
"""

from gpuschedlab._extras import has
from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)

if has("gymnasium"):
    import gymnasium

    gymnasium.register(id="gpuschedlab/Scheduling-v0", entry_point="gpuschedlab.gym.environment:SchedulingEnv")
