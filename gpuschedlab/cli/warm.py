"""`gpuschedlab warm`: compile ahead."""

from gpuschedlab.cli.parser import add_json
from gpuschedlab.cli.text import as_json, pairs


def add(parser):
    """Add the arguments."""
    parser.set_defaults(command=warm)
    add_json(parser)


def warm(args) -> int:
    """Compile everything, and report the time that it took."""
    from gpuschedlab.bench.engine import warm as compile_all

    seconds = compile_all()
    print(as_json(seconds) if args.json else pairs({k: f"{v:.1f} s" for k, v in seconds.items()}))
    return 0
