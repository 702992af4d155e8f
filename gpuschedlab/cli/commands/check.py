"""`gpuschedlab check`: run the battery that every policy and estimator here passes on yours."""

from gpuschedlab.cli.parser import add_json, policies_help
from gpuschedlab.cli.text import as_json
from gpuschedlab.errors import LabError, PolicyError


def add(parser):
    """Add the arguments."""
    parser.closing = policies_help
    parser.add_argument(
        "subject",
        nargs="*",
        metavar="POLICY|ESTIMATOR",
        help="FILE.py:CLASS, a policy or an estimator by its word (default: all policies)",
    )
    add_json(parser)


def check(args) -> int:
    """Run the battery on each, and return the exit code: 1 if any failed, else 0."""
    from gpuschedlab.policies import ALL

    reports = {subject_word: _check(subject_word) for subject_word in args.subject or ALL}
    if args.json:
        print(
            as_json(
                {
                    subject_word: {"passed": report.passed, "problems": report.summary()}
                    for subject_word, report in reports.items()
                }
            )
        )
    else:
        print("\n\n".join(map(repr, reports.values())))
    return 0 if all(report.passed for report in reports.values()) else 1


def _check(subject_word: str):
    """Return the `CheckReport` of the battery that suits the word's class."""
    from gpuschedlab.check import check_estimator, check_policy
    from gpuschedlab.parse import estimator_of, policy_of

    try:
        return check_policy(policy_of(subject_word))
    except PolicyError as no_policy:
        try:
            estimator = estimator_of(subject_word)
        except LabError:
            raise no_policy from None
    return check_estimator(estimator)
