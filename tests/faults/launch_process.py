"""Runs one process of a node; the writer on a faulty disk.

    python -m tests.faults.launch_process '{"data": ...}' writer FD

Nothing steers the faults while it runs: the options say which fraction of syncs fails.
"""

from __future__ import annotations

import json
import sys

from penstock.edge.node.process import main
from tests.faults.launch import Machine

if __name__ == "__main__":
    options = json.loads(sys.argv.pop(1))
    if sys.argv[1] == "writer":
        machine = Machine(options)
    sys.exit(main())
