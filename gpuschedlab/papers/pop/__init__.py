"""POP (SOSP'21): any round policy on random parts of the jobs and the cluster."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
