"""Every setting with its default.

Each range and description is declared next to its value; the loader, the error texts, the TOML
template and the documentation are derived from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from penstock.domain.delivery.addresses import networks
from penstock.domain.described import setting
from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.lake.places import join
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND, Limits
from penstock.domain.queue.queue import check_name
from penstock.settings.pipeline import (
    ArchiveSettings,
    InsightsSettings,
    SamplesSettings,
    SqlSettings,
    check_pipeline,
)
from penstock.settings.push import PushSettings, check_push
from penstock.settings.store_url import SQLITE, check_store_url
from penstock.settings.workers import (
    ScalingSettings,
    TasksSettings,
    WorkersSettings,
    check_workers,
)

NO_CHECKSUMS = "checksums=off"
DATABASE_FILE = "penstock.db"
LAKE_FOLDER = "lake"
MAX_PROCESSES = 64
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    host: str = setting("127.0.0.1", "address to listen on; any but loopback requires API keys")
    port: int = setting(7654, "TCP port; 0: any free port", 0, 65535)
    processes: int = setting(
        1,
        "processes that serve HTTP; if more than 1, one more writes; 0: one per core but one",
        0,
        MAX_PROCESSES,
    )
    drain_ms: int = setting(
        10 * SECOND, "how long a stopping server waits for open requests", 0, 10 * MINUTE
    )
    max_connections: int = setting(1_000, "maximum number of open connections", 1, 1_000_000)
    receive_timeout_ms: int = setting(
        30 * SECOND, "how long a client may take to transmit a request", 100, HOUR
    )
    idle_timeout_ms: int = setting(75 * SECOND, "how long an idle connection stays open", 100, DAY)
    tls_cert: str | None = setting(None, "PEM file with the certificate chain; enables TLS")
    tls_key: str | None = setting(None, "PEM file with the private key of the certificate")
    trusted_proxies: str | None = setting(
        None, "comma-separated networks of proxies with trusted X-Forwarded-… headers"
    )
    definitions: str | None = setting(
        None, "YAML, TOML or JSON file with queues, topics and so on, applied at every start"
    )


@dataclass(frozen=True, kw_only=True)
class StoreSettings:
    url: str | None = setting(
        None, "sqlite:///path, postgresql://… or mysql://…; unset: penstock.db in the data folder"
    )
    patience_ms: int = setting(
        15 * SECOND, "SQLite: how long a write waits for writes of other processes", 100, HOUR
    )
    request_timeout_ms: int = setting(
        20 * SECOND,
        "how long a request waits for the store before it fails with status 503",
        100,
        HOUR,
    )


@dataclass(frozen=True, kw_only=True)
class HistorySettings:
    retention_days: int = setting(
        7, "days for which finished messages stay in the history", 1, 3660
    )


@dataclass(frozen=True, kw_only=True)
class QueuesSettings:
    auto_create: bool = setting(
        False, "create an unknown queue, with default settings, on the first send to it"
    )
    reap_interval_ms: int = setting(
        2 * SECOND, "interval between searches for expired leases and messages", 10, HOUR
    )


@dataclass(frozen=True, kw_only=True)
class AweqSettings:
    enabled: bool = setting(True, "serve the AweQ protocol")
    queue: str = setting("aweq", "queue behind the AweQ protocol")
    lease_ms: int = setting(2 * MINUTE, "lease of a message claimed through AweQ", 1, 12 * HOUR)
    allow_origin: str | None = setting(
        None, "origin whose pages may use AweQ: * or http://host; unset: none"
    )


@dataclass(frozen=True, kw_only=True)
class SqsSettings:
    enabled: bool = setting(True, "serve the SQS protocol")
    account: str = setting("000000000000", "twelve-digit account id in queue URLs and ARNs")
    region: str = setting("us-east-1", "region in ARNs")
    limits: Literal["relaxed", "strict"] = setting(
        "relaxed", "strict: also AWS's 60 s waits, minimum retention and in-flight limits"
    )
    public_url: str | None = setting(
        None, "base of queue URLs; unset: the address that the client used"
    )
    auto_create: bool = setting(
        False, "create an unknown queue when it is first used, with the defaults of SQS"
    )
    fair_queues: bool = setting(
        True, "a standard queue that gets a MessageGroupId shares fairly between groups"
    )
    sns: bool = setting(True, "serve the SNS protocol beside SQS, on topics")


@dataclass(frozen=True, kw_only=True)
class AuthSettings:
    required: Literal["auto", "always", "never"] = setting(
        "auto", "whether requests need an API key; auto: as soon as a key exists"
    )
    secret_file: str | None = setting(
        None, "file with the secret from which new keys sign SQS requests"
    )


@dataclass(frozen=True, kw_only=True)
class WakeupSettings:
    poll_ms: int = setting(
        1 * SECOND, "interval between checks for wake-ups that waiting claims missed", 10, MINUTE
    )


@dataclass(frozen=True, kw_only=True)
class ConsoleSettings:
    enabled: bool = setting(True, "serve the console at /console")
    session_ms: int = setting(12 * HOUR, "lifetime of a console login", MINUTE, 30 * DAY)


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    level: Literal["debug", "info", "warning", "error"] = setting("info", "lowest severity to log")
    format: Literal["text", "json"] = setting(
        "text", "log format: text for people, json for programs"
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    data: str = setting("./data", "folder for all data of this node")
    server: ServerSettings = field(default_factory=ServerSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    pipeline: PipelineSettings = field(default_factory=PipelineSettings)
    queues: QueuesSettings = field(default_factory=QueuesSettings)
    aweq: AweqSettings = field(default_factory=AweqSettings)
    sqs: SqsSettings = field(default_factory=SqsSettings)
    workers: WorkersSettings = field(default_factory=WorkersSettings)
    tasks: TasksSettings = field(default_factory=TasksSettings)
    push: PushSettings = field(default_factory=PushSettings)
    scaling: ScalingSettings = field(default_factory=ScalingSettings)
    samples: SamplesSettings = field(default_factory=SamplesSettings)
    console: ConsoleSettings = field(default_factory=ConsoleSettings)
    insights: InsightsSettings = field(default_factory=InsightsSettings)
    sql: SqlSettings = field(default_factory=SqlSettings)
    auth: AuthSettings = field(default_factory=AuthSettings)
    wakeups: WakeupSettings = field(default_factory=WakeupSettings)
    log: LogSettings = field(default_factory=LogSettings)
    limits: Limits = field(default_factory=Limits)

    @property
    def store_url(self) -> str:
        """The configured URL, or that of a SQLite file in the data folder."""
        return self.store.url or f"{SQLITE}{Path(self.data) / DATABASE_FILE}"

    @property
    def lake_folder(self) -> str:
        """A folder, or the URL of one in an object store."""
        return self.archive.folder or str(Path(self.data) / LAKE_FOLDER)

    @property
    def insights_folder(self) -> str:
        """Folder of the tables that the pipeline computes."""
        return self.insights.folder or join(self.lake_folder, "derived")

    @property
    def sqlite_path(self) -> Path | None:
        """The database file, or None if the store is not SQLite."""
        if self.store.url is None:
            return Path(self.data) / DATABASE_FILE
        url = self.store.url.partition("?")[0]
        return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None

    @property
    def sqlite_options(self) -> str:
        return (self.store.url or "").partition("?")[2]

    @property
    def sqlite_checksums(self) -> bool:
        """Whether a new file gets page checksums; off if an application also writes to it."""
        return self.sqlite_options != NO_CHECKSUMS


def _check_sqs(sqs: SqsSettings) -> None:
    if not re.fullmatch("[0-9]{12}", sqs.account):
        raise InvalidRequest(f"sqs.account is {sqs.account[:40]!r}; use twelve digits")
    if not re.fullmatch("[a-z0-9-]{1,40}", sqs.region):
        raise InvalidRequest(f"sqs.region is {sqs.region[:40]!r}; use a name like us-east-1")
    if sqs.public_url is not None and not re.fullmatch("https?://[^/]+", sqs.public_url):
        raise InvalidRequest(
            f"sqs.public_url is {sqs.public_url[:80]!r}; use http:// or https:// and a host, "
            "without a path"
        )


def _check_origin(origin: str | None) -> None:
    if origin is not None and not re.fullmatch(r"\*|https?://[^/\s]+", origin):
        raise InvalidRequest(
            f"aweq.allow_origin is {origin[:80]!r}; use *, or http:// or https:// and a host, "
            "without a path"
        )


def _check_proxies(text: str) -> None:
    try:
        networks(text)
    except ValueError as error:
        raise InvalidRequest(
            f"server.trusted_proxies takes addresses or networks like 10.0.0.0/8: {error}"
        ) from None


def is_loopback(host: str) -> bool:
    return host in LOOPBACK or host.startswith("127.")


def check(settings: Settings) -> Settings:
    """Return the settings; raise InvalidRequest for values that contradict each other."""
    server, url = settings.server, settings.store.url
    if (server.tls_cert is None) != (server.tls_key is None):
        raise InvalidRequest("server.tls_cert and server.tls_key must be set together")
    if url is not None:
        check_store_url(url)
    if settings.sqlite_path is not None and settings.sqlite_options not in ("", NO_CHECKSUMS):
        raise InvalidRequest(
            f"store.url has ?{settings.sqlite_options}; sqlite:///path takes no option but "
            f"?{NO_CHECKSUMS}"
        )
    check_name(settings.aweq.queue)
    _check_origin(settings.aweq.allow_origin)
    _check_proxies(server.trusted_proxies or "")
    _check_sqs(settings.sqs)
    check_workers(settings.workers, settings.tasks)
    check_push(settings.push)
    check_pipeline(settings.pipeline)
    if settings.auth.required == "never" and not is_loopback(server.host):
        raise InvalidRequest(
            f"server.host {server.host!r} is reachable from outside, so auth.required must not be "
            "'never'"
        )
    return settings
