"""One line of a race: the policies that were in force, from when on, and the service that the race's jobs got under them."""

import numpy as np

from gpuschedlab.sim import Scenario

HOUR = 3600.0


def by_hours(simulation, until: float):
    """Play a simulation on to an instant (s) with a stop at each jobs_of_race hour: sums are rounded as in a race."""
    hour = np.floor(simulation.now / HOUR + 1e-9) + 1
    while hour * HOUR < until:
        simulation.advance(hour * HOUR)
        hour += 1
    simulation.advance(until)


class Line:
    """A schedule of policies on a scenario, played as far as the race is.

    Parameters
    ----------
    scenario : Scenario
    policy : Policy
        In force from 0 on.

    Attributes
    ----------
    switches : list of (float, Policy)
        Instants (s), ascending, and the policy in force from then on; the first is at 0.
    simulation : Simulation
        Played as far as the race is.

    Examples
    --------
    >>> import gpuschedlab as lab
    >>> from gpuschedlab.check.samples import small_trace
    >>> line = Line(lab.Scenario(small_trace(), lab.Cluster.homogeneous(2, 8)), lab.Fifo())
    >>> line.advance(600.0)
    >>> line.switch(lab.Srtf())
    >>> [(at, policy.name) for at, policy in line.switches]
    [(0.0, 'Fifo'), (600.0, 'Srtf')]
    """

    def __init__(self, scenario: Scenario, policy):
        self.scenario = scenario
        self.switches = [(0.0, policy)]
        self.simulation = scenario.simulation(policy)

    @property
    def policy(self):
        """`Policy` in force now."""
        return self.switches[-1][1]

    @property
    def now(self) -> float:
        """Instant (s) up to which it is played."""
        return self.simulation.now

    def advance(self, until: float):
        """Play on to an instant (s)."""
        by_hours(self.simulation, until)

    def switch(self, policy):
        """Put another policy in force from now on."""
        if policy == self.policy:
            return
        if self.switches[-1][0] == self.now:
            self.switches.pop()
        self.switches.append((self.now, policy))
        self.simulation.switch(policy)

    def note(self):
        """Take in a switch that somebody else made in the simulation."""
        policy = self.simulation.policy
        if policy != self.policy:
            self.switches.append((self.now, policy))

    def on(self, scenario: Scenario):
        """Go on with other jobs to come: the same switches are played again, on a scenario with the same jobs so far."""
        line_time = self.now
        self.scenario = scenario
        self.simulation = self.replayed(line_time)

    def replayed(self, until: float, count: int | None = None):
        """Return the `Simulation` at an instant (s; inf: the end) under the first `count` switches, by default under all."""
        (_, first_policy), *later = self.switches[:count]
        simulation = self.scenario.simulation(first_policy)
        for switch_time, policy in later:
            if switch_time > until:
                break
            by_hours(simulation, switch_time)
            simulation.switch(policy)
        by_hours(simulation, min(until, self.now))
        simulation.advance(until)
        return simulation

    def ends(self, count: int | None = None) -> np.ndarray:
        """Return an array (n,) of the ends of all jobs (s) if no further switch is made after the first `count`.

        The end of a job that never ends is inf.
        """
        simulation = self.replayed(np.inf, count)
        return simulation.snapshot().jobs["end"]
