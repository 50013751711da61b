"""A queue that is created on first use is not cached before its transaction has committed."""

from __future__ import annotations

from pathlib import Path

from penstock.services.directory import Directory
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock


def test_a_queue_that_makes_itself_is_not_known_to_others_before_it_is_committed(tmp_path: Path):
    store = open_sqlite(tmp_path / "penstock.db")
    seen = []

    class Watched:
        """Looks into the directory at the end of each transaction, before its commit."""

        def write(self, what):
            def do(session):
                answer = what(session)
                seen.append(directory.cached("mail"))
                return answer

            return store.write(do)

    directory = Directory(Watched(), ManualClock(), auto_create=True)  # type: ignore[arg-type]
    made = directory.load_to_send("mail").result()
    found = directory.load_to_send("mail").result()
    store.close()

    assert seen == [None, found]
    assert made == found
