"""Operations on subscriptions: subscribe, confirm, find, list, change, unsubscribe."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from penstock.domain.access.api_key import sees
from penstock.domain.bus.subscription import Subscription, SubscriptionSettings
from penstock.domain.errors import SubscriptionNotFound, TopicNotFound
from penstock.edge.aws.errors import AwsError
from penstock.edge.sns import errors, subscription_attributes, wire
from penstock.edge.sns.call import SnsCall
from penstock.edge.sns.errors import invalid_parameter
from penstock.edge.sns.subscription_attributes import ENDPOINT, protocol_of
from penstock.edge.sns.topic_attributes import is_fifo
from penstock.edge.sqs.rules.names import QueueArn, of_arn
from penstock.ports.clock import Dice
from penstock.services.queues import QueueService
from penstock.services.topics import TopicService

PAGE = 100
_PENDING = "PendingConfirmation"
_SEPARATOR = ":"  # of the names in a token; neither name has one

Change = Callable[[SubscriptionSettings], SubscriptionSettings]


class SubscriptionActions:
    def __init__(self, topics: TopicService, queues: QueueService, dice: Dice) -> None:
        self._topics = topics
        self._queues = queues
        self._dice = dice

    async def subscribe(self, call: SnsCall) -> wire.SubscribeResult:
        given: wire.SubscribeInput = call.input
        topic = call.topic()
        protocol, endpoint = given.Protocol, given.Endpoint
        if not protocol:
            raise errors.missing("Protocol")
        if protocol != "sqs":
            raise invalid_parameter(
                f"Amazon SNS: protocol {protocol[:40]} is not available here; use sqs"
            )
        if not endpoint:
            raise errors.missing("Endpoint")
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
        done = await self._topics.subscribe_queue(topic, self._new_name(), queue, wanted)
        return wire.SubscribeResult(_arn(call, done.subscription))

    async def confirm(self, call: SnsCall) -> wire.SubscribeResult:
        given: wire.ConfirmSubscriptionInput = call.input
        topic = call.topic()
        if not given.Token:
            raise errors.missing("Token")
        for one in (await self._topics.get(topic)).subscriptions:
            if one.settings.token == given.Token:
                await self._change(topic, one.name, subscription_attributes.confirmed)
                return wire.SubscribeResult(_arn(call, one))
        raise invalid_parameter("Token")

    async def unsubscribe(self, call: SnsCall) -> None:
        with suppress(TopicNotFound, SubscriptionNotFound):  # as on AWS
            await self._topics.unsubscribe(*call.subscription())

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
        )

    async def list(self, call: SnsCall) -> wire.ListSubscriptionsResult:
        topic, _, name = (call.input.NextToken or "").partition(_SEPARATOR)
        found = await self._topics.subscriptions(after=(topic, name), limit=PAGE)
        last = found[-1] if len(found) == PAGE else None
        return wire.ListSubscriptionsResult(
            Subscriptions=[_listed(call, one) for one in found if sees(call.caller, one.topic)],
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

    async def _change(self, topic: str, name: str, change: Change) -> None:
        refused: list[AwsError] = []

        def derive(settings: SubscriptionSettings) -> SubscriptionSettings:
            try:
                return change(settings)
            except AwsError as error:  # the store passes on only errors of the core
                refused.append(error)
                return settings

        await self._topics.change_subscription(topic, name, derive)
        if refused:
            raise refused[-1]

    def _new_name(self) -> str:
        """A name that cannot be guessed: who has the ARN may unsubscribe."""
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


def _queue_arn(call: SnsCall, queue: str) -> str:
    return str(QueueArn(call.arns.region, call.arns.account, queue))


def _listed(call: SnsCall, one: Subscription) -> wire.Subscription:
    return wire.Subscription(
        SubscriptionArn=_PENDING if one.settings.is_pending else _arn(call, one),
        Owner=call.arns.account,
        Protocol=protocol_of(one),
        Endpoint=one.settings.annotations.get(ENDPOINT, _queue_arn(call, one.queue)),
        TopicArn=call.arns.of_topic(one.topic),
    )
