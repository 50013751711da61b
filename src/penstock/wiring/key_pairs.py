"""Key pairs whose library is imported when the first one is needed: most nodes never do."""

from __future__ import annotations

from penstock.ports.signatures import KeyPair


class LazyKeyPairs:
    def generate(self, *, now: int) -> str:
        from penstock.outbound import key_pairs

        return key_pairs.RsaKeyPairs().generate(now=now)

    def read(self, text: str) -> KeyPair:
        from penstock.outbound import key_pairs

        return key_pairs.RsaKeyPairs().read(text)
