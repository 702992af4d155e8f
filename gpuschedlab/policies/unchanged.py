"""Rounds in which nothing has changed: the inputs of a program, and whether an answer is already in force."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Inputs:
    """State that a round saw, kept to find out cheaply whether a later round sees the same."""

    # `seen` are attributes of the view, `ends` (n,) the progress up to which the rates of each job stay as they were.

    seen: dict[str, np.ndarray]
    ends: np.ndarray

    @classmethod
    def of(cls, view, *names: str) -> "Inputs":
        """Return `Inputs` that keep these attributes of a view, and how long its rates last."""
        has_speeds = view.speeds is not None
        ends = view.speeds.segment_ends(view.model, view.progress) if has_speeds else np.full(len(view.index), np.inf)
        return cls({view_attribute: getattr(view, view_attribute) for view_attribute in names}, ends)

    def hold(self, view) -> bool:
        """Whether all is as it was, and rates are, too."""
        same = all(
            np.array_equal(seen_value, getattr(view, view_attribute))
            for view_attribute, seen_value in self.seen.items()
        )
        return same and bool((view.progress <= self.ends).all())

    def last(self, view) -> bool:
        """Whether all rates stay as they are until the engine reports the end of a segment."""
        return bool((view.progress < self.ends).all())


def in_force(view, gpu_type, gpus) -> bool:
    """Whether all jobs hold the GPUs of an answer already, some of them GPUs."""
    answer_is_held = np.array_equal(np.where(gpus > 0, gpu_type, -1), view.gpu_type) and np.array_equal(
        gpus, view.running_gpus
    )
    return answer_is_held and bool((gpus > 0).any())
