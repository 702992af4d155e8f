"""The books of every run that a simulation gives in a test, added up again: after switches and copies as well."""

from gpuschedlab.check.recount import books_add_up
from gpuschedlab.sim.simulation import Simulation

MOST = 50
"""Jobs of a run whose progress is followed."""


def add_up(monkeypatch):
    """Let every simulation from the beginning of its trace raise an AssertionError where a run's books do not add up; how many did."""
    begin = Simulation.__init__
    result = Simulation.result
    switch = Simulation.switch
    counted = []

    def begun(self, scenario, policy, *, start=0.0, initial=None, usage=None, log=False):
        begin(self, scenario, policy, start=start, initial=initial, usage=usage, log=log)
        self.scenario = scenario
        self.past = None if start or initial is not None else ((self.now, self.policy),)

    def switched(self, policy):
        switch(self, policy)
        self.past = self.past and (*self.past, (self.now, policy))

    def added_up(self, last=False):
        run = result(self, last)
        if self.past is not None:
            problem = books_add_up(run, self.scenario, self.past, MOST)
            assert problem is None, f"{' then '.join(p.name for _, p in self.past)}: {problem}"
            counted.append(run)
        return run

    monkeypatch.setattr(Simulation, "__init__", begun)
    monkeypatch.setattr(Simulation, "switch", switched)
    monkeypatch.setattr(Simulation, "result", added_up)
    return counted
