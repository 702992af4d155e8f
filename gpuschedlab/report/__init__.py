"""One self-contained page that compares runs, and pictures of it."""

from gpuschedlab.report.browser import find_browser, save_png, screenshot
from gpuschedlab.report.page import write_report

__all__ = ["find_browser", "save_png", "screenshot", "write_report"]
