"""COpter (thesis, chapters 4 and 5): rounds and whole traces, shards and traffic."""

PAGES = {
    "copter": (
        "docs/systems/copter.md",
        "docs/systems/arena.md",
        "docs/measured/arena.csv",
        "notebooks/06_copter.ipynb",
        "notebooks/scenes/rounds.py",
        "notebooks/scenes/network_figures.py",
        "notebooks/scenes/scale.py",
        "notebooks/scenes/shards_and_links.py",
        "notebooks/scenes/similar_rounds.py",
    ),
}
SOURCES = {"copter": "papers.copter.ours", "copter-problems": "papers.copter.problems"}
TITLES = {
    "copter": "COpter (thesis, chapter 4)",
    "copter-problems": "COpter: shards and traffic (thesis, chapter 5)",
}
TABLES = {
    "rounds": "papers.copter.rounds",
    "trace": "papers.copter.trace",
    "problems": "papers.copter.methods",
    "arena": "papers.copter.arena",
}
NOTEBOOKS = {
    "problems": [
        "from scenes.shards_and_links import LinkExplorer, ShardExplorer\nexplorer = ShardExplorer(24)\nexplorer",
        "explorer = LinkExplorer(12, 40)\nexplorer",
    ],
    "copter": [
        "from scenes.similar_rounds import CopterExplorer, SimilarRounds",
        "explorer = CopterExplorer(SimilarRounds(jobs=20))\nexplorer",
    ],
    "scale": [
        "from scenes.similar_rounds import SimilarRounds\nfrom scenes.scale import ScaleExplorer",
        "explorer = ScaleExplorer(SimilarRounds(jobs=20))\nexplorer",
    ],
}
TOLERANCE = {"copter": 1e-3}
LIMITED = {"copter": {"work": 5e-6, "tol": 1e-12}}


def _traffic(simulation) -> float:
    """Most flow through a small network."""
    from gpuschedlab.optim import solve
    from gpuschedlab.papers.copter.traffic.networks import bimodal_demands, generated_network
    from gpuschedlab.papers.copter.traffic.program import flow_program, network_routes

    network = generated_network(8, 12, 0)
    pairs, demand = bimodal_demands(network, 20, (0, 200), (400, 900), 0)
    return solve(flow_program(network_routes(network, pairs), network.capacity, demand), "copter").objective


COMPILED = {"copter": _traffic}
FEW_STEPS = {"copter": {"steps": 300}}
SHIMS = {"copter": {}, "relaxed": {}}
DIVIDED = {"pop": {}}
