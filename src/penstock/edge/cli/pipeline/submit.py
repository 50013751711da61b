"""What spark-submit is given: the same command line, on a driver that Spark has started.

spark-submit --master yarn "$(python -c 'import penstock.edge.cli.pipeline.submit as s; \
print(s.__file__)')" pipeline run --lake hdfs:///lake
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # Python has put this folder first, whose modules have names of their own.
    sys.path.pop(0)
    from penstock.edge.cli.main import main

    sys.exit(main())
