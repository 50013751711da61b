"""Attributes of subscriptions: which there are, how they are stored, and how they are shown."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from penstock.domain.bus.conditions import InvalidFilter
from penstock.domain.bus.endpoint import Endpoint
from penstock.domain.bus.filter_policy import FilterScope, compile_filter
from penstock.domain.bus.formats import BASE, PROTOCOL
from penstock.domain.bus.subscription import MessageFormat, Subscription, SubscriptionSettings
from penstock.domain.limits import SECOND
from penstock.domain.queue.queue import QueueSettings
from penstock.edge.sns.delivery_policy import RetryPolicy, check_policy
from penstock.edge.sns.errors import from_core, invalid_parameter
from penstock.edge.sns.topic_attributes import PREFIX
from penstock.edge.sqs.rules.names import QueueArn, of_arn

MAX_KEYS = 5  # of a filter
DELIVERY_POLICY, REDRIVE_POLICY = f"{PREFIX}DeliveryPolicy", f"{PREFIX}RedrivePolicy"
ENDPOINT = f"{PREFIX}Endpoint"  # as it was given
SIGNED_UNSUBSCRIBE = f"{PREFIX}AuthenticateOnUnsubscribe"
_MASK = "****"  # for a password, as on AWS
_TIMEOUT_MS = 15 * SECOND
_BOOLEANS = {"true": True, "false": False}
_SCOPES = {
    "MessageAttributes": FilterScope.ATTRIBUTES,
    "MessageBody": FilterScope.BODY,
}
_SCOPE_NAMES = {scope: name for name, scope in _SCOPES.items()}


class SubscriptionRedrive(msgspec.Struct, frozen=True):
    deadLetterTargetArn: str  # noqa: N815


def new_settings(protocol: str, endpoint: str, given: Mapping[str, str]) -> SubscriptionSettings:
    """The settings of a new subscription; raises InvalidParameter."""
    settings = SubscriptionSettings(
        format=MessageFormat.SNS, annotations={PROTOCOL: protocol, ENDPOINT: endpoint}
    )
    # The scope first, because it says which filters are valid.
    for name in sorted(given, key=lambda name: name != "FilterPolicyScope"):
        settings = changed(settings, name, given[name])
    return settings


def changed(settings: SubscriptionSettings, name: str, value: str) -> SubscriptionSettings:
    """The settings with this attribute; raises InvalidParameter."""
    replace = msgspec.structs.replace
    match name:
        case "RawMessageDelivery":
            is_raw = _BOOLEANS.get(value.lower())
            if is_raw is None:
                raise invalid_parameter(
                    f"Attributes Reason: RawMessageDelivery: Invalid value [{value[:40]}]. Must be "
                    "true or false."
                )
            return replace(settings, format=MessageFormat.RAW if is_raw else MessageFormat.SNS)
        case "FilterPolicyScope":
            scope = _SCOPES.get(value)
            if scope is None:
                raise invalid_parameter(
                    f"FilterPolicyScope: Invalid value [{value[:40]}]. Please use either "
                    "MessageBody or MessageAttributes"
                )
            return _with_filter(replace(settings, filter_scope=scope), settings.filter)
        case "FilterPolicy":
            return _with_filter(settings, value if value.strip() not in ("", "{}") else None)
        case "DeliveryPolicy":
            if value:
                check_policy(value)
            return _with_retries(_annotated(settings, DELIVERY_POLICY, value))
        case "RedrivePolicy":
            if value:
                dead_letter_queue(value)
            return _annotated(settings, REDRIVE_POLICY, value)
    raise invalid_parameter("AttributeName")


def confirmed(settings: SubscriptionSettings, *, is_strict: bool) -> SubscriptionSettings:
    """`is_strict`: only a signed request may end it."""
    found = msgspec.structs.replace(settings, token=None)
    return _annotated(found, SIGNED_UNSUBSCRIBE, "true") if is_strict else found


def ends_by_url(settings: SubscriptionSettings) -> bool:
    """Whether the URL in its envelopes may end it."""
    return PROTOCOL in settings.annotations and SIGNED_UNSUBSCRIBE not in settings.annotations


def with_endpoint(settings: SubscriptionSettings, *, token: str, base: str) -> SubscriptionSettings:
    """Of a subscription over HTTP, which a token confirms; `base`: the address of this server."""
    settings = _annotated(settings, BASE, base)
    url = urlsplit(settings.annotations[ENDPOINT])
    headers = {}
    if url.username is not None:
        userinfo = f"{unquote(url.username)}:{unquote(url.password or '')}"
        headers["authorization"] = f"Basic {b64encode(userinfo.encode()).decode()}"
    bare = url._replace(netloc=url.netloc.rpartition("@")[2], fragment="")
    endpoint = Endpoint(
        url=urlunsplit(bare),
        retry_intervals_ms=_delays(settings),
        timeout_ms=_TIMEOUT_MS,
        headers=headers,
    )
    return msgspec.structs.replace(settings, endpoint=endpoint, token=token)


def queue_of(settings: SubscriptionSettings) -> QueueSettings:
    """The settings of the queue of a subscription over HTTP."""
    text = settings.annotations.get(REDRIVE_POLICY)
    return QueueSettings(
        max_attempts=_retry_policy(settings).num_retries + 1,
        max_crashes=None,
        dead_letter_queue=None if text is None else dead_letter_queue(text).name,
    )


def with_limits(settings: SubscriptionSettings, queue: QueueSettings) -> QueueSettings:
    """The settings of its queue after a change of its policies; the others stay."""
    if settings.endpoint is None:
        return queue
    wanted = queue_of(settings)
    return msgspec.structs.replace(
        queue, max_attempts=wanted.max_attempts, dead_letter_queue=wanted.dead_letter_queue
    )


def _with_retries(settings: SubscriptionSettings) -> SubscriptionSettings:
    if settings.endpoint is None:
        return settings
    endpoint = msgspec.structs.replace(settings.endpoint, retry_intervals_ms=_delays(settings))
    return msgspec.structs.replace(settings, endpoint=endpoint)


def _delays(settings: SubscriptionSettings) -> tuple[int, ...]:
    return tuple(delay * SECOND for delay in _retry_policy(settings).delays) or (SECOND,)


def _retry_policy(settings: SubscriptionSettings) -> RetryPolicy:
    text = settings.annotations.get(DELIVERY_POLICY)
    return RetryPolicy() if text is None else check_policy(text)


def dead_letter_queue(text: str) -> QueueArn:
    """The queue that a redrive policy names; raises InvalidParameter."""
    try:
        given = msgspec.json.decode(text, type=SubscriptionRedrive)
    except (msgspec.DecodeError, RecursionError):
        raise invalid_parameter(
            "RedrivePolicy: it must be a JSON object with deadLetterTargetArn"
        ) from None
    arn = of_arn(given.deadLetterTargetArn)
    if arn is None:
        raise invalid_parameter("RedrivePolicy: deadLetterTargetArn is an invalid arn")
    return arn


def shown(
    one: Subscription, *, arn: str, topic_arn: str, owner: str, queue_arn: str
) -> dict[str, str]:
    """All attributes of a subscription; `queue_arn`: of its queue."""
    settings = one.settings
    annotations = settings.annotations
    found = {
        "SubscriptionArn": arn,
        "TopicArn": topic_arn,
        "Owner": owner,
        "Protocol": protocol_of(one),
        "Endpoint": shown_endpoint(one, queue_arn=queue_arn),
        "RawMessageDelivery": str(settings.format is not MessageFormat.SNS).lower(),
        "PendingConfirmation": str(settings.is_pending).lower(),
        "ConfirmationWasAuthenticated": "true",
        "SubscriptionPrincipal": f"arn:aws:iam::{owner}:root",
    }
    if settings.filter is not None:
        found["FilterPolicy"] = settings.filter
        found["FilterPolicyScope"] = _SCOPE_NAMES[settings.filter_scope]
    for name in (DELIVERY_POLICY, REDRIVE_POLICY):
        if name in annotations:
            found[name.removeprefix(PREFIX)] = annotations[name]
    return found


def shown_endpoint(one: Subscription, *, queue_arn: str) -> str:
    """Its URL without the password, or the ARN of its queue."""
    given = one.settings.annotations.get(ENDPOINT, queue_arn)
    if protocol_of(one) == "sqs":
        return given
    url = urlsplit(given)
    userinfo, at, host = url.netloc.rpartition("@")
    user, colon, _ = userinfo.partition(":")
    return urlunsplit(url._replace(netloc=f"{user}:{_MASK}@{host}")) if at and colon else given


def protocol_of(one: Subscription) -> str:
    return one.settings.annotations.get(PROTOCOL, "sqs")


def _with_filter(settings: SubscriptionSettings, text: str | None) -> SubscriptionSettings:
    if text is not None:
        try:
            compiled = compile_filter(text, settings.filter_scope)
        except InvalidFilter as error:
            raise from_core(error) from None
        if compiled.keys > MAX_KEYS:
            raise invalid_parameter(
                f"FilterPolicy: Filter policy can not have more than {MAX_KEYS} keys"
            )
    return msgspec.structs.replace(settings, filter=text)


def _annotated(settings: SubscriptionSettings, name: str, value: str) -> SubscriptionSettings:
    others = {key: text for key, text in settings.annotations.items() if key != name}
    return msgspec.structs.replace(settings, annotations=others | ({name: value} if value else {}))
