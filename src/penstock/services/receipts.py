"""Signs receipts and reads them; remembers those it has signed lately, which need no check."""

from __future__ import annotations

from penstock.domain.message import lease as leases
from penstock.domain.message.lease import Lease
from penstock.domain.message.lifecycle import Message

_MAX_REMEMBERED = 10_000  # about 3 MB


class Receipts:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._signed: dict[str, Lease] = {}

    def sign(self, message: Message) -> str:
        lease = Lease.of(message)
        receipt = leases.receipt(lease, secret=self._secret)
        if len(self._signed) >= _MAX_REMEMBERED:
            self._signed.clear()
        self._signed[receipt] = lease
        return receipt

    def read(self, receipt: str) -> Lease:
        """Raises LeaseLost for anything that is not a receipt of a claim."""
        signed = self._signed.get(receipt)
        return leases.read_receipt(receipt, secret=self._secret) if signed is None else signed
