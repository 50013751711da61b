"""`python -m penstock` is the same as `penstock`."""

import sys

from penstock.edge.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
