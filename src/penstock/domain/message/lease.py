"""Acts of a lease holder as data, and the receipt that proves a lease to other programs.

A lease expires when its holder is silent for too long, a deadline when the attempt takes too long;
neither shortens the other.  Only a holder that still extends its lease can time out: one that is
silent counts as gone, and its message is redelivered.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import struct
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from penstock.domain.errors import LeaseLost
from penstock.domain.message import lifecycle
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import Queue

if TYPE_CHECKING:
    from penstock.domain.message.lifecycle import Message

_PLAIN = struct.Struct(">QIIQ")
_MAC_BYTES = 16
MAX_REMEMBERED = 10_000  # receipts: about 3 MB
_RECEIPT_BYTES = _PLAIN.size + _MAC_BYTES
_PADDING = "=" * (-_RECEIPT_BYTES % 3)
_TO_URL = bytes.maketrans(b"+/", b"-_")


def deadline(message: Message) -> int | None:
    """When the running attempt has taken too long."""
    if message.timeout_ms is None:
        return None
    started_at = message.leased_at if message.started_at is None else message.started_at
    return None if started_at is None else started_at + message.timeout_ms


def is_overdue(message: Message, *, now: int) -> bool:
    end = deadline(message)
    return end is not None and end <= now


class Verb(StrEnum):
    COMPLETE = "complete"
    FAIL = "fail"
    RELEASE = "release"
    EXTEND = "extend"
    SNOOZE = "snooze"
    BURY = "bury"
    CANCEL = "cancel"
    TIME_OUT = "time_out"
    CRASH = "crash"


# Losing one of these in a power cut costs at most a redelivery, so they need not wait for the disk.
FORGETTABLE = frozenset({Verb.EXTEND, Verb.RELEASE})


class Lease(msgspec.Struct, frozen=True, gc=False):
    """The lease that a receipt stands for.

    It includes the instant of the claim: claims do not wait for the disk, so after a power cut the
    same lease_no may be assigned again, and the two holders must be told apart.
    """

    message_no: int
    lease_no: int
    queue_no: int
    leased_at: int

    @classmethod
    def of(cls, message: Message) -> Lease:
        return cls(message.message_no, message.lease_no, message.queue_no, message.leased_at or 0)


class LeaseAct(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    lease: Lease
    verb: Verb
    now: int
    # fail, time_out: own back-off; release, snooze: delay; extend: new lease
    delay_ms: int | None = None
    text: str | None = None  # fail, time_out, crash: the error; others: the reason
    dice: float = 0.5
    is_late_ok: bool = False  # complete, extend: accepted until another worker claims the message
    rejects_late: bool = False  # complete: rejected as soon as the lease has run out
    progress: str | None = None  # extend: JSON text, kept until the next attempt
    is_start: bool = False  # extend: the attempt's time is counted from now
    result: str | None = None  # complete: JSON text, kept with the history
    signal: str | None = None  # snooze: due as soon as this signal, which it waits for, arrives


def is_leased_to(lease: Lease, message: Message) -> bool:
    return (
        message.state is State.LEASED
        and message.lease_no == lease.lease_no
        and message.leased_at == lease.leased_at
    )


def held_by(lease: Lease, message: Message | None) -> Message:
    """The message, if it is leased to this holder; raises LeaseLost."""
    if message is None:
        raise LeaseLost
    if not is_leased_to(lease, message):
        raise LeaseLost(message.id)
    return message


def as_noticed(act: LeaseAct, message: Message) -> LeaseAct:
    """Turn an extension past the deadline into a timeout.

    Unless it marks the start of the work, from which the time is counted.
    """
    starts = act.is_start and message.started_at is None
    if act.verb is not Verb.EXTEND or starts or not is_overdue(message, now=act.now):
        return act
    return replace(act, verb=Verb.TIME_OUT, delay_ms=None, text=None)


def is_too_late(act: LeaseAct, due_at: int) -> bool:
    """Whether the act must be rejected although no other worker has claimed the message."""
    return act.rejects_late and due_at <= act.now


def apply(act: LeaseAct, message: Message, queue: Queue) -> Message:
    """The message after the act; raises LeaseLost."""
    if message.leased_at != act.lease.leased_at or is_too_late(act, message.due_at):
        raise LeaseLost(message.id)
    no, now = act.lease.lease_no, act.now
    # A dead letter in another queue has no holder, although it has not been claimed there.
    is_late_ok = act.is_late_ok and message.queue_no == act.lease.queue_no
    if act.verb is Verb.EXTEND and is_late_ok:
        # Another message may have taken its place under the limit of concurrent leases.
        settings = queue.settings
        is_late_ok = settings.max_leased is None and settings.max_leased_per_group is None
    match act.verb:
        case Verb.COMPLETE:
            done = lifecycle.complete(message, lease_no=no, is_late_ok=is_late_ok)
            return done if act.text is None else replace(done, reason=act.text)
        case Verb.FAIL | Verb.TIME_OUT:
            end = lifecycle.fail if act.verb is Verb.FAIL else lifecycle.time_out
            return end(
                message,
                queue,
                lease_no=no,
                now=now,
                dice=act.dice,
                error=act.text,
                retry_in_ms=act.delay_ms,
            )
        case Verb.RELEASE:
            delay = act.delay_ms or 0
            return lifecycle.release(message, queue, lease_no=no, now=now, delay_ms=delay)
        case Verb.SNOOZE:
            delay = act.delay_ms or 0
            return lifecycle.snooze(
                message, queue, lease_no=no, now=now, delay_ms=delay, reason=act.text
            )
        case Verb.EXTEND:
            lease_ms = queue.settings.lease_ms if act.delay_ms is None else act.delay_ms
            return lifecycle.extend(
                message,
                lease_no=no,
                now=now,
                lease_ms=lease_ms,
                is_late_ok=is_late_ok,
                progress=act.progress,
                is_start=act.is_start,
            )
        case Verb.BURY:
            return lifecycle.bury(message, reason=act.text, lease_no=no)
        case Verb.CANCEL:
            return lifecycle.cancel(message, reason=act.text, lease_no=no)
        case Verb.CRASH:
            return lifecycle.crash(message, queue, lease_no=no, now=now, error=act.text)


class Receipts:
    """Signs receipts and reads them; remembers those it has signed lately, which need no check."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._signed: dict[str, Lease] = {}

    def sign(self, message: Message) -> str:
        lease = Lease.of(message)
        signed = receipt(lease, secret=self._secret)
        if len(self._signed) >= MAX_REMEMBERED:
            self._signed.clear()
        self._signed[signed] = lease
        return signed

    def read(self, text: str) -> Lease:
        """Raises LeaseLost for anything that is not a receipt of a claim."""
        signed = self._signed.get(text)
        return read_receipt(text, secret=self._secret) if signed is None else signed


