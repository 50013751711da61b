"""The message body that every peer carries: 1,024 bytes of JSON text without line ends."""

from __future__ import annotations

import json
import random
import string

SIZE = 1024


def _text(size: int) -> str:
    # Not one repeated letter: a peer that compresses must not gain by it. Seeded: runs compare.
    letters = random.Random(7).choices(string.ascii_letters + string.digits, k=size)
    return "".join(letters)


def _body() -> bytes:
    record = {"order": 48213, "customer": "c-7731", "paid": True, "total": 129.5, "note": ""}
    record["note"] = _text(SIZE - len(json.dumps(record)))
    return json.dumps(record).encode()


def body_of(number: int) -> dict[str, object]:
    """A body of about the same size that differs from the others."""
    return {"number": number, "note": _NOTE}


_NOTE = _text(SIZE - 30)
BODY = _body()
assert len(BODY) == SIZE
