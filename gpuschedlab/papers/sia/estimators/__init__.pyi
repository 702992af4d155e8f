"""Names that Sia gives to `estimators` alone: `papers.sia.Bootstrap` is the figure."""

from .bootstrap import Bootstrap as Bootstrap
