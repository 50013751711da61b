"""Subscriptions: which events of a topic they get, and where and in which form these go."""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from penstock.domain.bus.endpoint import Endpoint, checked_route
from penstock.domain.bus.filter_policy import FilteredEvent, FilterScope, compile_filter
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import NUL

MAX_PATTERNS = 50
MAX_PATTERN_CHARS = 256


class Dispatch(StrEnum):
    SHARED = "shared"  # to any worker that claims
    STICKY = "sticky"  # to the worker that published it, as long as it is alive


class MessageFormat(StrEnum):
    EVENT = "event"  # the event's body; with the topic and its id as attributes
    RAW = "raw"  # the event's body as it is
    SNS = "sns"  # the envelope of SNS, with a signature


class SubscriptionSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a store keeps of a subscription beside its name, queue and kinds."""

    filter: str | None = None  # JSON
    filter_scope: FilterScope = FilterScope.ATTRIBUTES
    format: MessageFormat = MessageFormat.EVENT
    endpoint: Endpoint | None = None
    annotations: dict[str, str] = {}  # what the SNS API keeps
    token: str | None = None  # confirms it; it gets no events before

    @property
    def is_pending(self) -> bool:
        return self.token is not None


DEFAULTS = SubscriptionSettings()


class Subscription(msgspec.Struct, frozen=True):
    subscription_no: int
    topic: str
    name: str
    queue_no: int
    queue: str
    kinds: tuple[str, ...]  # shell-style patterns; empty: every event
    dispatch: Dispatch
    created_at: int
    settings: SubscriptionSettings = DEFAULTS
    is_paused: bool = False  # its queue

    @property
    def names(self) -> tuple[str, str]:
        return self.topic, self.name

    @property
    def path(self) -> str:
        """Names it in deliveries, and is the name of its circuit."""
        return f"/topics/{self.topic}/subscriptions/{self.name}"


def wants(subscription: Subscription, kind: str | None, event: FilteredEvent | None = None) -> bool:
    """Whether it matches; an event without a kind matches only subscriptions to everything."""
    settings, kinds = subscription.settings, subscription.kinds
    if kinds and (kind is None or not any(fnmatchcase(kind, pattern) for pattern in kinds)):
        return False
    if settings is DEFAULTS:
        return True
    if settings.token is not None:
        return False
    if settings.filter is None or event is None:
        return True
    return compile_filter(settings.filter, settings.filter_scope).accepts(event)


def check_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    if len(kinds) > MAX_PATTERNS:
        raise InvalidRequest(f"a subscription takes at most {MAX_PATTERNS} patterns of kinds")
    if any(not 0 < len(kind) <= MAX_PATTERN_CHARS or NUL in kind for kind in kinds):
        raise InvalidRequest(
            f"a pattern of kinds has 1 to {MAX_PATTERN_CHARS} characters, none of them NUL"
        )
    return kinds


def check_subscription(settings: SubscriptionSettings) -> SubscriptionSettings:
    """Return them, or raise InvalidRequest."""
    if settings.filter is not None:
        compile_filter(settings.filter, settings.filter_scope)
    if settings.endpoint is not None:
        checked_route(settings.endpoint)
    return settings
