"""GPUs kept free for nobody over some time, as a policy answers for them."""

import numpy as np

from gpuschedlab.errors import PolicyError


def reserved_now(view, reservations: tuple) -> dict[str, np.ndarray]:
    """Return a dict of the GPUs (T,) of each reservation (`Sia.reservations`) in force, by name; none of nodes that are down."""
    type_names = list(view.cluster.gpu_types)
    reservations_now = {}
    for k, (gpu_type, gpus, start, end) in enumerate(reservations):
        if gpu_type not in type_names or gpus > view.cluster.capacity[type_names.index(gpu_type)]:
            raise PolicyError(
                f"reservation {k}: found {gpus:g} GPUs of {gpu_type!r}; expected one of {type_names}, and no more than the "
                "cluster has. Change `reservations`."
            )
        if start <= view.now < end:
            reservations_now[f"reservation {k}"] = np.where(np.array(type_names) == gpu_type, float(gpus), 0.0)
    total_reserved = sum(reservations_now.values(), np.zeros(len(type_names)))
    return {
        reservation: np.minimum(g, view.capacity * g / np.maximum(total_reserved, 1e-9))
        for reservation, g in reservations_now.items()
    }


def next_edge(now: float, reservations: tuple) -> float:
    """Instant (s) at which the reservations next change; inf for never."""
    return min((t for *_, start, end in reservations for t in (start, end) if t > now), default=np.inf)
