"""Operations on queues: create, find, list, change, purge, delete, tags, permissions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from penstock.domain.errors import InvalidRequest, QueueExists, QueueNotFound
from penstock.domain.limits import NUL
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.edge.aws.errors import AwsError, invalid_parameter
from penstock.edge.sqs import permissions
from penstock.edge.sqs.call import QueueLookup, SqsCall, allow
from penstock.edge.sqs.errors import (
    missing_parameter,
    over_limit,
    purge_queue_in_progress,
    queue_deleted_recently,
    queue_does_not_exist,
    queue_name_exists,
    require,
)
from penstock.edge.sqs.rules import attributes, names, pages, policies
from penstock.edge.sqs.rules import stored_attributes as kept
from penstock.edge.sqs.rules.attributes import Figures, QueueAttributes
from penstock.edge.sqs.rules.policies import RedrivePolicy
from penstock.edge.sqs.wire.model import (
    CreateQueueRequest,
    CreateQueueResult,
    GetQueueAttributesRequest,
    GetQueueAttributesResult,
    GetQueueUrlRequest,
    GetQueueUrlResult,
    ListDeadLetterSourceQueuesRequest,
    ListDeadLetterSourceQueuesResult,
    ListQueuesRequest,
    ListQueuesResult,
    ListQueueTagsResult,
)
from penstock.ports.clock import Clock
from penstock.ports.unit_of_work import await_steps
from penstock.services.queues import QueueService, QueueView

MAX_TAGS = 50
PATIENCE_MS = (
    60_000  # with strict limits: between two purges, and before a deleted name can be used again
)
_COUNTERS = frozenset(name for name in attributes.READ_ONLY if name.startswith("Approximate"))


Urls = list[str]  # inside the class `list` is a method


class QueueActions:
    def __init__(
        self, queues: QueueService, lookup: QueueLookup, clock: Clock, *, max_body_bytes: int
    ) -> None:
        self._queues = queues
        self._lookup = lookup
        self._clock = clock
        self._max_body_bytes = max_body_bytes

    # --- create, find, list ---

    async def create(self, call: SqsCall) -> CreateQueueResult:
        given: CreateQueueRequest = call.input
        name = require(given.QueueName, "QueueName")
        if not names.is_possible(name):
            names.check_new(name, fifo=names.is_fifo(name))
        allow(call, name)
        with suppress(QueueExists):  # another caller may have created it
            if not await self._queues.exists(name):
                await self._make(call, name, given)
                return CreateQueueResult(call.url(name))
        # CreateQueue of an existing queue returns its URL, unless the attributes differ.
        queue = (await self._queues.get(name)).queue
        differs = attributes.first_difference(
            self._attributes(call, queue),
            given.Attributes or {},
            least_retention=_retention(call),
        )
        if differs is not None:
            raise queue_name_exists(f"attribute {differs}")
        if given.tags and given.tags != queue.settings.labels:
            raise queue_name_exists("tags")
        return CreateQueueResult(call.url(name))

    async def _make(self, call: SqsCall, name: str, given: CreateQueueRequest) -> None:
        wanted = attributes.read_new(given.Attributes or {}, least_retention=_retention(call))
        names.check_new(name, fifo=wanted.fifo)
        _check_tags(_no_more_than_fit(name, given.tags or {}))
        await self._check_dead_letters(call, name, wanted, given.Attributes)
        if call.settings.limits == "strict":
            removed_at = await self._queues.removed_at(name)
            if removed_at is not None and self._clock.now() < removed_at + PATIENCE_MS:
                raise queue_deleted_recently()
        settings = msgspec.structs.replace(kept.new_settings(wanted), labels=given.tags or {})
        await self._queues.put(name, settings, only_new=True)

    async def get_url(self, call: SqsCall) -> GetQueueUrlResult:
        given: GetQueueUrlRequest = call.input
        name = require(given.QueueName, "QueueName")
        if given.QueueOwnerAWSAccountId not in (None, "", call.settings.account):
            raise queue_does_not_exist()
        queue = await self._lookup.queue_by_name(call, name)
        return GetQueueUrlResult(call.url(queue.name))

    async def list(self, call: SqsCall) -> ListQueuesResult:
        given: ListQueuesRequest = call.input
        prefix = given.QueueNamePrefix or ""
        pages.check(given.MaxResults, given.NextToken)
        if prefix and not names.is_possible(prefix):
            return ListQueuesResult()
        return ListQueuesResult(*await self._page(call, prefix=prefix))

    async def list_sources(self, call: SqsCall) -> ListDeadLetterSourceQueuesResult:
        target = (await self._lookup.queue(call)).name
        return ListDeadLetterSourceQueuesResult(*await self._page(call, dead_letter_queue=target))

    async def _page(self, call: SqsCall, **wanted: str) -> tuple[Urls, str | None]:
        """The URLs of some queues, and the token of the next page."""
        given: ListQueuesRequest | ListDeadLetterSourceQueuesRequest = call.input
        found, token = await pages.page(
            lambda after, limit: self._queues.page(after=after, limit=limit, **wanted),
            call.caller,
            size=given.MaxResults,
            token=given.NextToken,
        )
        return [call.url(name) for name in found], token

    # --- attributes ---

    async def get_attributes(self, call: SqsCall) -> GetQueueAttributesResult:
        given: GetQueueAttributesRequest = call.input
        queue = await self._lookup.queue(call)
        wanted = attributes.check_names(given.AttributeNames)
        if wanted & _COUNTERS or attributes.ALL in wanted:
            # Messages that have become due count as visible.
            await await_steps(self._queues.make_all_due_ready(queue.name))
        view = await self._queues.get(queue.name)
        shown = self._attributes(call, view.queue)
        return GetQueueAttributesResult(
            attributes.chosen(given.AttributeNames, shown, _figures(call, view))
        )

    async def set_attributes(self, call: SqsCall) -> None:
        queue = await self._lookup.queue(call)
        given = call.input.Attributes
        if not given:
            raise missing_parameter("Attributes")
        least = _retention(call)
        current = self._attributes(call, (await self._queues.get(queue.name)).queue)
        changed = attributes.read_changes(current, given, least_retention=least)
        if changed.redrive_policy != current.redrive_policy:
            await self._check_dead_letters(call, queue.name, changed, given)

        def change(queue: Queue) -> QueueSettings:
            present = self._attributes(call, queue)
            wanted = attributes.read_changes(present, given, least_retention=least)
            return kept.changed_settings(queue.settings, present, wanted)

        await self._change(queue.name, change)

    # --- purge, delete ---

    async def purge(self, call: SqsCall) -> None:
        queue = await self._lookup.queue(call)
        if call.settings.limits == "strict":
            await self._change(queue.name, self._note_purge)
        await await_steps(self._queues.purge(queue.name))

    def _note_purge(self, queue: Queue) -> QueueSettings:
        now = self._clock.now()
        before = kept.purged_at(queue.settings)
        if before is not None and before <= now < before + PATIENCE_MS:
            raise purge_queue_in_progress(queue.name)
        return kept.with_purge(queue.settings, now=now)

    async def delete(self, call: SqsCall) -> None:
        queue = await self._lookup.queue(call)
        await await_steps(self._queues.purge(queue.name))
        await self._queues.remove(queue.name, force=True)

    # --- tags and permissions ---

    async def tag(self, call: SqsCall) -> None:
        queue = await self._lookup.queue(call)
        given: dict[str, str] | None = call.input.Tags
        if not given:
            raise missing_parameter("Tags")
        _check_tags(given)
        await self._change_tags(
            queue.name, lambda labels: _no_more_than_fit(queue.name, labels | given)
        )

    async def untag(self, call: SqsCall) -> None:
        queue = await self._lookup.queue(call)
        keys = call.input.TagKeys
        if not keys:
            raise invalid_parameter("Tag keys must be between 1 and 128 characters in length.")
        await self._change_tags(
            queue.name, lambda labels: {k: v for k, v in labels.items() if k not in keys}
        )

    async def list_tags(self, call: SqsCall) -> ListQueueTagsResult:
        queue = await self._lookup.queue(call)
        return ListQueueTagsResult((await self._queues.get(queue.name)).queue.settings.labels)

    async def add_permission(self, call: SqsCall) -> None:
        queue = await self._lookup.queue(call)
        given = call.input
        label = require(given.Label, "Label")
        accounts, actions = given.AWSAccountIds or [], given.Actions or []
        await self._change_policy(
            call,
            queue.name,
            lambda policy: permissions.add(
                policy, arn=call.arn(queue.name), label=label, accounts=accounts, actions=actions
            ),
        )

    async def remove_permission(self, call: SqsCall) -> None:
        queue = await self._lookup.queue(call)
        label = require(call.input.Label, "Label")
        await self._change_policy(
            call,
            queue.name,
            lambda policy: permissions.remove(policy, arn=call.arn(queue.name), label=label),
        )

    async def _change_tags(
        self, name: str, change: Callable[[dict[str, str]], dict[str, str]]
    ) -> None:
        def derive(queue: Queue) -> QueueSettings:
            return msgspec.structs.replace(queue.settings, labels=change(queue.settings.labels))

        await self._change(name, derive)

    async def _change_policy(
        self, call: SqsCall, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        def derive(queue: Queue) -> QueueSettings:
            present = self._attributes(call, queue)
            wanted = msgspec.structs.replace(present, policy=change(present.policy))
            return kept.changed_settings(queue.settings, present, wanted)

        await self._change(name, derive)

    # --- shared ---

    async def _change(self, name: str, change: Callable[[Queue], QueueSettings]) -> None:
        def derive(queue: Queue) -> QueueSettings:
            try:
                return change(queue)
            except AwsError as error:  # the store passes on only errors of the core
                raise InvalidRequest(error.message) from error

        try:
            await self._queues.change(name, derive)
        except InvalidRequest as error:
            # Annotations set through other APIs may leave no room for the attributes.
            raise error.__cause__ or _no_room(name) from None

    def _attributes(self, call: SqsCall, queue: Queue) -> QueueAttributes:
        return kept.attributes_of(
            queue.settings,
            account=call.settings.account,
            region=call.settings.region,
            max_body_bytes=self._max_body_bytes,
        )

    async def _check_dead_letters(
        self, call: SqsCall, name: str, wanted: QueueAttributes, given: Mapping[str, str] | None
    ) -> None:
        policy = wanted.redrive_policy
        if policy is None:
            return
        text = (given or {}).get("RedrivePolicy", str(policy))
        target = await self._target(call, policy)
        wrong = policies.NO_TARGET if target is None else _unfit(call, target, name, wanted)
        if wrong is not None:
            raise policies.invalid_redrive_policy(text, wrong)

    async def _target(self, call: SqsCall, policy: RedrivePolicy) -> Queue | None:
        arn = names.of_arn(policy.deadLetterTargetArn)
        if arn is None or arn.account != call.settings.account:
            return None
        # The caller must be allowed to send to the target; otherwise do not reveal if it exists.
        allow(call, arn.name)
        try:
            return (await self._queues.get(arn.name)).queue
        except QueueNotFound:
            return None


def _unfit(call: SqsCall, target: Queue, source: str, wanted: QueueAttributes) -> str | None:
    """Why `target` cannot be the dead-letter queue of `source`; None if it can."""
    if target.is_ordered is not wanted.fifo:
        return policies.ANOTHER_TYPE
    allowed = kept.allow_policy(target.settings)
    if allowed is not None and not allowed.allows(call.arn(source)):
        return policies.TARGET_REFUSES
    return None


def _no_room(queue: str) -> AwsError:
    return over_limit(f"The attributes of queue {queue} are too many or too long together.")


def _figures(call: SqsCall, view: QueueView) -> Figures:
    return Figures(
        arn=call.arn(view.queue.name),
        created_at=view.queue.created_at,
        modified_at=view.queue.changed_at,
        visible=view.counts.ready,
        in_flight=view.counts.leased,
        delayed=view.counts.waiting,
    )


def _retention(call: SqsCall) -> int:
    return attributes.MIN_RETENTION if call.settings.limits == "strict" else 1


def _no_more_than_fit(queue: str, tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > MAX_TAGS:
        raise invalid_parameter(f"Too many tags added for queue {queue}.")
    return tags


def _check_tags(tags: dict[str, str]) -> None:
    """Check the given tags only: labels that other APIs have stored may be longer."""
    for key, value in tags.items():
        if not 1 <= len(key) <= 128:
            raise invalid_parameter("Tag keys must be between 1 and 128 characters in length.")
        if key.lower().startswith("aws:"):
            raise invalid_parameter("Tag keys that begin with aws: are reserved.")
        if len(value) > 256:
            raise invalid_parameter("Tag values must be between 0 and 256 characters in length.")
        if NUL in key or NUL in value:
            raise invalid_parameter("Tag keys and values must not include a NUL character.")
