"""Rounds of Gavel's own simulator: which starts cost nothing, and when a round ends."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from gpuschedlab.knobs import Knob
from gpuschedlab.policies.remaining import requested_rates, work_left
from gpuschedlab.sim.policy import Round, Wrapped
from gpuschedlab.sim.rounds.allocation import Allocation
from gpuschedlab.sim.rounds.view import View

SPARED = "spared"
"""Kind of start of `Delays.kinds` that is named for jobs whose start costs nothing."""


@dataclass(frozen=True)
class LenientRounds(Wrapped):
    """Let a round policy decide, and be lenient about starts and the ends of rounds.

    A job that is in two rounds on end goes on at no cost. Others lose the delay of a start, unless the round is the first one, or
    they would end `spare` seconds before it does. For these the kind of start "spared" is named: `Delays(switch=20,
    kinds={"spared": 0})` has it.

    Differs from the paper in
    -------------------------
    The paper charges each start for the checkpoint. These exceptions are those of the simulator of its artifact, which Shockwave's
    artifact uses, too; there the time that a job still needs is known exactly, here as the estimator says.

    References
    ----------
    Narayanan et al., Gavel, OSDI'20, section 5; Zheng et al., Shockwave, NSDI'23, artifact (scheduler/scheduler.py).

    Examples
    --------
    >>> from gpuschedlab.policies import Gavel
    >>> LenientRounds(Gavel(interval=120.0), spare=5.0).name
    'LenientRounds(Gavel)'
    """

    policy: Round
    spare: Annotated[
        float, Knob(0, 36_000, unit="s", help="before the end of a round; a job that ends by then starts freely")
    ] = 5.0
    free_moves: Annotated[bool, Knob(help="whether jobs move to other nodes at no cost")] = True
    ends_with_jobs: Annotated[bool, Knob(help="whether a round ends when the last of its jobs ends")] = True

    def allocate(self, view: View) -> Allocation:
        """Ask the policy, name the kind of each start, and return its `Allocation`."""
        answer = self.policy.allocate(view)
        if len(view) == 0:
            return answer
        rate = np.nan_to_num(requested_rates(view))
        seconds = work_left(view) / np.maximum(rate.max(axis=1), 1e-300)
        first_round = not view.has_run(np.arange(view.submitted)).any()
        spared = seconds <= view.interval - self.spare
        named = np.full(len(view), "", object) if answer.delay is None else np.array(answer.delay, object)
        named[(named == "") & (spared | first_round)] = SPARED
        return replace(answer, delay=named)
