"""Figures of what AutoSched sees, forecasts, learns and decides: public names of `plots`."""

from gpuschedlab._faces import attach

__getattr__, __dir__ = attach(__name__)
