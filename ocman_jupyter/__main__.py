"""``python -m ocman_jupyter`` is the shell command."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