def receipt(held: Lease | Message, *, secret: bytes) -> str:
    """Opaque text for a lease, signed so that it cannot be forged."""
    plain = _PLAIN.pack(held.message_no, held.lease_no, held.queue_no, held.leased_at or 0)
    signature = _keyed_mac(secret).copy()
    signature.update(plain)
    text = binascii.b2a_base64(plain + signature.digest(), newline=False)
    return text.translate(_TO_URL).decode().rstrip("=")


def read_receipt(text: str, *, secret: bytes) -> Lease:
    """The lease of a receipt; raises LeaseLost, as a forged receipt counts as a stale one."""
    try:
        raw = binascii.a2b_base64(text.replace("-", "+").replace("_", "/") + _PADDING)
    except ValueError:
        raise LeaseLost from None
    if len(raw) != _RECEIPT_BYTES:
        raise LeaseLost
    plain = raw[: _PLAIN.size]
    signature = _keyed_mac(secret).copy()
    signature.update(plain)
    # A comparison in constant time keeps the signature from being guessed byte by byte.
    if not hmac.compare_digest(raw[_PLAIN.size :], signature.digest()):
        raise LeaseLost
    return Lease(*_PLAIN.unpack(plain))


@lru_cache(maxsize=16)
def _keyed_mac(secret: bytes) -> hashlib.blake2b:
    """A signature to copy: taking in the key costs as much as taking in a lease."""
    return hashlib.blake2b(digest_size=_MAC_BYTES, key=secret)
