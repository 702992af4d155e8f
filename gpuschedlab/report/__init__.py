"""One self-contained page that compares runs, and pictures of it."""

from gpuschedlab.report.browser import find_browser, save_figure, screenshot
from gpuschedlab.report.html_tables import over_seeds
from gpuschedlab.report.page import write_report

__all__ = ["find_browser", "over_seeds", "save_figure", "screenshot", "write_report"]
