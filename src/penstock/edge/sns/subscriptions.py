"""Operations on subscriptions: subscribe, confirm, find, list, change, unsubscribe."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hmac import compare_digest

from penstock.domain.access.api_key import sees
from penstock.domain.bus.formats import confirmation_of
from penstock.domain.bus.subscription import Subscription, SubscriptionSettings
from penstock.domain.bus.topic import TopicSettings
from penstock.domain.errors import SubscriptionNotFound, TopicNotFound
from penstock.edge.aws.errors import AwsError
from penstock.edge.sns import errors, subscription_attributes, wire
from penstock.edge.sns.call import OPENER, SnsCall
from penstock.edge.sns.errors import invalid_parameter, sns_error
from penstock.edge.sns.subscription_attributes import ENDPOINT, protocol_of, shown_endpoint
from penstock.edge.sns.topic_attributes import is_fifo
from penstock.edge.sqs.rules.names import QueueArn, of_arn
from penstock.ports.clock import Clock, Dice
from penstock.ports.unit_of_work import await_steps
from penstock.services.envelopes import EnvelopeSigner
from penstock.services.messages import MessageService
from penstock.services.queues import QueueService
from penstock.services.topics import ChangeQueue, TopicService

PAGE = 100
_PENDING = "PendingConfirmation"
_PENDING_ANSWER = "pending confirmation"
_TOKEN = 64
_LONG_TOPIC = 43
_SEPARATOR = ":"  # of the names in a token; neither name has one

Change = Callable[[SubscriptionSettings], SubscriptionSettings]


class SubscriptionActions:
    def __init__(
        self,
        topics: TopicService,
        queues: QueueService,
        messages: MessageService,
        signer: EnvelopeSigner,
        clock: Clock,
        dice: Dice,
    ) -> None:
        self._topics = topics
        self._messages = messages
        self._signer = signer
        self._clock = clock
        self._queues = queues
        self._dice = dice

    async def subscribe(self, call: SnsCall) -> wire.SubscribeResult:
        given: wire.SubscribeInput = call.input
        topic = call.topic()
        protocol, endpoint = given.Protocol, given.Endpoint
        if not protocol:
            raise errors.missing("Protocol")
        if protocol not in ("sqs", "http", "https"):
            raise invalid_parameter(
                f"Amazon SNS: protocol {protocol[:40]} is not available; use sqs, http or https"
            )
        if not endpoint:
            raise errors.missing("Endpoint")
        if protocol != "sqs":
            return await self._subscribe_url(call, topic)
        attributes = given.Attributes or {}
        wanted = subscription_attributes.new_settings(protocol, endpoint, attributes)
        view = await self._topics.get(topic)
        queue = await self._queue(call, endpoint, is_of_fifo=view.topic.settings.is_ordered)
        await self._check_dead_letters(call, wanted)
        for one in view.subscriptions:
            if one.queue == queue and protocol_of(one) == "sqs":
                return wire.SubscribeResult(
                    _existing(call, one, wanted, has_given=bool(attributes))
                )
        done = await self._topics.subscribe_queue(topic, self._new_name(topic), queue, wanted)
        return wire.SubscribeResult(_arn(call, done.subscription))

    async def _subscribe_url(self, call: SnsCall, topic: str) -> wire.SubscribeResult:
        """It stays pending until the endpoint confirms with the token that is pushed to it."""
        given: wire.SubscribeInput = call.input
        attributes = given.Attributes or {}
        protocol, url = given.Protocol or "", given.Endpoint or ""
        view = await self._topics.get(topic)
        if view.topic.settings.is_ordered:
            raise invalid_parameter("Protocol Reason: FIFO topics take only SQS queues")
        wanted = subscription_attributes.new_settings(protocol, url, attributes)
        wanted = subscription_attributes.with_endpoint(
            wanted, token=self._dice.digits(_TOKEN), base=call.base
        )
        await self._check_dead_letters(call, wanted)
        for one in view.subscriptions:
            if one.settings.annotations.get(ENDPOINT) == url:
                if one.settings.token is None:
                    return wire.SubscribeResult(_arn(call, one))
                await self._send_confirmation(call, one, view.topic.settings)
                return wire.SubscribeResult(_shown_arn(call, one))
        done = await self._topics.subscribe(
            topic,
            self._new_name(topic),
            settings=subscription_attributes.queue_of(wanted),
            change=lambda present: wanted,
        )
        await self._send_confirmation(call, done.subscription, view.topic.settings)
        return wire.SubscribeResult(_shown_arn(call, done.subscription))

    async def _send_confirmation(
        self, call: SnsCall, one: Subscription, topic: TopicSettings
    ) -> None:
        draft = confirmation_of(
            one,
            arns=call.arns,
            topic=topic,
            message_id=self._new_name(one.topic),
            now=self._clock.now(),
        )
        await await_steps(self._messages.send_for_bus(one.queue, draft))

    async def confirm(self, call: SnsCall) -> wire.SubscribeResult:
        given: wire.ConfirmSubscriptionInput = call.input
        topic = call.topic()
        if not given.Token:
            raise errors.missing("Token")
        is_strict = (given.AuthenticateOnUnsubscribe or "").lower() == "true"
        change = partial(subscription_attributes.confirmed, is_strict=is_strict)
        for one in (await self._topics.get(topic)).subscriptions:
            if one.settings.token == given.Token:
                await self._change(topic, one.name, change)
                return wire.SubscribeResult(_arn(call, one))
        raise invalid_parameter("Token")

    async def unsubscribe(self, call: SnsCall) -> None:
        topic, name = call.subscription()
        with suppress(TopicNotFound, SubscriptionNotFound):  # as on AWS
            found = await self._topics.subscription(topic, name)
            if call.caller is OPENER and not self._ends_by_url(call, found):
                raise sns_error(
                    "AuthorizationError",
                    "sign this request, or open the UnsubscribeURL of a message",
                    status=403,
                )
            has_endpoint = found.settings.endpoint is not None
            if has_endpoint:
                await await_steps(self._queues.purge(found.queue))
            await self._topics.unsubscribe(topic, name, with_queue=has_endpoint)

    def _ends_by_url(self, call: SnsCall, one: Subscription) -> bool:
        token = self._signer.unsubscribe_token(_arn(call, one))
        given = (call.input.Token or "").encode()
        return compare_digest(given, token.encode()) and subscription_attributes.ends_by_url(
            one.settings
        )

    async def get_attributes(self, call: SnsCall) -> wire.AttributesResult:
        one = await self._topics.subscription(*call.subscription())
        return wire.AttributesResult(
            subscription_attributes.shown(
                one,
                arn=_arn(call, one),
                topic_arn=call.arns.of_topic(one.topic),
                owner=call.arns.account,
                queue_arn=_queue_arn(call, one.queue),
            )
        )

    async def set_attributes(self, call: SnsCall) -> None:
        given: wire.SetSubscriptionAttributesInput = call.input
        topic, name = call.subscription()
        attribute, value = given.AttributeName, given.AttributeValue or ""
        if not attribute:
            raise errors.missing("AttributeName")
        if attribute == "RedrivePolicy" and value:
            await self._check_dead_letters(
                call, subscription_attributes.changed(SubscriptionSettings(), attribute, value)
            )
        await self._change(
            topic,
            name,
            lambda settings: subscription_attributes.changed(settings, attribute, value),
            change_queue=subscription_attributes.with_limits
            if attribute in ("DeliveryPolicy", "RedrivePolicy")
            else None,
        )

    async def list(self, call: SnsCall) -> wire.ListSubscriptionsResult:
        topic, _, name = (call.input.NextToken or "").partition(_SEPARATOR)
        after, shown = (topic, name), list[Subscription]()
        while len(shown) < PAGE:
            found = await self._topics.subscriptions(after=after, limit=PAGE)
            shown += [one for one in found if sees(call.caller, one.topic)]
            if len(found) < PAGE:
                break
            after = found[-1].names
        # A token must not name a topic that the caller does not see.
        last = shown[PAGE - 1] if len(shown) >= PAGE else None
        return wire.ListSubscriptionsResult(
            Subscriptions=[_listed(call, one) for one in shown[:PAGE]],
            NextToken=None if last is None else f"{last.topic}{_SEPARATOR}{last.name}",
        )

    async def list_by_topic(self, call: SnsCall) -> wire.ListSubscriptionsResult:
        view = await self._topics.get(call.topic())
        after = call.input.NextToken or ""
        left = [one for one in view.subscriptions if one.name > after]
        return wire.ListSubscriptionsResult(
            Subscriptions=[_listed(call, one) for one in left[:PAGE]],
            NextToken=left[PAGE - 1].name if len(left) > PAGE else None,
        )

    async def _queue(self, call: SnsCall, endpoint: str, *, is_of_fifo: bool) -> str:
        """The name of the queue to subscribe; raises InvalidParameter or NotFound."""
        arn = of_arn(endpoint)
        if arn is None:
            raise invalid_parameter("SQS endpoint ARN")
        if is_fifo(arn.name) and not is_of_fifo:
            raise invalid_parameter(
                "Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS topics"
            )
        call.allow(arn.name)
        if arn.account != call.arns.account or not await self._queues.exists(arn.name):
            raise invalid_parameter(f"Endpoint Reason: queue {arn.name} does not exist")
        return arn.name

    async def _check_dead_letters(self, call: SnsCall, settings: SubscriptionSettings) -> None:
        text = settings.annotations.get(subscription_attributes.REDRIVE_POLICY)
        if text is None:
            return
        arn = subscription_attributes.dead_letter_queue(text)
        call.allow(arn.name)
        if not await self._queues.exists(arn.name):
            raise invalid_parameter("RedrivePolicy: deadLetterTargetArn does not exist")

    async def _change(
        self, topic: str, name: str, change: Change, *, change_queue: ChangeQueue | None = None
    ) -> None:
        refused: list[AwsError] = []

        def derive(settings: SubscriptionSettings) -> SubscriptionSettings:
            try:
                return change(settings)
            except AwsError as error:  # the store passes on only errors of the core
                refused.append(error)
                return settings

        await self._topics.change_subscription(topic, name, derive, change_queue=change_queue)
        if refused:
            raise refused[-1]

    def _new_name(self, topic: str) -> str:
        """A random name, as on AWS.

        A short one if its queue could not be named after the topic and a long one.
        """
        if len(topic) > _LONG_TOPIC:
            return self._dice.digits(20)
        digits = self._dice.digits(32)
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _existing(
    call: SnsCall, one: Subscription, wanted: SubscriptionSettings, *, has_given: bool
) -> str:
    """Subscribe of an endpoint that is subscribed returns its ARN, unless the attributes differ."""
    if has_given and one.settings != wanted:
        raise invalid_parameter(
            "Attributes Reason: Subscription already exists with different attributes"
        )
    return _arn(call, one)


def _arn(call: SnsCall, one: Subscription) -> str:
    return call.arns.of_subscription(one.topic, one.name)


def _shown_arn(call: SnsCall, one: Subscription) -> str:
    """As Subscribe returns it: while it is pending only on request."""
    wants_arn = (call.input.ReturnSubscriptionArn or "").lower() == "true"
    return _arn(call, one) if wants_arn else _PENDING_ANSWER


def _queue_arn(call: SnsCall, queue: str) -> str:
    return str(QueueArn(call.arns.region, call.arns.account, queue))


def _listed(call: SnsCall, one: Subscription) -> wire.Subscription:
    return wire.Subscription(
        SubscriptionArn=_PENDING if one.settings.is_pending else _arn(call, one),
        Owner=call.arns.account,
        Protocol=protocol_of(one),
        Endpoint=shown_endpoint(one, queue_arn=_queue_arn(call, one.queue)),
        TopicArn=call.arns.of_topic(one.topic),
    )
