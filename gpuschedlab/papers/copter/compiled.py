"""Compiling ahead: a small use of this paper's own compiled code, and of the solvers that it is measured beside."""

from gpuschedlab.optim import Session, solve
from gpuschedlab.optim.programs.edits import EditedProgram
from gpuschedlab.papers.copter.explorers.similar_rounds import SimilarRounds
from gpuschedlab.papers.copter.traffic.networks import bimodal_demands, generated_network
from gpuschedlab.papers.copter.traffic.program import flow_program, network_routes


def use_compiled_code() -> None:
    """Solve programs of two similar rounds, one that is edited, and one of traffic, by the package's own solvers."""
    first, second = SimilarRounds(jobs=20, replaced=0.5).programs()
    for solver in ("copter", "prices"):
        session = Session(solver)
        for program in (first, second):
            session.update(program)
            session.solve()
    edited = EditedProgram({"gpus": 3.0})
    session = Session("copter")
    edited.add_request("a", worth=[3.0, 5.0], uses={"gpus": [1.0, 2.0]})
    session.update(edited)
    session.solve()
    network = generated_network(8, 12, 0)
    pairs, demand = bimodal_demands(network, 20, (0, 200), (400, 900), 0)
    solve(flow_program(network_routes(network, pairs), network.capacity, demand), "copter")
