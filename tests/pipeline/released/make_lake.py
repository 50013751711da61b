"""Writes a small lake with the archiver of this version, once per release.

python -m tests.pipeline.released.make_lake tests/pipeline/released/0.1.0/lake
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.domain.message.lease import Verb
from tests.clocks import ManualClock
from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.backends import sqlite_at
from tests.store.driver import StoreDriver


def make(folder: Path) -> None:
    with TemporaryDirectory() as data, closing(sqlite_at(Path(data))()) as store:
        clock = ManualClock()
        driver = ArchiverDriver(StoreDriver(store, clock), folder)
        mail = driver.store_driver.queue("mail", max_attempts=2)
        driver.finish(mail, kind="letter", tags=("a", "b"), route="/shop/(.*)")
        driver.store_driver.send(mail, kind="letter")
        for _ in range(2):
            [message] = driver.store_driver.claim(mail, claimed_by="w-1")
            driver.store_driver.act(Verb.FAIL, message, text="no paper")
            clock.advance(hours=1)
        driver.store_driver.write(
            lambda s: s.facts.add("circuit_opened", "shop", at=clock.now(), data={"fails": 3})
        )
        driver.store_driver.send(mail)
        driver.run()
        driver.snapshots.take()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
