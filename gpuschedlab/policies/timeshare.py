"""The time-sharing penalty of Sia (thesis 3.5.6): jobs that had little service lately cost more without GPUs."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Service:
    """Seconds with GPUs of each job over the last `window` seconds, and the penalty that follows.

    lambda_i = (window - s_i) / interval, or / window as printed; 0 for `window` seconds after a window of full service.
    Only in rounds in which some job waits: otherwise, for p < 0, jobs that were served would leave GPUs idle.

    Parameters
    ----------
    window : float
        tau, s; 0: the penalty is constant.
    over : {"interval", "window"}
        What the missing service is divided by: the round's length (the likely meaning, since the text names it), or tau
        (as printed: it never exceeds 1, at which p < 0 starves every job on its least configuration).

    Examples
    --------
    >>> from types import SimpleNamespace as View
    >>> service = Service(180.0)
    >>> view = View(now=600.0, interval=60.0, index=np.array([0, 1]), executed=np.array([0.0, 60.0]), gpu_type=np.array([-1, 0]))
    >>> service.penalty(view, 1.1).tolist()
    [3.0, 2.0]
    """

    window: float = 0.0
    over: str = "interval"
    seen: list = field(default_factory=list)
    rested: dict = field(default_factory=dict)

    def penalty(self, view, constant: float) -> float | np.ndarray:
        """Cost (n,) of a job without GPUs; the constant where nothing is shared."""
        if not self.window:
            return constant
        executed = dict(zip(view.index.tolist(), view.executed.tolist(), strict=True))
        self.seen.append((view.now, executed))
        while len(self.seen) > 1 and self.seen[1][0] <= view.now - self.window:
            self.seen.pop(0)
        before = self.seen[0][1] if self.seen[0][0] <= view.now - self.window else {}
        served = np.array([s - before.get(i, 0.0) for i, s in executed.items()])
        full = served >= self.window - 1e-6
        for i in view.index[full].tolist():
            self.rested.setdefault(i, view.now + self.window)
        self.rested = {i: until for i, until in self.rested.items() if until > view.now and i in executed}
        if (view.gpu_type >= 0).all():
            return constant
        rests = np.array([i in self.rested for i in executed])
        missing = np.maximum(self.window - served, 0.0) / (view.interval if self.over == "interval" else self.window)
        return np.where(rests, 0.0, missing)
