"""The module that a worker is started with: `celery -A tests.edge.sqs.celery.worker_app worker`."""

import json
import os
from pathlib import Path

from tests.edge.sqs.celery.application import BROKER, FOLDER, OPTIONS, make_app

app = make_app(
    os.environ[BROKER], Path(os.environ[FOLDER]), options=json.loads(os.environ[OPTIONS])
)
