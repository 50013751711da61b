"""A connection to MariaDB that sends several statements in one packet.

PyMySQL connects (handshake, authentication, TLS).  Results are read here, because they have dozens
of columns: PyMySQL makes several objects for each column of each result.
"""

from __future__ import annotations

import select
import ssl
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from pymysql import MySQLError
from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND, FIELD_TYPE

from penstock.domain.errors import InvalidRequest, StoreUnavailable
from penstock.store.database import Row
from penstock.store.mariadb.url import MariadbUrl

_INTEGERS = frozenset(
    {
        FIELD_TYPE.TINY,
        FIELD_TYPE.SHORT,
        FIELD_TYPE.LONG,
        FIELD_TYPE.LONGLONG,
        FIELD_TYPE.INT24,
        FIELD_TYPE.NEWDECIMAL,  # sums of integers
    }
)
_CONNECT_S = 3
_MORE_RESULTS = 8
_LONG_PACKET = 0xFFFFFF


class MariadbError(Exception):
    """An error that the server reported for a statement, or of the connection itself."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


class Result(msgspec.Struct):
    rows: list[Row] = []
    count: int = 0
    names: list[str] = []


class MariadbLink(Connection):  # type: ignore[misc]
    """One connection; used by one thread at a time."""

    _rfile: Any
    _sock: Any

    def __init__(self, url: MariadbUrl) -> None:
        self.is_lost = False
        try:
            super().__init__(
                **url.options,
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=_CONNECT_S,
                client_flag=CLIENT.MULTI_STATEMENTS | CLIENT.FOUND_ROWS,
                program_name="penstock",
            )
        except MySQLError as error:
            raise StoreUnavailable(f"cannot reach MariaDB: {_text(error)}") from error
        except (OSError, ssl.SSLError) as error:
            raise InvalidRequest(f"cannot connect to MariaDB: {error}") from error

    def limit_waits(self, timeout_ms: int) -> None:
        """How long any answer of the server may take."""
        if self._sock is not None:
            self._sock.settimeout(timeout_ms / 1000)

    def run(self, text: bytes) -> list[Result]:
        """The results of all statements in `text`; raises MariadbError at the first that fails.

        The statements behind it are not run.
        """
        return self.run_until_error(text, [])

    def run_until_error(self, text: bytes, results: list[Result]) -> list[Result]:
        """Adds the results to `results`, also those of statements before one that fails."""
        try:
            self._execute_command(COMMAND.COM_QUERY, text)
            while True:
                more = self._read_result(results)
                if not more:
                    return results
        except MariadbError:
            raise
        except MySQLError as error:
            self._lose()
            raise MariadbError(2013, f"the connection was lost: {_text(error)}") from error
        except (OSError, ValueError, AttributeError, IndexError) as error:
            self._lose()
            raise MariadbError(2013, f"the connection was lost: {error}") from error
        except BaseException:  # an interrupt between two packets
            self._lose()
            raise

    @property
    def is_alive(self) -> bool:
        if self.is_lost or self._sock is None:
            return False
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return not poll.poll(0)  # readable while idle: the server has closed it

    def end(self) -> None:
        """Close without waiting for the server."""
        self._lose()

    def _lose(self) -> None:
        self.is_lost = True
        self._force_close()

    def _read_result(self, results: list[Result]) -> bool:
        """One result; returns whether another follows."""
        packet = self._packet()
        kind = packet[0]
        if kind == 0:
            count, place = _integer(packet, 1)
            _, place = _integer(packet, place)
            results.append(Result(count=count))
            return bool(packet[place] & _MORE_RESULTS)
        columns, _ = _integer(packet, 0)
        convert, names = self._columns(columns)
        rows: list[Row] = []
        while True:
            packet = self._packet()
            if packet[0] == 0xFE and len(packet) < 9:
                results.append(Result(rows, len(rows), names))
                return bool(packet[3] & _MORE_RESULTS)
            rows.append(_row(packet, convert))

    def _columns(self, count: int) -> tuple[list[Callable[[bytes], object]], list[str]]:
        convert: list[Callable[[bytes], object]] = []
        names = []
        for _ in range(count):
            packet = self._packet()
            place = 0
            for _ in range(4):  # catalogue, schema, alias of the table, table
                size, place = _integer(packet, place)
                place += size
            size, place = _integer(packet, place)
            names.append(packet[place : place + size].decode())
            convert.append(int if packet[-6] in _INTEGERS else bytes.decode)
        self._packet()  # the end of the columns
        return convert, names

    def _packet(self) -> bytes:
        read = self._rfile.read
        head = read(4)
        if len(head) < 4:
            raise OSError("the server has closed the connection")
        size = int.from_bytes(head[:3], "little")
        packet: bytes = read(size)
        if len(packet) < size:
            raise OSError("the server has closed the connection")
        if size == _LONG_PACKET:
            packet += self._packet()
        if packet and packet[0] == 0xFF:
            number = int.from_bytes(packet[1:3], "little")
            text = packet[9:] if packet[3:4] == b"#" else packet[3:]
            raise MariadbError(number, text.decode(errors="replace"))
        return packet


def _row(packet: bytes, convert: Sequence[Callable[[bytes], object]]) -> Row:
    values: list[object] = []
    place = 0
    for one in convert:
        size = packet[place]
        place += 1
        if size > 250:
            if size == 251:
                values.append(None)
                continue
            size, place = _integer(packet, place - 1)
        values.append(one(packet[place : place + size]))
        place += size
    return tuple(values)


def _integer(packet: bytes, place: int) -> tuple[int, int]:
    """A length-encoded integer, and the place behind it."""
    first = packet[place]
    if first < 251:
        return first, place + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    end = place + 1 + size
    return int.from_bytes(packet[place + 1 : end], "little"), end


def _text(error: MySQLError) -> str:
    return str(error.args[1] if len(error.args) > 1 else error)
