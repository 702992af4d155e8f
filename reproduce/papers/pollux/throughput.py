"""Pollux's throughput model: seconds a step from seven parameters, their fit to measured steps, and the best batch size."""

from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from gpuschedlab.errors import SpeedError

FITTED = Path(__file__).with_name("throughput.csv")
"""Parameters of seven models on up to six GPU types, fitted by `fit_throughput` to the step times of the Sia artifact, with their
errors (reproduce/papers/sia/fits.py)."""

FLOOR = 1e-8
"""Least value of a parameter, at which terms stay that nothing was measured of (s)."""

CANDIDATES = 50
"""Batch sizes tried, in geometric steps (Sia artifact)."""


@dataclass(frozen=True)
class Throughput:
    """Seconds of a training step of one model on one GPU type.

    With m examples on each of r GPUs over n nodes, and k accumulated passes before the step: T_acc = a_c + b_c m; T_net =
    a + b max(r - 2, 1e-8), with (a_n, b_n) for n > 1, (a_r, b_r) for r > 1 on one node, and nothing on one GPU; T = k T_acc
    + (T_acc^g + T_net^g)^(1/g).

    Parameters
    ----------
    a_c, b_c : float
        Seconds of a pass, and of each example in it.
    a_n, b_n : float
        Seconds of synchronisation between nodes, and of each GPU beyond two.
    a_r, b_r : float
        The same on one node.
    gamma : float
        1: computing and synchronisation follow each other; 10: they overlap.

    References
    ----------
    Qiao et al., Pollux, OSDI'21, section 3.2.

    Examples
    --------
    >>> model = Throughput(0.1, 0.01, 0.2, 0.0, 0.05, 0.0, 1.0)
    >>> model.step(nodes=[1, 1, 2], gpus=[1, 4, 8], local=[10, 10, 10]).round(3).tolist()
    [0.2, 0.25, 0.4]
    """

    a_c: float
    b_c: float
    a_n: float
    b_n: float
    a_r: float
    b_r: float
    gamma: float

    def computing(self, local) -> np.ndarray:
        """Seconds of a pass over `local` examples on each GPU."""
        return self.a_c + self.b_c * np.asarray(local, float)

    def network(self, nodes, gpus) -> np.ndarray:
        """Seconds of synchronisation."""
        nodes = np.asarray(nodes)
        gpus = np.asarray(gpus)
        more = np.maximum(gpus - 2.0, 1e-8)
        within = np.where(gpus > 1, self.a_r + self.b_r * more, FLOOR)
        return np.where(nodes > 1, self.a_n + self.b_n * more, within)

    def step(self, nodes, gpus, local, accumulated=0) -> np.ndarray:
        """Seconds of a step with so many examples on each GPU in each pass."""
        passes = self.computing(local)
        net = self.network(nodes, gpus)
        # The larger of the two is taken out of the power: neither overflows, whatever gamma.
        top = np.maximum(passes, net)
        joint = top * ((passes / top) ** self.gamma + (net / top) ** self.gamma) ** (1 / self.gamma)
        return np.asarray(accumulated) * passes + joint

    def examples(self, nodes, gpus, local, accumulated=0) -> np.ndarray:
        """Examples a second."""
        total = np.asarray(gpus) * np.asarray(local) * (np.asarray(accumulated) + 1)
        return total / self.step(nodes, gpus, local, accumulated)


