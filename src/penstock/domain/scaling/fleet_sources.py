"""Load sources of fleets: the tables [sources.NAME] of the fleets file.

Which goals a fleet may have depends on what its source can report.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.domain.limits import DAY, SECOND

OWN = "own"  # the source that always exists
MAX_NUMBER = 366 * DAY  # as a duration, a year; as a count, more than any fleet has

AtLeastOne = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
NotNegative = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
Text = Annotated[str, Meta(min_length=1)]


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """A table of the file whose `kind` names its type."""


class FleetSource(Spec, frozen=True, kw_only=True):
    @property
    def reports_rates(self) -> bool:
        return False

    @property
    def reports_ages(self) -> bool:
        return False

    @property
    def shares_leased(self) -> bool:
        """Whether leased messages are known only for all of its queues together."""
        return False


class OwnSource(FleetSource, frozen=True, kw_only=True, tag="own"):
    """The queues of our own store."""

    staging_indicator: Text | None = None

    @property
    def reports_rates(self) -> bool:
        return True

    @property
    def reports_ages(self) -> bool:
        return True


class RabbitSource(FleetSource, frozen=True, kw_only=True, tag="rabbitmq"):
    """The management API of RabbitMQ; at most one form of the password is given."""

    endpoint: Text = "http://rabbitmq:15672"
    user: Text = "guest"
    password_file: Text | None = None
    password_env: Text | None = None
    vhost: Text = "/"
    staging_indicator: Text | None = None
    pressure_every_ms: NotNegative = 10 * SECOND
    timeout_ms: AtLeastOne = 5 * SECOND

    @property
    def reports_rates(self) -> bool:
        return True


class SqsSource(FleetSource, frozen=True, kw_only=True, tag="sqs"):
    """Amazon SQS, or a server that speaks its protocol."""

    region: Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,40}$")] = "us-east-1"
    endpoint: Text | None = None  # None: AWS's, for the region
    account: Annotated[str, Meta(pattern=r"^[0-9]{12}$")] | None = None  # None: that of the key
    access_key_env: Text = "AWS_ACCESS_KEY_ID"
    secret_key_env: Text = "AWS_SECRET_ACCESS_KEY"
    session_token_env: Text = "AWS_SESSION_TOKEN"  # used if it is set
    timeout_ms: AtLeastOne = 5 * SECOND


class RedisSource(FleetSource, frozen=True, kw_only=True, tag="redis"):
    """Lists, as Celery uses them, or streams with a consumer group."""

    url: Text = "redis://localhost:6379/0"
    user: Text | None = None
    password_file: Text | None = None
    password_env: Text | None = None
    type: Literal["list", "stream"] = "list"
    group: Text | None = None  # of a stream
    priority_steps: tuple[NotNegative, ...] = (0, 3, 6, 9)  # of Celery's lists
    leased_key: str | None = None  # what workers hold; None: Celery's; "": ignored
    timeout_ms: AtLeastOne = 5 * SECOND

    @property
    def reports_rates(self) -> bool:
        return self.type == "stream"

    @property
    def reports_ages(self) -> bool:
        return self.type == "stream"

    @property
    def shares_leased(self) -> bool:
        return self.type == "list"


class PrometheusSource(FleetSource, frozen=True, kw_only=True, tag="prometheus"):
    """Instant queries, each returning one number; {queue} is filled in."""

    endpoint: Text = "http://prometheus:9090"
    user: Text | None = None  # None: the token is a bearer token
    token_file: Text | None = None
    token_env: Text | None = None
    ready_query: Text
    leased_query: Text | None = None
    consume_query: Text | None = None  # messages per second
    publish_query: Text | None = None
    oldest_query: Text | None = None  # seconds
    timeout_ms: AtLeastOne = 5 * SECOND

    @property
    def reports_rates(self) -> bool:
        return self.consume_query is not None

    @property
    def reports_ages(self) -> bool:
        return self.oldest_query is not None


SourceSpec = OwnSource | RabbitSource | SqsSource | RedisSource | PrometheusSource


def staging_indicator_of(spec: SourceSpec) -> str | None:
    return spec.staging_indicator if isinstance(spec, OwnSource | RabbitSource) else None
