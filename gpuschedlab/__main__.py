"""`python -m gpuschedlab` is `gpuschedlab`."""

import sys

from gpuschedlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
