"""schemathesis tests the server with its own OpenAPI document, with valid and invalid input."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edge.api import Api
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.edge.native.conftest import new_key

EXAMPLES = 4
AT_LEAST = 5_000
TIME_S = 300

# Names of things that exist, so that requests get further than 404.  What a schema cannot
# express (a cursor is one of ours, a due date is after 1970, …) is rejected although the schema
# allows it.  A batch is answered as a whole: the error of an entry is in its result.
CONFIG = """
[parameters]
"path.queue" = "mail"
"path.id" = "{message_id}"
"path.receipt" = "{receipt}"

[checks]
positive_data_acceptance.enabled = false

[[operations]]
include-method = "DELETE"
parameters = {{ "path.queue" = "another" }}

[[operations]]
include-path-regex = ".*/batch$"
checks = {{ negative_data_rejection.enabled = false }}
"""


@pytest.fixture
def open_hours(tmp_path: Path) -> Iterator[LiveServer]:
    """A server that requires keys, lets no client wait or listen for long, and runs no SQL."""
    limits = {"max_wait_ms": 20, "max_listeners": 0}
    settings = some_settings(
        tmp_path / "data", auth={"required": "always"}, limits=limits, sql={"max_running": 0}
    )
    with LiveServer(settings) as server:
        yield server


@pytest.mark.timeout(TIME_S)
def test_whatever_the_schema_allows_or_forbids_is_answered_by_the_schema(
    open_hours: LiveServer, tmp_path: Path
) -> None:
    key = new_key(open_hours)
    api = Api(open_hours.url, key=key)
    api.call("PUT", "/v1/queues/mail")
    ids = [api.send("mail") for _ in range(2)]
    receipt = api.claim_one("mail")["receipt"]
    config = CONFIG.format(message_id=ids[1], receipt=receipt)
    (tmp_path / "schemathesis.toml").write_text(config)

    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{open_hours.url}/v1/openapi.json"),
            *("--header", f"Authorization: Bearer {key}", f"--max-examples={EXAMPLES}"),
            *("--phases=examples,coverage,fuzzing", "--suppress-health-check=all"),
            *("--generation-deterministic", "--no-color"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIME_S,
    )

    assert run.returncode == 0, run.stdout[-18_000:] + run.stderr[-2_000:]
    generated = re.search(r"(\d+) generated", run.stdout)
    assert generated is not None
    assert int(generated[1]) >= AT_LEAST
    assert api.call("GET", "/readyz").status_code == 200
