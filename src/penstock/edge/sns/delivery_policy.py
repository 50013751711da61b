"""Delivery policies: how often and when a delivery over HTTP is tried again."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from penstock.edge.sns.errors import invalid_parameter

_MAX_RETRIES = 100
_MAX_DELAY = 3_600
_FUNCTIONS = ("linear", "arithmetic", "geometric", "exponential")
_encode = msgspec.json.Encoder().encode


class RetryPolicy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """In seconds and retries, with SNS's defaults."""

    min_delay_target: int = 20
    max_delay_target: int = 20
    num_retries: int = 3
    num_max_delay_retries: int = 0
    num_no_delay_retries: int = 0
    num_min_delay_retries: int = 0
    backoff_function: str = "linear"

    @property
    def delays(self) -> list[int]:
        """Before each retry: at once, then the shortest, then growing, then the longest."""
        fixed = self.num_no_delay_retries + self.num_min_delay_retries + self.num_max_delay_retries
        growing = max(0, self.num_retries - fixed)
        delays = [0] * self.num_no_delay_retries
        delays += [self.min_delay_target] * self.num_min_delay_retries
        delays += [self._growing(n, growing) for n in range(growing)]
        delays += [self.max_delay_target] * self.num_max_delay_retries
        return delays[: self.num_retries]

    def _growing(self, n: int, count: int) -> int:
        low, high = self.min_delay_target, self.max_delay_target
        share = n / (count - 1) if count > 1 else 0.0
        match self.backoff_function:
            case "linear":
                grown = share
            case "arithmetic":
                grown = share * (share + 1) / 2
            case "geometric":
                return round(low * math.exp(share * math.log(high / low)))
            case _:
                grown = math.expm1(4 * share) / math.expm1(4)
        return round(low + (high - low) * grown)


def _effective(policy: RetryPolicy) -> str:
    http = {
        "defaultHealthyRetryPolicy": policy,
        "disableSubscriptionOverrides": False,
        "defaultRequestPolicy": {"headerContentType": "text/plain; charset=UTF-8"},
    }
    return _encode({"http": http}).decode()


DEFAULT_POLICY = _effective(RetryPolicy())


def check_policy(text: str) -> RetryPolicy:
    """The retry policy in a delivery policy of a topic or subscription; raises InvalidParameter."""
    try:
        given: dict[str, Any] = msgspec.json.decode(text, type=dict)
    except (msgspec.DecodeError, RecursionError):
        raise invalid_parameter("DeliveryPolicy: failed to parse JSON") from None
    of_http = given.get("http")
    found = given.get("healthyRetryPolicy")
    if found is None and isinstance(of_http, dict):
        found = of_http.get("defaultHealthyRetryPolicy")
    try:
        policy = msgspec.convert(found or {}, RetryPolicy)
    except msgspec.ValidationError as error:
        raise invalid_parameter(f"DeliveryPolicy: {error}") from None
    if not 1 <= policy.min_delay_target <= policy.max_delay_target <= _MAX_DELAY:
        raise invalid_parameter(
            "DeliveryPolicy: minDelayTarget and maxDelayTarget must be from 1 to 3600, and "
            "minDelayTarget not above maxDelayTarget"
        )
    counts = (
        policy.num_max_delay_retries,
        policy.num_no_delay_retries,
        policy.num_min_delay_retries,
    )
    if not 0 <= policy.num_retries <= _MAX_RETRIES or min(counts) < 0:
        raise invalid_parameter(f"DeliveryPolicy: numRetries must be from 0 to {_MAX_RETRIES}")
    if sum(counts) > policy.num_retries:
        raise invalid_parameter(
            "DeliveryPolicy: numRetries must be greater than or equal to total of "
            "numMinDelayRetries, numNoDelayRetries and numMaxDelayRetries"
        )
    if policy.backoff_function not in _FUNCTIONS:
        raise invalid_parameter(f"DeliveryPolicy: backoffFunction {policy.backoff_function[:40]}")
    return policy
