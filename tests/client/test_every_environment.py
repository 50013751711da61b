"""One program with jobs, notifications, the bus and recurring work, in every environment."""

from __future__ import annotations

from collections import Counter

import pytest

from penstock import Penstock
from penstock.domain.queue.queue import Counts
from penstock.runtime.duties import ScheduleDuty
from penstock.wiring.broker import Broker
from tests.client.driver import WorkerDriver
from tests.clocks import ManualClock
from tests.edge.api import a_name


class Shop:
    """Three queues of jobs and notifications, and two subscriptions."""

    def __init__(self, app: Penstock) -> None:
        self.app = app
        self.mail, self.reports, self.dunning = a_name("mail"), a_name("reports"), a_name("dunning")
        self.orders = a_name("orders")
        self.did: Counter[str] = Counter()

        @app.job(queue=self.mail)
        async def send_mail(to: str) -> None:
            self.did[f"mail {to}"] += 1

        @app.recurring(every="1h", name=self.reports)
        @app.job(queue=self.reports)
        def report() -> None:
            self.did["report"] += 1

        @app.notifications(self.dunning).handler()
        def remind(invoice: int) -> None:
            self.did[f"remind {invoice}"] += 1

        @app.subscribe(self.orders)
        def audit(order: int) -> None:
            self.did[f"audit {order}"] += 1

        @app.subscribe(self.orders)
        def confirm(order: int) -> None:
            send_mail.enqueue(f"customer of {order}")

        self.send_mail, self.report = send_mail, report

    @property
    def queues(self) -> list[str]:
        subscribed = [f"{self.orders}.{name}" for name in ("audit", "confirm")]
        return [self.mail, self.reports, self.dunning, *subscribed]


@pytest.mark.every_environment
def test_an_application_of_five_queues_does_everything_once(
    app: Penstock, clock: ManualClock, broker: Broker, neighbours: list[str]
) -> None:
    shop = Shop(app)
    driver = WorkerDriver(app, clock, neighbours=neighbours)
    shop.send_mail.enqueue("ada")
    shop.send_mail.enqueue_many([{"to": "bob"}, {"to": "eve"}])
    shop.report.enqueue()
    app.notifications(shop.dunning).record(17, delay="30m", tags=(shop.dunning,))
    dropped = app.notifications(shop.dunning).record(18, delay="30m", tags=(shop.dunning,))
    app.notifications(shop.dunning).remove(dropped.id)
    assert [app.publish(shop.orders, n).messages for n in range(2)] == [2, 2]

    while driver.run_due():
        pass
    clock.advance(hours=1)
    ScheduleDuty(broker.recurring).tick(clock.now())
    while driver.run_due():
        pass

    once = ["mail ada", "mail bob", "mail eve", "remind 17", "audit 0", "audit 1"]
    once += [f"mail customer of {n}" for n in range(2)]
    assert shop.did == {**dict.fromkeys(once, 1), "report": 2}
    left: list[Counts] = [broker.queues.get(name).result().counts for name in shop.queues]
    assert [(c.ready, c.waiting, c.leased, c.dead) for c in left] == [(0, 0, 0, 0)] * 5
    assert sum(c.done_total for c in left) == len(once) + 2 + 2
