"""A few hours of a shop's queues, replayed to a server for the pictures of the docs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from penstock.domain.circuit.circuit import OutcomeReport, RequestOutcome
from penstock.domain.limits import MINUTE
from penstock.domain.scaling.fleet_status import DECISION, NewFact
from penstock.domain.scaling.recommendation import Profile
from penstock.services.circuits.permits import PermitRequest
from tests.clocks import ManualClock
from tests.console.story_tables import storage, write_answers
from tests.edge.api import Api, ok
from tests.edge.duties import sample
from tests.edge.live import LiveServer
from tests.edge.pipeline_tables import write_day
from tests.factories import a_fleet_status

MINUTES = 90
SHOP, CRM = "/hooks/shop/(.*)", "/hooks/crm/(.*)"
QUEUES: dict[str, dict[str, Any]] = {
    "mail": {"max_attempts": 5},
    "invoices": {"max_attempts": 3},
    "thumbnails": {},
    "webhooks.shop": {},
    "reports": {},
}


class Story:
    def __init__(self, server: LiveServer, api: Api, clock: ManualClock) -> None:
        self._server = server
        self._api = api
        self._clock = clock

    def play(self) -> dict[str, str]:
        """Ids for the paths of pictures, by name."""
        for name, settings in QUEUES.items():
            ok(self._api.call("PUT", f"/v1/queues/{name}", settings))
        self._routes()
        for minute in range(MINUTES):
            self._minute(minute)
        circuit = self._open_circuit()
        self._send("mail", 140, MINUTES)
        return {
            "circuit": circuit,
            "message": self._failing_message(),
            **self._recurring(),
            **self._insights(),
            **self._fleets(),
            "worker": self._workers(),
        }

    def second(self) -> None:
        """Produce live traffic."""
        self._send("mail", 12, self._clock.now() // 1_000 % 60)
        self._work("mail", 9)
        self._clock.advance(ms=300)

    def _minute(self, minute: int) -> None:
        wave = 1 + math.sin(minute / 14)
        for number, name in enumerate(("mail", "invoices", "thumbnails")):
            arrived = int(6 + 10 * wave + 5 * number)
            self._send(name, arrived, minute)
            slow = 0.75 if name == "thumbnails" and minute > MINUTES - 35 else 1.2
            self._work(name, int(arrived * slow) + 1)
        self._requests(minute)
        self._clock.advance(ms=MINUTE - self._clock.now() % MINUTE)
        sample(self._server)

    def _send(self, queue: str, many: int, minute: int) -> None:
        kinds = ("welcome", "receipt", "reminder")
        drafts = [
            {
                "body": {"to": f"customer-{minute}-{n}@example.org", "order": 10_000 + minute + n},
                "kind": kinds[n % 3],
                "tags": [f"tenant-{n % 4}"],
                "group": f"customer-{n % 7}",
            }
            for n in range(many)
        ]
        ok(self._api.call("POST", f"/v1/queues/{queue}/messages/batch", {"messages": drafts}))

    def _work(self, queue: str, many: int) -> None:
        claimed = self._api.claim(queue, limit=many, claimed_by="mailer-1")
        self._clock.advance(ms=700)
        acts = [
            {"receipt": m["receipt"], "act": "fail", "error": "SMTP 451: try again later"}
            if n % 23 == 22
            else {"receipt": m["receipt"], "act": "complete"}
            for n, m in enumerate(claimed)
        ]
        if acts:
            ok(self._api.call("POST", "/v1/leases/batch", {"acts": acts}))

    def _failing_message(self) -> str:
        quick = {"max_attempts": 3, "backoff": {"type": "fixed", "delay_ms": 0}}
        ok(self._api.call("PUT", "/v1/queues/exports", quick))
        message_id = self._api.send(
            "exports",
            {"customer": 4711, "format": "pdf", "pages": [1, 2, 3], "checksum": 2**60 + 1},
            kind="export",
            tags=["tenant-2", "nightly"],
            attributes={"content-language": "de", "requested-by": "ada"},
            entity_id="customer-4711",
        )
        for error in ("the template was not found", "the template was not found", "disk full"):
            claimed = self._api.claim_one("exports", claimed_by="exporter-2")
            self._clock.advance(seconds=4)
            trace = f'Traceback (most recent call last):\n  File "export.py", line 88\n{error}'
            ok(self._api.act(claimed["receipt"], "fail", error=trace))
            self._clock.advance(seconds=30)
        return message_id

    def _workers(self) -> str:
        ids = []
        for name, host, slots, held in (
            ("mailer-1", "web-1", 8, 6),
            ("mailer-2", "web-2", 8, 8),
            ("images-1", "gpu-1", 2, 1),
        ):
            queue = "thumbnails" if name == "images-1" else "mail"
            about = {"name": name, "host": host, "pid": 4100, "queues": [queue], "slots": slots}
            worker = ok(self._api.call("POST", "/v1/workers", about))["id"]
            self._api.claim(queue, limit=held, claimed_by=worker)
            ids.append(str(worker))
        ok(self._api.call("POST", f"/v1/workers/{ids[1]}/drain"))
        return ids[0]

    def _routes(self) -> None:
        rules = {
            SHOP: {"url": "https://shop.example.org/hooks/$1", "concurrency": 4},
            CRM: {"url": "https://crm.example.org/in/$1", "timeout": 10},
        }
        ok(self._api.call("PUT", "/v1/routes", {"rules": rules}))
        breaker = {"circuit_check_enabled": True, "statistics_update_enabled": True}
        ok(self._api.call("PATCH", "/v1/breaker", breaker))
        self._server.broker.circuits.refresh()

    def _requests(self, minute: int) -> None:
        """Let the shop fail increasingly."""
        circuits = self._server.broker.circuits
        for pattern in (SHOP, CRM):
            failing = max(0, minute - MINUTES // 2) if pattern == SHOP else minute % 4
            [permitted] = circuits.permits([PermitRequest(pattern)]).result()
            outcomes = [RequestOutcome.FAILURE] * failing + [RequestOutcome.SUCCESS] * (
                50 - failing
            )
            reports = [
                OutcomeReport(permitted, f"{pattern}-{minute}-{n}", outcome)
                for n, outcome in enumerate(outcomes)
            ]
            circuits.report(reports).result()

    def _open_circuit(self) -> str:
        found = {c["pattern"]: c["hash"] for c in self._api.get("/v1/circuits")["circuits"]}
        ok(self._api.call("POST", f"/v1/circuits/{found[SHOP]}/open"))
        return str(found[SHOP])

    def _recurring(self) -> dict[str, str]:
        for name, rhythm in (
            ("nightly-report", {"cron": "30 2 * * *", "zone": "Europe/Berlin"}),
            ("hourly-export", {"cron": "5 * * * *"}),
            ("pulse", {"every_ms": 300_000}),
        ):
            wanted = {"queue": "reports", "body": {"report": name}, "kind": "report", **rhythm}
            ok(self._api.call("PUT", f"/v1/recurring/{name}", wanted))
        ok(self._api.call("POST", "/v1/recurring/hourly-export/run"))
        return {"schedule": "nightly-report"}

    def _fleets(self) -> dict[str, str]:
        scaling = self._server.broker.scaling
        for step, (change, wanted, reason) in enumerate(
            ((2, 3, "backlog"), (0, 3, "cooling_down"), (3, 6, "backlog"), (-1, 5, "steadying"))
        ):
            self._clock.advance(minutes=step and 1)
            decision = {
                "change": change,
                "wanted": wanted,
                "reason": reason,
                "inputs": {"ready": 90 - 20 * step, "publish_rate": 2.5, "consume_rate": 2.1},
            }
            facts = [NewFact(DECISION, "mailers", decision)]
            statuses = [
                a_fleet_status(name, queue=queue, seen_at=self._clock.now(), file_profile=Profile())
                for name, queue in (("mailers", "mail"), ("images", "thumbnails"))
            ]
            scaling.save_tick(statuses, facts, now=self._clock.now()).result()
        return {"fleet": "mailers"}

    def _insights(self) -> dict[str, str]:
        folder = Path(self._server.broker.settings.insights_folder)
        for day in range(1, 29):
            rows = []
            for number, queue in enumerate(("mail", "invoices", "thumbnails")):
                wave = 1 + 0.4 * math.sin((day + number) / 2.2)
                messages = int(40_000 * wave * (1 + number / 2))
                rows.append(
                    {
                        "queue": queue,
                        "messages": messages,
                        "per_second": messages / 86_400,
                        "per_second_peak": messages / 86_400 * (3 + number),
                        "backlog_peak": int(messages / 40),
                        "days_offline": 30.0 - number * 4,
                    }
                )
            rows.append(storage(day))
            write_day(folder, "capacity", f"2030-02-{day:02}", rows)
            bad = [{"queue": "mail", "objective": "wait", "bad": day % 7, "burn": day % 7 / 5}]
            write_day(folder, "slo", f"2030-02-{day:02}", bad)
        write_answers(folder)
        return {"table": "capacity"}