def fit_throughput(nodes, gpus, local, step, sync, start: Throughput | None = None) -> tuple[Throughput, float]:
    """Fit the seven parameters to measured steps.

    The sum of the root mean squared logarithmic errors of step and of step less synchronisation is made small, with 1e-3
    (gamma - 1)^2 and 1e-2 ((b_n / a_n)^2 + (b_r / a_r)^2) against parameters that the measurements say little of; terms that
    they say nothing of stay at their floor.

    Parameters
    ----------
    nodes, gpus, local : (k,) arrays
        What was measured.
    step, sync : (k,) arrays
        Seconds of a step without accumulation, and of synchronisation in it.
    start : Throughput, optional
        Parameters from which to start: those so far, when there are a few more measurements (online refinement).

    Returns
    -------
    model : Throughput
    error : float
        Root mean squared logarithmic error of the steps.

    Examples
    --------
    >>> true = Throughput(0.1, 0.01, 0.2, 0.02, 0.05, 0.01, 1.5)
    >>> n, r, m = (a.ravel() for a in np.meshgrid([1, 2], [2, 4, 8], [8, 32, 128]))
    >>> found, error = fit_throughput(n, r, m, true.step(n, r, m), true.step(n, r, m) - true.computing(m))
    >>> error < 0.02
    True
    """
    from scipy.optimize import minimize

    nodes, gpus, local, step, sync = (np.asarray(a, float) for a in (nodes, gpus, local, step, sync))
    passes = np.log(np.maximum(step - sync, 1e-6))
    target = np.log(step)
    seen = np.array([True, True, *[(nodes > 1).any()] * 2, *[((nodes == 1) & (gpus > 1)).any()] * 2, True])
    seen[3] &= bool(((nodes > 1) & (gpus > 2)).any())
    seen[5] &= bool(((nodes == 1) & (gpus > 2)).any())
    seen[6] &= bool((gpus > 1).any())

    def model_of(x) -> Throughput:
        return Throughput(*np.where(seen, np.append(np.exp(x[:6]), x[6]), [FLOOR] * 6 + [1.0]))

    def loss(x) -> float:
        m = model_of(x)
        off = np.log(m.step(nodes, gpus, local)) - target
        off_passes = np.log(m.computing(local)) - passes
        ridge = 1e-3 * (m.gamma - 1) ** 2
        ridge += 1e-2 * sum((b / a) ** 2 for a, b, s in ((m.a_n, m.b_n, seen[3]), (m.a_r, m.b_r, seen[5])) if s)
        # A root has a corner at 0, where the search would stop: it is rounded off by a thousandth.
        return float(sum(np.sqrt((o**2).mean() + 1e-6) for o in (off, off_passes)) + ridge)

    typical = max(float(np.median(step)), 1e-3)
    x0 = np.append(np.log([typical / 2, typical / 2 / np.median(local), *([typical / 10, typical / 100] * 2)]), 2.0)
    if start is not None:  # a term that was at its floor starts as if it were new: there, small steps change nothing
        before = np.array(astuple(start))
        known = before[:6] > 10 * FLOOR
        x0[:6] = np.where(known, np.log(np.maximum(before[:6], FLOOR)), x0[:6])
        x0[6] = start.gamma if known[2:].any() else x0[6]
    bounds = [(np.log(FLOOR), np.log(1e4))] * 6 + [(1.0, 10.0)]
    model = model_of(minimize(loss, x0, method="L-BFGS-B", bounds=bounds).x)
    return model, float(np.sqrt(((np.log(model.step(nodes, gpus, local)) - target) ** 2).mean()))


@cache
def fitted() -> pl.DataFrame:
    """Read the fitted parameters (`FITTED`): `model, gpu_type`, the parameters, `min_local, max_local, rows, error`.

    Examples
    --------
    >>> fitted().filter(model="bert", gpu_type="aws").select("max_local", "rows").row(0)
    (12, 720)
    """
    return pl.read_csv(FITTED, comment_prefix="#")


def throughput_of(model: str, gpu_type: str) -> Throughput:
    """Fitted parameters of one model on one GPU type.

    Raises
    ------
    SpeedError
        There are none.
    """
    rows = fitted().filter(model=model, gpu_type=gpu_type)
    if rows.is_empty():
        known = ", ".join(sorted({f"{m}/{t}" for m, t in fitted().select("model", "gpu_type").iter_rows()}))
        raise SpeedError(f"throughput_of: found no fit of {model!r} on {gpu_type!r}; expected one of {known}.")
    return Throughput(*(rows[f.name][0] for f in fields(Throughput)))
