"""Protocols of a store: durable steps of messages, and signals that messages wait for."""

from __future__ import annotations

from typing import Protocol

from penstock.domain.message.lease import Lease
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.step import RecordedStep, Signal, StepTimes, Wait


class StepStore(Protocol):
    def record(
        self, lease: Lease, name: str, outcome: str, times: StepTimes, *, now: int
    ) -> tuple[RecordedStep, bool]:
        """Record a step, or return the one of this name, and whether it is new.

        Raises LeaseLost, and TooLarge if the message has too many steps.
        """
        ...

    def hold(self, lease: Lease) -> Message:
        """The message, locked until the end of this transaction; raises LeaseLost."""
        ...

    def page(
        self, message_no: int, *, after_no: int, limit: int, max_bytes: int
    ) -> tuple[list[RecordedStep], bool]:
        """Steps in the order in which they were recorded, and whether these are the last ones."""
        ...


class SignalStore(Protocol):
    def find(self, name: str, *, now: int) -> Signal | None: ...
    def send(self, signal: Signal) -> tuple[Signal, bool, int]:
        """Keep a signal and end the waits for it: returns it, whether it is new, and how many.

        If one of this name is kept, that one is returned and nothing changes.
        """
        ...

    def wait(
        self, lease: Lease, name: str, step: str, *, until_at: int | None, now: int
    ) -> RecordedStep | Wait:
        """The step with which the wait has ended, or the wait that is registered now.

        Raises LeaseLost, and TooLarge if the message has too many steps.
        """
        ...

    def waits_of(self, message_no: int) -> list[Wait]:
        """What a message waits for."""
        ...
