"""Reports of a battery: every check is run; problems are collected, shown, and raised on request."""

import html
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass

from gpuschedlab.errors import LabError, PolicyError, interrupts


@dataclass(frozen=True)
class Check:
    """One check: its name, its demand, and the problem ("" when it passed)."""

    name: str
    demands: str
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problem


@dataclass(frozen=True)
class CheckReport:
    """Findings of a battery.

    Parameters
    ----------
    subject : str
        Name of the policy or estimator checked.
    checks : tuple of Check
        In the order in which they were run.
    error : type
        Class of the error of `raise_if_failed`.
    """

    subject: str
    checks: tuple[Check, ...]
    error: type[LabError] = PolicyError

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        """Tuple of each `Check` that did not pass."""
        return tuple(check for check in self.checks if not check.passed)

    def raise_if_failed(self) -> "CheckReport":
        """Return itself, the `CheckReport`, if every check passed.

        Raises
        ------
        LabError
            (`PolicyError` or `EstimatorError`) A check failed; the message holds all that did.
        """
        if self.failures:
            checks_by_problem: dict[str, list[str]] = {}
            for check in self.failures:
                checks_by_problem.setdefault(check.problem.rstrip("."), []).append(check.name)
            failure_lines = [
                f"{', '.join(failed_checks)}: {problem}." for problem, failed_checks in checks_by_problem.items()
            ]
            failures_of_checks = f"{len(self.failures)} of {len(self.checks)}"
            raise self.error(f"{self.subject} failed {failures_of_checks} checks.\n" + "\n".join(failure_lines))
        return self

    def _texts(self) -> list[str]:
        """Return a list of texts: the demand of each check, or its problem, which is reported once if several checks met it."""
        first_with_problem = {check.problem: check.name for check in reversed(self.failures)}
        problems = [
            check.problem
            if first_with_problem.get(check.problem) == check.name
            else f"as {first_with_problem.get(check.problem)}"
            for check in self.checks
        ]
        return [
            check.demands if check.passed else problem for check, problem in zip(self.checks, problems, strict=True)
        ]

    def summary(self) -> dict[str, str]:
        """Return a dict of the problem of each check, "" if it passed."""
        return {check.name: check.problem for check in self.checks}

    def __repr__(self):
        wide = max((len(check.name) for check in self.checks), default=0)
        checks_and_texts = zip(self.checks, self._texts(), strict=True)
        check_lines = [
            f"{'ok  ' if check.passed else 'FAIL'}  {check.name:{wide}}  {check_text}"
            for check, check_text in checks_and_texts
        ]
        passed = len(self.checks) - len(self.failures)
        return "\n".join([f"{self.subject}: {passed} of {len(self.checks)} checks passed", *check_lines])

    def _repr_html_(self) -> str:
        rows = zip(self.checks, self._texts(), strict=True)
        cells = [("✔ passed" if check.passed else "✘ failed", check.name, check_text) for check, check_text in rows]
        html_rows = []
        for check_cells in cells:
            html_cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in check_cells)
            html_rows.append(f"<tr>{html_cells}</tr>")
        rows = "".join(html_rows)
        return f"<table><caption>{html.escape(self.subject)}</caption>{rows}</table>"


def no_docstring(cls: type) -> str | None:
    """Report a class without a docstring in a text; None if it has one."""
    class_docstring = (cls.__dict__.get("__doc__") or "").strip()
    if not class_docstring or class_docstring.startswith(
        f"{cls.__name__}("
    ):  # a dataclass without one gets its signature
        return f"{cls.__name__} has none; expected a sentence on its rule and where it comes from"


def not_frozen(cls: type) -> str | None:
    """Report a class that is no frozen dataclass in a text; None if it is one."""
    if not is_dataclass(cls) or not cls.__dataclass_params__.frozen:
        return f"{cls.__name__} can be changed after it was made; expected @dataclass(frozen=True)"


def run_battery(subject: str, checks: dict[str, Callable[[], str | None]], error: type[LabError]) -> CheckReport:
    """Run checks one after the other and return a `CheckReport`; an exception of one is its problem, and the others still run."""
    # Each returns what is wrong, or None; the first line of its docstring says what it demands.
    done = []
    for check_name, check in checks.items():
        try:
            with interrupts():
                problem = check() or ""
        except Exception as raised:  # user code is checked: any exception is the finding
            problem = f"it raised {type(raised).__name__}: {raised}"
            if isinstance(raised, LabError):
                problem = str(raised)
        demand_line = (check.__doc__ or check_name).strip().splitlines()[0]
        done.append(Check(check_name, demand_line.rstrip("."), problem))
    return CheckReport(subject, tuple(done), error)
