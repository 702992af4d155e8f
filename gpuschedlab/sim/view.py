"""What a round policy may know at one instant."""

from functools import cached_property

import numpy as np

from gpuschedlab.cluster.placement import SLOTS
from gpuschedlab.sim.engine.state import RUNNING

_FIELDS = ("submit", "gpus", "attained", "executed", "progress", "estimate", "deadline", "reward", "queued")
_FIELDS += ("contention", "model", "kind", "user", "vc")


class View:
    """Submitted and unfinished jobs as arrays of length n, in order of submission; the true work is not among them.

    Attributes
    ----------
    now, interval : float
        Present time and seconds to the next round.
    index : (n,) int
        Row of each job in the trace.
    submit, age, attained, executed, estimate, deadline, queued : (n,) float
        Seconds (attained: GPU-seconds); estimate is of the whole duration on the requested GPUs, deadline is an
        instant.
    gpus, progress, reward, contention : (n,) float
        Requested GPUs; work done; reward; average GPUs demanded over GPUs up since submission.
    model, kind, user, vc : (n,) int
        Codes; model indexes `speeds.models`, -1 without one.
    gpu_type, running_nodes, restarts : (n,) int
        Type held (-1: not running), nodes held, starts after the first.
    running_gpus, restart, pause : (n,) float
        GPUs held; seconds of delay at a restart; seconds of it left now.
    seconds_on : (n, T) float
        Seconds run on each GPU type.
    cluster, capacity, speeds
        The cluster, (T,) GPUs up, and the speed table or None.
    memory : dict
        Carried from round to round.
    """

    def __init__(self, simulation, index: np.ndarray):
        self._state = simulation.state
        self.index = index
        self.cluster = simulation.cluster
        self.speeds = simulation.speeds
        self.memory = simulation.memory
        self.now = float(self._state.scalar["now"][0])
        self.interval = float(self._state.rule["interval"][0])

    def __len__(self):
        return len(self.index)

    def __getattr__(self, name):
        if name not in _FIELDS:
            raise AttributeError(f"a view has no {name!r}; it has {', '.join(_FIELDS)} and what its docstring lists.")
        values = self._state.job[name][self.index]
        if name in ("gpus", "attained"):
            values = values * self._state.body["jobs"][self.index]
        setattr(self, name, values)
        return values

    @cached_property
    def age(self) -> np.ndarray:
        """(n,) seconds since submission."""
        return self.now - self.submit

    @cached_property
    def running(self) -> np.ndarray:
        """(n,) bool, holding GPUs now."""
        return self._state.job["state"][self.index] == RUNNING

    @cached_property
    def gpu_type(self) -> np.ndarray:
        """(n,) GPU type held, -1 when waiting."""
        return np.where(self.running, self._state.body["type"][self.index], -1)

    @cached_property
    def running_gpus(self) -> np.ndarray:
        """(n,) GPUs held."""
        return (self._state.job["held"] * self._state.body["jobs"])[self.index]

    @cached_property
    def running_nodes(self) -> np.ndarray:
        """(n,) nodes held."""
        return np.where(self.running, self._state.body["nodes"][self.index], 0)

    @cached_property
    def restarts(self) -> np.ndarray:
        """(n,) starts after the first."""
        return np.maximum(self._state.job["starts"][self.index] - 1, 0)

    @cached_property
    def restart(self) -> np.ndarray:
        """(n,) seconds of delay at a restart."""
        return self._state.body["restart"][self.index] + self._state.body["switch"][self.index]

    @cached_property
    def pause(self) -> np.ndarray:
        """(n,) seconds of delay still to pass before a running job progresses."""
        return np.where(self.running, self._state.body["pause"][self.index], 0.0)

    @cached_property
    def seconds_on(self) -> np.ndarray:
        """(n, T) seconds run on each type."""
        return self._state.seconds_on[self.index]

    @cached_property
    def capacity(self) -> np.ndarray:
        """(T,) GPUs up now of each type."""
        pools = self._state.pools
        return np.bincount(pools["type"], weights=pools["size"], minlength=len(self.cluster.gpu_types)) / SLOTS

    def rates(self, types, nodes, gpus) -> np.ndarray:
        """Progress a second now of each job in each of C configurations.

        Parameters
        ----------
        types, nodes, gpus : (C,) int arrays
            Index into `cluster.gpu_types`, number of nodes, GPUs in all.

        Returns
        -------
        (n, C) array
            nan where a job cannot run so. A job without a model goes at 1 on its requested GPUs of any type.
        """
        types, nodes, gpus = (np.asarray(a, np.int64) for a in (types, nodes, gpus))
        out = np.where(self.gpus[:, None] == gpus, 1.0, np.nan)
        known = self._state.type_map[types]
        if self.speeds is not None:
            told = self.model >= 0
            table = self.speeds.rates(self.model[told], self.progress[told], np.maximum(known, 0), nodes, gpus)
            out[told] = np.where(known >= 0, table, np.nan)
        return out
