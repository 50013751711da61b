"""A MariaDB database with our schema that is emptied for every test, which takes milliseconds."""

import pymysql

from penstock.store.mariadb.store import migrate
from tests.support.mariadb import MariadbServer

_KEPT = {"migration", "lock_slot", "message_no"}
_TABLES = """
SELECT table_name
  FROM information_schema.tables
 WHERE table_schema = DATABASE()
"""


class RenewableMariadb:
    def __init__(self, server: MariadbServer) -> None:
        self._server = server
        self.url = server.new_database()
        migrate(self.url)
        self._connect()
        self._tables = self._all_tables()
        self._empty = ";".join(f"DELETE FROM `{name}`" for name in sorted(self._tables - _KEPT))

    def renew(self) -> str:
        """Empty every table, and drop those of days."""
        self._server.start()
        try:
            self._connection.ping(reconnect=False)
        except pymysql.Error:  # a test has restarted the server
            self._connect()
        days = [f"DROP TABLE `{name}`" for name in sorted(self._all_tables() - self._tables)]
        self._run(";".join([self._empty, *days]))
        return self.url

    def close(self) -> None:
        if self._connection.open:
            self._connection.close()

    def _connect(self) -> None:
        self._connection = self._server.connect(self.url)

    def _all_tables(self) -> set[str]:
        with self._connection.cursor() as cursor:
            cursor.execute(_TABLES)
            return {name for (name,) in cursor.fetchall()}

    def _run(self, text: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            while cursor.nextset():
                pass
