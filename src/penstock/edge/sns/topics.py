"""Operations on topics: create, find, list, change, delete, tags, permissions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec

from penstock.domain.access.api_key import sees
from penstock.domain.bus.topic import TopicSettings
from penstock.domain.errors import SubscriptionNotFound, TopicNotFound
from penstock.edge.aws.errors import AwsError
from penstock.edge.sns import errors, topic_attributes, wire
from penstock.edge.sns.call import MAX_TOPIC_CHARS, SnsCall
from penstock.edge.sns.errors import invalid_parameter
from penstock.edge.sns.topic_attributes import PREFIX
from penstock.edge.sqs import permissions
from penstock.ports.unit_of_work import await_steps
from penstock.services.queues import QueueService
from penstock.services.topics import TopicService

PAGE = 100
MAX_TAGS = 50
_POLICY = f"{PREFIX}Policy"

Change = Callable[[TopicSettings], TopicSettings]


class TopicActions:
    def __init__(self, topics: TopicService, queues: QueueService) -> None:
        self._topics = topics
        self._queues = queues

    async def create(self, call: SnsCall) -> wire.CreateTopicResult:
        given: wire.CreateTopicInput = call.input
        if not given.Name:
            raise errors.missing("Name")
        tags = _tags(given.Tags or [])
        attributes = given.Attributes or {}
        wanted = topic_attributes.new_settings(given.Name, attributes, tags)
        if len(given.Name) > MAX_TOPIC_CHARS:
            raise invalid_parameter(
                f"Topic Name Reason: a name has at most {MAX_TOPIC_CHARS} characters here"
            )
        call.allow(given.Name)
        put = await self._topics.put(given.Name, wanted)
        if not put.is_new:
            present = put.view.topic.settings
            start = "Reason: Topic already exists with different"
            if topic_attributes.differs(present, wanted, attributes):
                raise invalid_parameter(f"Attributes {start} attributes")
            if tags and tags != present.labels:
                raise invalid_parameter(f"Tags {start} tags")
        return wire.CreateTopicResult(call.arns.of_topic(given.Name))

    async def delete(self, call: SnsCall) -> None:
        topic = call.topic()
        with suppress(TopicNotFound, SubscriptionNotFound):  # as on AWS
            for one in (await self._topics.get(topic)).subscriptions:
                if one.settings.endpoint is not None:
                    await await_steps(self._queues.purge(one.queue))
                    await self._topics.unsubscribe(topic, one.name, with_queue=True)
            await self._topics.remove(topic, force=True)

    async def list(self, call: SnsCall) -> wire.ListTopicsResult:
        after = call.input.NextToken or ""
        shown = await await_steps(
            self._topics.visible(lambda name: sees(call.caller, name), after=after, limit=PAGE)
        )
        return wire.ListTopicsResult(
            Topics=[wire.Topic(call.arns.of_topic(topic.name)) for topic in shown],
            NextToken=shown[-1].name if len(shown) == PAGE else None,
        )

    async def get_attributes(self, call: SnsCall) -> wire.AttributesResult:
        view = await self._topics.get(call.topic())
        pending = sum(one.settings.is_pending for one in view.subscriptions)
        return wire.AttributesResult(
            topic_attributes.shown(
                view.topic.settings,
                arn=call.arns.of_topic(view.topic.name),
                owner=call.arns.account,
                confirmed=len(view.subscriptions) - pending,
                pending=pending,
            )
        )

    async def set_attributes(self, call: SnsCall) -> None:
        given: wire.SetTopicAttributesInput = call.input
        topic = call.topic()
        name, value = given.AttributeName, given.AttributeValue or ""
        if not name:
            raise errors.missing("AttributeName")
        await self._change(topic, lambda settings: topic_attributes.changed(settings, name, value))

    # --- permissions and tags ---

    async def add_permission(self, call: SnsCall) -> None:
        given: wire.AddPermissionInput = call.input
        topic = call.topic()
        arn, label = call.arns.of_topic(topic), given.Label or ""
        accounts, actions = given.AWSAccountId or [], given.ActionName or []
        await self._change_policy(
            topic,
            lambda policy: permissions.with_statement(
                policy, arn=arn, service="SNS", label=label, accounts=accounts, actions=actions
            ),
        )

    async def remove_permission(self, call: SnsCall) -> None:
        topic = call.topic()
        arn, label = call.arns.of_topic(topic), call.input.Label or ""
        await self._change_policy(
            topic, lambda policy: permissions.remove(policy, arn=arn, label=label)
        )

    async def tag(self, call: SnsCall) -> wire.Empty:
        tags = _tags(call.input.Tags or [])
        await self._change_tags(call, lambda labels: labels | tags)
        return wire.Empty()

    async def untag(self, call: SnsCall) -> wire.Empty:
        keys = call.input.TagKeys or []
        await self._change_tags(
            call, lambda labels: {key: text for key, text in labels.items() if key not in keys}
        )
        return wire.Empty()

    async def list_tags(self, call: SnsCall) -> wire.ListTagsForResourceResult:
        try:
            view = await self._topics.get(call.topic(name="ResourceArn"))
        except TopicNotFound:
            raise errors.resource_not_found() from None
        labels = view.topic.settings.labels
        return wire.ListTagsForResourceResult([wire.Tag(*pair) for pair in labels.items()])

    async def _change_tags(
        self, call: SnsCall, change: Callable[[dict[str, str]], dict[str, str]]
    ) -> None:
        def derive(settings: TopicSettings) -> TopicSettings:
            labels = change(settings.labels)
            if len(labels) > MAX_TAGS:
                raise errors.tag_limit()
            return msgspec.structs.replace(settings, labels=labels)

        try:
            await self._change(call.topic(name="ResourceArn"), derive)
        except TopicNotFound:
            raise errors.resource_not_found() from None

    async def _change_policy(self, topic: str, change: Callable[[str | None], str | None]) -> None:
        def derive(settings: TopicSettings) -> TopicSettings:
            others = {name: text for name, text in settings.annotations.items() if name != _POLICY}
            policy = change(settings.annotations.get(_POLICY))
            kept = others if policy is None else {**others, _POLICY: policy}
            return msgspec.structs.replace(settings, annotations=kept)

        await self._change(topic, derive)

    async def _change(self, topic: str, change: Change) -> None:
        refused: list[AwsError] = []

        def derive(settings: TopicSettings) -> TopicSettings:
            try:
                return change(settings)
            except AwsError as error:  # the store passes on only errors of the core
                refused.append(error)
                return settings

        await self._topics.change(topic, derive)
        if refused:
            raise refused[-1]


def _tags(given: list[wire.Tag]) -> dict[str, str]:
    tags = {tag.Key: tag.Value for tag in given}
    if len(tags) > MAX_TAGS:
        raise errors.tag_limit()
    for key, value in tags.items():
        if not 1 <= len(key) <= 128 or len(value) > 256 or key.lower().startswith("aws:"):
            raise invalid_parameter(
                "Tags Reason: a key has 1 to 128 characters and does not begin with aws:, a value "
                "has at most 256"
            )
    return tags
