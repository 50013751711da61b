"""Entry point for spark-submit: the same command line on a driver that Spark started.

spark-submit --master yarn "$(python -c 'import penstock.edge.cli.pipeline.submit as s; \
print(s.__file__)')" pipeline run --lake hdfs:///lake
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # Python put this folder first on the path, where its modules would shadow others.
    sys.path.pop(0)
    from penstock.edge.cli.main import main

    sys.exit(main())
