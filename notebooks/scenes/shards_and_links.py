"""Explorers of other problems: servers that share the load of shards, and a network with one link cut."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpuschedlab import plots
from gpuschedlab.knobs import Knob, Knobbed
from gpuschedlab.metrics.sentence import Amount
from gpuschedlab.metrics.who_pays import counted
from gpuschedlab.optim import solve
from gpuschedlab.papers.copter.shards.methods import decision, random_fleet, zipf_loads
from gpuschedlab.papers.copter.shards.program import unevenness
from gpuschedlab.papers.copter.traffic.networks import bimodal_demands, generated_network
from gpuschedlab.papers.copter.traffic.program import flow_program, network_routes
from gpuschedlab.widgets.parts.cache import Cache
from gpuschedlab.widgets.parts.explorer_state import Page
from gpuschedlab.widgets.parts.knob_explorer import KnobExplorer
from scenes.network_figures import link_map, server_blocks

SPREAD = Amount("the servers' loads", "these loads differ by", "{:.1%} of the mean", "after")
FLOW = Amount("flow", "the network carries", "{:,.0f} Mb/s", "with")


@dataclass(frozen=True)
class SomeShards(Knobbed):
    """Servers and shards before and after their load becomes more, or less, uneven."""

    before: Annotated[float, Knob(0.1, 1.0, step=0.05, help="Zipf exponent of the loads in the round before")] = 0.3
    after: Annotated[float, Knob(0.1, 1.0, step=0.05, help="Zipf exponent now: larger, more load on few shards")] = 0.6
    slack: Annotated[float, Knob(0.01, 0.2, step=0.01, help="by how much of the mean a server may be off")] = 0.05
    servers: Annotated[int, Knob(4, 16, help="servers")] = 8
    way: Annotated[str, Knob(choices=("relaxed", "e-store"), help="program with a shim, or the greedy")] = "relaxed"


class ShardExplorer(KnobExplorer):
    """Servers as bars, shards as blocks: move the Zipf exponent, and see which shards are copied.

    Parameters
    ----------
    shards : int
    seed : int
        Of sizes, places and order of the shards.
    cache : Cache, optional
        Where results are kept.

    Examples
    --------
    >>> explorer = ShardExplorer(32)
    >>> explorer.knobs["after"].value = 0.3  # as before: nothing moves
    >>> "0 replicas copied" in explorer.status.value
    True
    """

    places = (plots.Place("before", 330, least=220), plots.Place("servers", 330, least=240))
    remembers = False  # what is computed depends on more than the knobs
    kept: ClassVar = {"after": (0.3, 0.6, 1.0), "slack": (0.02, 0.05, 0.2), "way": ()}

    def __init__(self, shards: int = 64, seed: int = 0, cache: Cache | None = None):
        self.shards, self.seed = shards, seed
        super().__init__(SomeShards(), cache)

    def _compute(self, now: SomeShards) -> tuple:
        loads = [zipf_loads(1, self.shards, False, self.seed, (z, z))[0] for z in (now.before, now.after)]
        decide = decision(now.way, method="simplex")

        def step(fleet, load):
            placed, share, _ = decide(fleet, load, now.slack)
            return fleet._replace(placed=placed), share

        start = random_fleet(self.shards, now.servers, self.seed)
        first, before = step(start, loads[0])
        last, after = (first, before) if now.before == now.after else step(first, loads[1])
        return now, loads, (start, first, last), (before, after)

    def _page(self, answer) -> Page:
        now, loads, fleets, shares = answer
        band = tuple((1 + sign * now.slack) / now.servers for sign in (-1, 1))
        figures = {}
        for k, (name, words) in enumerate((("before", "in the round before"), ("servers", "now"))):
            new = fleets[k + 1].placed & ~fleets[k].placed
            figures[name] = server_blocks(shares[k] * loads[k], new, band, words)
        before, after = shares
        spread = unevenness(loads[1], after), unevenness(loads[1], before)
        copied = int((fleets[2].placed & ~fleets[1].placed).sum())
        return Page(
            figures,
            comparisons=(counted(SPREAD, *spread, ("this round", "the round before")),),
            words=f"{copied} replicas copied.",
        )


@dataclass(frozen=True)
class SomeNetwork(Knobbed):
    """A small network, its demands, and the link that is cut."""

    cut: Annotated[int, Knob(0, 30, help="number of the link that is cut, 0: none")] = 0
    demand: Annotated[float, Knob(0.2, 3, step=0.1, help="factor of all demands")] = 1.0
    paths: Annotated[int, Knob(1, 4, help="paths of each pair of routers at most")] = 4


class LinkExplorer(KnobExplorer):
    """A small map: cut a link, see the flow take other paths, and what the links are worth.

    Parameters
    ----------
    routers, demands : int
    seed : int
        Of the network and the demands.
    cache : Cache, optional
        Where results are kept.

    Examples
    --------
    >>> explorer = LinkExplorer(12, 40)
    >>> whole = explorer.flow
    >>> explorer.knobs["cut"].value = 5
    >>> explorer.flow <= whole
    True
    """

    places = (plots.Place("links", 420, least=220), plots.Place("whole", 420, least=240))
    remembers = False  # what is computed depends on more than the knobs
    kept: ClassVar = {"cut": (*range(0, 31, 3),), "demand": (0.5, 1.0, 2.0)}

    def __init__(self, routers: int = 24, demands: int = 120, seed: int = 0, cache: Cache | None = None):
        self.network = generated_network(routers, routers + max(routers // 4, 1), seed)
        self.pairs, self.demand = bimodal_demands(self.network, demands, (0, 150), (300, 500), seed)
        self.flow = 0.0
        super().__init__(SomeNetwork(), cache)

    def _compute(self, now: SomeNetwork) -> tuple:
        net = self.network
        ends = np.stack([net.tails, net.heads], axis=1)
        links = np.flatnonzero(ends[:, 0] < ends[:, 1])  # each once
        chosen = links[(now.cut - 1) % len(links)] if now.cut else -1
        cut = (np.sort(ends, axis=1) == ends[chosen]).all(axis=1) & bool(now.cut)
        routes, answers = network_routes(net, self.pairs, now.paths), {}
        for name, dead in (("whole", np.zeros_like(cut)), ("links", cut)):
            capacity = np.where(dead, 0.0, net.capacity)
            best = solve(flow_program(routes, capacity, now.demand * self.demand), method="simplex")
            used = np.where(dead, -1.0, routes.uses @ best.x / net.capacity)
            answers[name] = (best, used, best.duals[len(self.demand) :])
        self.flow = answers["links"][0].objective
        return ends, links, answers, chosen

    def _page(self, answer) -> Page:
        ends, _, answers, _ = answer
        titles = {"whole": "All links", "links": "With the link cut, if one is"}
        figures = {}
        for name, (best, used, price) in answers.items():
            title = f"{titles[name]}: {best.objective:,.0f} Mb/s"
            figures[name] = link_map(self.network.place, ends, used, np.abs(price), title)
        flows = (answers[name][0].objective for name in ("links", "whole"))
        difference = counted(FLOW, *flows, ("this link cut", "all links"))
        return Page(figures, comparisons=(difference,), words=self._price(answer))

    def _price(self, answer) -> str:
        """What the link that is cut was worth."""
        ends, links, answers, chosen = answer
        if chosen < 0:
            return f"{len(links)} links."
        both = (np.sort(ends, axis=1) == ends[chosen]).all(axis=1)
        price, number = np.abs(answers["whole"][2])[both].sum(), int(np.searchsorted(links, chosen)) + 1
        return f"The price of link {number}, of both directions, was {price:.2f}."
