"""Choices of each job in a round of Sia: configurations, and its goodput in each (thesis 3.3.3 and 3.3.4)."""

from dataclasses import dataclass

import numpy as np

from gpuschedlab._compiled import njit
from gpuschedlab.papers.sia.configurations import sia_configurations, sia_rigid


@dataclass
class Jobs:
    """The jobs of a round: their choices, their present GPUs, and how free they are.

    `types`, `nodes` and `gpus` (C,) are configurations that some job can have, `goodput` (n, C) that of each job in each, nan
    if it cannot run so, and `current` (n,) the configuration that it holds, -1 for none of these.
    """

    types: np.ndarray
    nodes: np.ndarray
    gpus: np.ndarray
    goodput: np.ndarray
    most: np.ndarray
    current: np.ndarray
    must: np.ndarray
    pinned: np.ndarray
    fixed: np.ndarray
    forced: np.ndarray
    penalty: float | np.ndarray = 0.0

    @classmethod
    def of(cls, view, most, templates: dict) -> "Jobs":
        """Return `Jobs` of a view, the most GPUs that each job ever held, and the templates of `_choices`."""
        types, nodes, gpus, goodput = _choices(view, templates)
        held_choice = (
            (view.gpu_type[:, None] == types) & (np.ceil(view.running_gpus)[:, None] == gpus) & ~np.isnan(goodput)
        )
        current = np.where(held_choice.any(axis=1), held_choice.argmax(axis=1), -1)
        must = view.declared("preemptible", 1.0) == 0.0
        pinned = must & (view.gpu_type >= 0)
        fixed = pinned | ((current >= 0) & (view.pause > 0))
        return cls(types, nodes, gpus, goodput, most, current, must, pinned, fixed, must & ~pinned)

    def least(self, types: int) -> np.ndarray:
        """Return an array (n, T): fewest GPUs of each type that a job can run on, inf if it cannot."""
        return _fewest(self.goodput, self.types, self.gpus, types)


def _choices(view, templates: dict) -> tuple[np.ndarray, ...]:
    """Return a tuple of arrays: regular configurations, with goodputs. Jobs that run on none of these have the GPUs that they ask for.

    `templates`: kept from round to round, the configurations by the models that are there.
    """
    where = (view.cluster.node_type, view.cluster.node_gpus)
    requested_gpus = np.ceil(view.gpus).astype(np.int64)
    # Which are there, as flags: np.unique would take longer than the look-up.
    models, asks = (np.bincount(a) > 0 for a in (view.model[view.elastic], requested_gpus[~view.elastic]))
    template_key = (models.tobytes(), asks.tobytes())
    if template_key not in templates:
        types, nodes, gpus = sia_configurations(*where)
        # Those that rigid jobs ask for, or in which some model has a rate: 1 % of all in a large cluster.
        useful = np.isin(gpus, np.flatnonzero(asks))
        if models.any():
            speed_types = view.speeds.type_codes(view.cluster.gpu_types)[types]
            places = view.speeds.places(speed_types, nodes, gpus)[np.flatnonzero(models)]
            useful |= (places >= 0).any(axis=0)
        templates[template_key] = types[useful], nodes[useful], gpus[useful]
    types, nodes, gpus = templates[template_key]
    goodput = view.rates(types, nodes, gpus)
    rigid = ~(goodput > 0).any(axis=1)
    if rigid.any():
        extra = sia_rigid(requested_gpus[rigid], *where)
        also = view.rates(*extra)
        also[~rigid[:, None] | (requested_gpus[:, None] != extra[2])] = np.nan
        types, nodes, gpus = (np.concatenate(pair) for pair in zip((types, nodes, gpus), extra, strict=True))
        goodput = np.concatenate([goodput, also], axis=1)
    least = view.declared("min_gpus", 0.0)
    max_gpus = view.declared("max_gpus", np.inf)
    if least.any() or np.isfinite(max_gpus).any():
        goodput[(gpus < least[:, None]) | (gpus > max_gpus[:, None])] = np.nan
    return types, nodes, gpus, goodput


@njit
def _fewest(goodput, kinds, gpus, types):
    """Return an array (n, T) of the fewest GPUs, as `Jobs.least`."""
    fewest_gpus = np.full((goodput.shape[0], types), np.inf)
    for i in range(goodput.shape[0]):
        for c in range(goodput.shape[1]):
            if goodput[i, c] > 0:
                fewest_gpus[i, kinds[c]] = min(fewest_gpus[i, kinds[c]], gpus[c])
    return fewest_gpus
