"""What each configuration is worth.

One round of Sia: the utility of each configuration of two jobs, and the choice. The second job gains more from fast GPUs.
"""

# Group: Systems
# Notebook: 05_sia
import numpy as np

from gpuschedlab import plots

kinds, counts = np.array([0, 0, 0, 1, 1, 1]), np.array([1, 2, 4, 1, 2, 4])
names = [f"{n} {('slow', 'fast')[k]}" for k, n in zip(kinds, counts, strict=True)]
goodput = np.array([[1.0, 1.9, 3.5, 2.5, 4.7, 8.7], [1.0, 1.5, 2.3, 6.0, 9.1, 13.8]])
given = {"names": names, "jobs": ("wide", "picky"), "power": -0.5, "penalty": 1.1}

figure = plots.figure(plots.worth(goodput, kinds, counts, np.array([4, 2]), **given))
