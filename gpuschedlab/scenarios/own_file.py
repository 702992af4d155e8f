"""A trace from a file of one's own, on a cluster."""

from dataclasses import dataclass

from gpuschedlab.cluster import Cluster
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.recipe import Recipe
from gpuschedlab.speeds import default_speeds
from gpuschedlab.traces.readers.read import read_trace


@dataclass(frozen=True)
class OwnFile(Recipe):
    """Jobs of a file, which no seed changes.

    Parameters
    ----------
    file : str
        FILE.parquet, or FORMAT:PATH, such as csv:jobs.csv.
    cluster : str
        NODESxGPUS[:TYPE],...

    Raises
    ------
    TraceError
        There is no such file, or it is broken.

    Examples
    --------
    >>> OwnFile("nowhere.parquet")(seed=0)
    Traceback (most recent call last):
    gpuschedlab.errors.TraceError: trace 'nowhere.parquet': found no such file or preset; expected ...
    """

    file: str = "jobs.parquet"
    cluster: str = "70x8"

    def scenario(self, seed: int = 0) -> Scenario:
        """Jobs and cluster."""
        return Scenario(read_trace(self.file), Cluster.parse(self.cluster), speeds=default_speeds, seed=seed)
