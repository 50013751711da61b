"""The SNS API: its operations at `/`, where `edge/sqs/api.py` passes its requests on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from penstock.domain.access.api_key import Caller
from penstock.domain.bus.envelope import CERTIFICATE
from penstock.domain.bus.formats import Arns
from penstock.edge.aws.api import AnyAnswer, AwsApi, base_of
from penstock.edge.aws.errors import AwsError, missing_authentication_token
from penstock.edge.aws.operation import AwsOperation, Input
from penstock.edge.server.request import Request, Respond, Response
from penstock.edge.server.router import HttpRoute
from penstock.edge.sns.call import OPENABLE, OPENER, SnsCall
from penstock.edge.sns.errors import from_core
from penstock.edge.sns.protocol import OPERATIONS, SnsQueryProtocol
from penstock.edge.sns.publishing import PublishActions
from penstock.edge.sns.requests import is_opened
from penstock.edge.sns.subscriptions import SubscriptionActions
from penstock.edge.sns.topics import TopicActions
from penstock.wiring.broker import Broker

Operate = Callable[[SnsCall], AnyAnswer]


class SnsApi(AwsApi):
    service = "sns"

    def __init__(self, broker: Broker, *, scheme: str) -> None:
        super().__init__(broker, scheme=scheme)
        settings = broker.settings.sqs
        self._arns = Arns(settings.region, settings.account)
        self._signer = broker.envelope_signer
        self._operations = _operations(broker)

    def routes(self) -> list[HttpRoute]:
        return [
            HttpRoute(method="GET", path=f"/{CERTIFICATE}", handler=self.certificate),
        ]

    def handle(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        return self.answer(protocol_of(request), request, respond)

    async def certificate(self, request: Request, respond: Respond) -> Response:
        await self._signer.load()
        pem = self._signer.certificate
        return Response(200, pem.encode(), content_type=b"application/x-pem-file")

    def run(
        self, operation: AwsOperation, given: Input, request: Request, caller: Caller
    ) -> AnyAnswer:
        if caller is OPENER and operation.name not in OPENABLE:
            raise missing_authentication_token()
        base = base_of(
            request,
            public_url=self.settings.sqs.public_url,
            scheme=self.scheme,
            proxies=self.proxies,
            caller=caller,
        )
        call = SnsCall(given, caller, operation.role, self._arns, base)
        return self._operations[operation.name](call)

    def caller_of(self, request: Request) -> Caller:
        return OPENER if is_opened(request) else super().caller_of(request)

    def error_of(self, error: Exception) -> AwsError:
        return from_core(error)


def protocol_of(request: Request) -> SnsQueryProtocol:
    wants_json = b"application/json" in request.headers.get(b"accept", b"")
    return SnsQueryProtocol(wants_json=wants_json)


def _operations(broker: Broker) -> dict[str, Operate]:
    topics = TopicActions(broker.topics, broker.queues)
    subscriptions = SubscriptionActions(
        broker.topics,
        broker.queues,
        broker.messages,
        broker.envelope_signer,
        broker.clock,
        broker.dice,
    )
    publishing = PublishActions(broker.bus)
    handlers: dict[str, Operate] = {
        "AddPermission": topics.add_permission,
        "ConfirmSubscription": subscriptions.confirm,
        "CreateTopic": topics.create,
        "DeleteTopic": topics.delete,
        "GetSubscriptionAttributes": subscriptions.get_attributes,
        "GetTopicAttributes": topics.get_attributes,
        "ListSubscriptions": subscriptions.list,
        "ListSubscriptionsByTopic": subscriptions.list_by_topic,
        "ListTagsForResource": topics.list_tags,
        "ListTopics": topics.list,
        "Publish": publishing.publish,
        "PublishBatch": publishing.publish_batch,
        "RemovePermission": topics.remove_permission,
        "SetSubscriptionAttributes": subscriptions.set_attributes,
        "SetTopicAttributes": topics.set_attributes,
        "Subscribe": subscriptions.subscribe,
        "TagResource": topics.tag,
        "Unsubscribe": subscriptions.unsubscribe,
        "UntagResource": topics.untag,
    }
    # Fail at startup, not at the first request, if an operation has no handler.
    return {name: handlers[name] for name in OPERATIONS}
