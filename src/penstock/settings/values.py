"""Every setting with its default.

Each range and description is declared next to its value; the loader, the error texts, the TOML
template and the documentation are derived from it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from penstock.domain.delivery.addresses import networks
from penstock.domain.described import about, within
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND, Limits
from penstock.domain.queue.queue import check_name
from penstock.settings.pipeline import (
    ArchiveSettings,
    InsightsSettings,
    PipelineSection,
    SamplesSettings,
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


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    host: Annotated[str, about("address to listen on; any but loopback requires API keys")] = (
        "127.0.0.1"
    )
    port: Annotated[int, within(0, 65535, "TCP port; 0: any free port")] = 7654
    processes: Annotated[
        int,
        within(
            0,
            MAX_PROCESSES,
            "processes that serve HTTP; above 1 beside a writer process; 0: by the number of cores",
        ),
    ] = 1
    drain_ms: Annotated[
        int, within(0, 10 * MINUTE, "how long a stopping server waits for open requests")
    ] = 10 * SECOND
    max_connections: Annotated[int, within(1, 1_000_000, "maximum number of open connections")] = (
        1_000
    )
    receive_timeout_ms: Annotated[
        int, within(100, HOUR, "how long a client may take to transmit a request")
    ] = 30 * SECOND
    idle_timeout_ms: Annotated[int, within(100, DAY, "how long an idle connection stays open")] = (
        75 * SECOND
    )
    tls_cert: Annotated[str | None, about("PEM file with the certificate chain; enables TLS")] = (
        None
    )
    tls_key: Annotated[str | None, about("PEM file with the private key of the certificate")] = None
    trusted_proxies: Annotated[
        str | None, about("comma-separated networks of proxies with trusted X-Forwarded-… headers")
    ] = None


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    url: Annotated[
        str | None, about("sqlite:///path or postgresql://…; unset: penstock.db in the data folder")
    ] = None
    patience_ms: Annotated[
        int, within(100, HOUR, "SQLite: how long a write waits for writes of other processes")
    ] = 15 * SECOND
    request_timeout_ms: Annotated[
        int,
        within(100, HOUR, "how long a request waits for the store before it fails with status 503"),
    ] = 20 * SECOND


class HistorySettings(msgspec.Struct, frozen=True, kw_only=True):
    retention_days: Annotated[
        int, within(1, 3660, "days for which finished messages stay in the history")
    ] = 7


class QueuesSettings(msgspec.Struct, frozen=True, kw_only=True):
    auto_create: Annotated[
        bool, about("create an unknown queue, with default settings, on the first send to it")
    ] = False
    reap_interval_ms: Annotated[
        int, within(10, HOUR, "interval between searches for expired leases and messages")
    ] = 2 * SECOND


class AweqSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, about("serve the AweQ protocol")] = True
    queue: Annotated[str, about("queue behind the AweQ protocol")] = "aweq"
    lease_ms: Annotated[int, within(1, 12 * HOUR, "lease of a message claimed through AweQ")] = (
        2 * MINUTE
    )
    allow_origin: Annotated[
        str | None, about("origin whose pages may use AweQ: * or http://host; unset: none")
    ] = None


class SqsSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, about("serve the SQS protocol")] = True
    account: Annotated[str, about("twelve-digit account id in queue URLs and ARNs")] = (
        "000000000000"
    )
    region: Annotated[str, about("region in ARNs")] = "us-east-1"
    limits: Annotated[
        Literal["relaxed", "strict"],
        about("strict: also AWS's 60 s waits, minimum retention and in-flight limits"),
    ] = "relaxed"
    public_url: Annotated[
        str | None, about("base of queue URLs; unset: the address that the client used")
    ] = None


class AuthSettings(msgspec.Struct, frozen=True, kw_only=True):
    required: Annotated[
        Literal["auto", "always", "never"],
        about("whether requests need an API key; auto: as soon as a key exists"),
    ] = "auto"
    secret_file: Annotated[
        str | None, about("file with the secret from which new keys sign SQS requests")
    ] = None


class WakingSettings(msgspec.Struct, frozen=True, kw_only=True):
    poll_ms: Annotated[
        int, within(10, MINUTE, "interval between checks for wake-ups that waiting claims missed")
    ] = 1 * SECOND


class ConsoleSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, about("serve the console at /console")] = True
    session_ms: Annotated[int, within(MINUTE, 30 * DAY, "lifetime of a console login")] = 12 * HOUR


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    level: Annotated[
        Literal["debug", "info", "warning", "error"], about("lowest severity to log")
    ] = "info"
    format: Annotated[
        Literal["text", "json"], about("log format: text for people, json for programs")
    ] = "text"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[str, about("folder for all data of this node")] = "./data"
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    history: HistorySettings = HistorySettings()
    archive: ArchiveSettings = ArchiveSettings()
    pipeline: PipelineSection = PipelineSection()
    queues: QueuesSettings = QueuesSettings()
    aweq: AweqSettings = AweqSettings()
    sqs: SqsSettings = SqsSettings()
    workers: WorkersSettings = WorkersSettings()
    tasks: TasksSettings = TasksSettings()
    push: PushSettings = PushSettings()
    scaling: ScalingSettings = ScalingSettings()
    samples: SamplesSettings = SamplesSettings()
    console: ConsoleSettings = ConsoleSettings()
    insights: InsightsSettings = InsightsSettings()
    auth: AuthSettings = AuthSettings()
    waking: WakingSettings = WakingSettings()
    log: LogSettings = LogSettings()
    limits: Limits = Limits()

    @property
    def store_url(self) -> str:
        """The configured URL, or that of a SQLite file in the data folder."""
        return self.store.url or f"{SQLITE}{Path(self.data) / DATABASE_FILE}"

    @property
    def lake_folder(self) -> Path:
        return Path(self.archive.folder or Path(self.data) / LAKE_FOLDER)

    @property
    def insights_folder(self) -> Path:
        """Folder of the tables that the pipeline computes."""
        return Path(self.insights.folder or self.lake_folder / "derived")

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
