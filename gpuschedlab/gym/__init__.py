"""Scheduling as an environment for learning agents (Gymnasium), and the trained agent as a policy.

`gymnasium.make("gpuschedlab/Scheduling-v0", scenario=scenario)` makes the environment once this module is imported, and
`Agent(act)` is a policy that asks a function for the same actions. The policy needs no Gymnasium.
"""

import lazy_loader

from gpuschedlab._extras import has

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

if has("gymnasium"):
    import gymnasium

    gymnasium.register(id="gpuschedlab/Scheduling-v0", entry_point="gpuschedlab.gym.environment:SchedulingEnv")
