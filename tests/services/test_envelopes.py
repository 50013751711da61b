"""The signer of SNS's envelopes."""

from __future__ import annotations

import tracemalloc

from penstock.domain.bus import envelope
from penstock.ports.unit_of_work import write
from penstock.services.envelopes import EnvelopeSigner
from penstock.wiring.key_pairs import LazyKeyPairs
from tests.store.driver import StoreDriver

SIZE = 200_000


def an_envelope(n: int) -> str:
    return envelope.to_text(
        envelope.notification(
            f"{n}".ljust(SIZE),
            event_id="e",
            topic_arn="t",
            subscription_arn="t:s",
            attributes=None,
            sequence_number=None,
            version="1",
            now=0,
        )
    )


def test_remembered_signatures_do_not_keep_the_messages(store_driver: StoreDriver) -> None:
    signer = EnvelopeSigner(store_driver.store, store_driver.clock, LazyKeyPairs())
    write(store_driver.store, signer.ensure).result()
    signer.load().result()
    signer.complete(an_envelope(-1), base="http://h")

    tracemalloc.start()
    try:
        for n in range(20):
            signer.complete(an_envelope(n), base="http://h")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 5 * SIZE
