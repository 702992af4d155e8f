"""`make reference`: the folder of reference data, from public artifacts."""

import os
import sys

from gpuschedlab.cli import obey
from gpuschedlab.cli.parser import Parser
from gpuschedlab.errors import TraceError
from reproduce.reference.build import build_reference


def make_parser() -> Parser:
    """Parser of the words after `python -m reference`."""
    parser = Parser(
        prog="reference", description="Build the reference data of tests and benchmarks from public artifacts."
    )
    parser.set_defaults(command=show)
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", help="where to (default: what GPUSCHEDLAB_DATA_DIR names)"
    )
    parser.add_argument("--mirror", metavar="URL", help="another place of the same paths (default: https://github.com)")
    return parser


def show(args) -> int:
    """Build; say what was built, what failed, and what nobody publishes."""
    folder = args.folder or os.environ.get("GPUSCHEDLAB_DATA_DIR")
    if not folder:
        raise TraceError("reference: found no FOLDER; expected one, or GPUSCHEDLAB_DATA_DIR that names it.")
    mirror = {} if args.mirror is None else {"base_url": args.mirror}
    found = build_reference(folder, progress=sys.stderr.isatty(), **mirror)
    for word, files in (("kept", found.kept), ("built", found.built), ("failed", found.failed)):
        print(*(f"{word:5}  {file}\n" for file in files), sep="", end="")
    print("no public source:", *(f"{file}: {why}" for file, why in found.not_public.items()), sep="\n  ")
    print("whole logs of Philly, Helios, PAI and ITP: gpuschedlab trace fetch")
    print(*found.failed.values(), sep="\n", end="\n" * bool(found.failed), file=sys.stderr)
    return int(bool(found.failed))


def main(words: list[str] | None = None) -> int:
    """Obey the words of the command line; 1 if a table failed."""
    return obey(make_parser(), words)


if __name__ == "__main__":
    sys.exit(main())
