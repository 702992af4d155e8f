"""Numbers of GPUs that a job may have: powers of two on one node, and whole nodes."""

import numpy as np


def sizes_on(nodes, gpus_per_node) -> tuple[np.ndarray, np.ndarray]:
    """Type and GPUs of each, by type and size; nodes of each type, and their GPUs."""
    found = [
        (kind, g)
        for kind, (count, size) in enumerate(zip(nodes, gpus_per_node, strict=True))
        for g in sorted({2**k for k in range(size.bit_length())} | {size * n for n in range(1, count + 1)})
    ]
    return tuple(np.array(found).T)
