"""A server whose settings name a fleets file scales those fleets."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from tests.edge.api import Api
from tests.support.waiting import eventually

FLEETS = """
[profiles.default]
samples_needed = 1
backlog_goal_s = 1

[fleets.mail]
queue = "mail"
interval_ms = "1s"
replicas = {kind = "external"}
"""


def test_a_server_looks_after_the_fleets_of_its_file(make_process, tmp_path: Path) -> None:
    file = tmp_path / "fleets.toml"
    file.write_text(FLEETS)
    server = make_process(scaling_fleets_file=file)
    with closing(Api(server.url)) as api:
        api.call("PUT", "/v1/queues/mail", {})
        api.send("mail")

        def wanted() -> Any:
            answer = api.call("GET", "/v1/scaling/mail/wanted")
            return answer.json().get("value")

        eventually(lambda: wanted() == 1, within_s=30)
        # A decision is shown once it is carried out.
        [decided] = eventually(lambda: api.get("/v1/scaling/mail/decisions")["decisions"])

    assert decided["decision"]["reason"] == "first_message"
    assert server.end() == 0
