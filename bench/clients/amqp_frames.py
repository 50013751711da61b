"""AMQP 0-9-1 frames, as few as a queue needs. Each function gives the bytes of a whole frame."""

from __future__ import annotations

import struct
from collections.abc import Mapping

PROTOCOL = b"AMQP\x00\x00\x09\x01"
METHOD, HEADER, BODY = 1, 2, 3
END = b"\xce"

START, TUNE, OPEN_OK = (10, 10), (10, 30), (10, 41)
CHANNEL_OPEN_OK, CONFIRM_OK = (20, 11), (85, 11)
DECLARE_OK, DELETE_OK = (50, 11), (50, 41)
QOS_OK, CONSUME_OK = (60, 11), (60, 21)
DELIVER, ACK = (60, 60), (60, 80)


def frame(kind: int, payload: bytes, channel: int = 1) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + END


def method(name: tuple[int, int], payload: bytes = b"", channel: int = 1) -> bytes:
    return frame(METHOD, struct.pack(">HH", *name) + payload, channel)


def start_ok() -> bytes:
    response = b"\0guest\0guest"
    body = table({}) + short("PLAIN") + struct.pack(">I", len(response)) + response
    return method((10, 11), body + short("en_US"), channel=0)


def tune_ok() -> bytes:
    # One channel is used, frames hold a whole body, and a run is too short for heartbeats.
    return method((10, 31), struct.pack(">HIH", 1, 131_072, 0), channel=0)


def open_host() -> bytes:
    return method((10, 40), short("/") + short("") + b"\0", channel=0)


def open_channel() -> bytes:
    return method((20, 10), short(""))


def confirm_select() -> bytes:
    return method((85, 10), b"\0")


def declare(queue: str, arguments: Mapping[str, str]) -> bytes:
    durable = b"\x02"
    return method((50, 10), b"\0\0" + short(queue) + durable + table(arguments))


def delete(queue: str) -> bytes:
    return method((50, 40), b"\0\0" + short(queue) + b"\0")


def qos(prefetch: int) -> bytes:
    return method((60, 10), struct.pack(">IHB", 0, prefetch, 0))


def consume(queue: str) -> bytes:
    return method((60, 20), b"\0\0" + short(queue) + short("c") + b"\0" + table({}))


def publish(queue: str, body: bytes) -> bytes:
    persistent = struct.pack(">HHQHB", 60, 0, len(body), 0x1000, 2)
    route = method((60, 40), b"\0\0" + short("") + short(queue) + b"\0")
    return route + frame(HEADER, persistent) + frame(BODY, body)


def ack(tag: int) -> bytes:
    """Acknowledges everything up to and including `tag`."""
    return method(ACK, struct.pack(">QB", tag, 1))


def short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def table(entries: Mapping[str, str]) -> bytes:
    packed = b"".join(
        short(key) + b"S" + struct.pack(">I", len(value)) + value.encode()
        for key, value in entries.items()
    )
    return struct.pack(">I", len(packed)) + packed
