"""What can be set, with defaults.  Ranges and meanings stand beside each value, so that the loader,
the error texts, the template and the documents all say the same.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.domain.delivery.addresses import networks
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND, Limits
from penstock.domain.queue.queue import check_name
from penstock.settings.archive import Archive
from penstock.settings.console import Console
from penstock.settings.insights import Insights
from penstock.settings.masking import quoted_url
from penstock.settings.pipeline import Pipeline, check_pipeline
from penstock.settings.push import Push, check_push
from penstock.settings.samples import Samples
from penstock.settings.scaling import Scaling
from penstock.settings.work import Tasks, Workers, check_work

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
NO_CHECKSUMS = "checksums=off"
DATABASE_FILE = "penstock.db"
LAKE_FOLDER = "lake"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Server(msgspec.Struct, frozen=True, kw_only=True):
    host: Annotated[
        str, Meta(description="address to listen on; others than loopback need keys")
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="TCP port; 0 takes a free one")] = 7654
    drain_ms: Annotated[
        int, Meta(ge=0, le=10 * MINUTE, description="how long open requests may take at a stop")
    ] = 10 * SECOND
    max_connections: Annotated[
        int, Meta(ge=1, le=1_000_000, description="connections open at one time")
    ] = 1_000
    receive_timeout_ms: Annotated[
        int, Meta(ge=100, le=HOUR, description="how long a request may take to arrive")
    ] = 30 * SECOND
    idle_timeout_ms: Annotated[
        int, Meta(ge=100, le=DAY, description="how long an idle connection stays open")
    ] = 75 * SECOND
    tls_cert: Annotated[
        str | None, Meta(description="file with the certificate chain (PEM); turns TLS on")
    ] = None
    tls_key: Annotated[
        str | None, Meta(description="file with the private key of the certificate (PEM)")
    ] = None
    trusted_proxies: Annotated[
        str | None,
        Meta(description="networks, comma-separated, of proxies whose X-Forwarded-… headers count"),
    ] = None


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    url: Annotated[
        str | None,
        Meta(description="sqlite:///path or postgresql://…; unset: penstock.db in the data folder"),
    ] = None
    patience_ms: Annotated[
        int,
        Meta(ge=100, le=HOUR, description="SQLite: how long a write waits for other processes"),
    ] = 15 * SECOND
    request_timeout_ms: Annotated[
        int,
        Meta(
            ge=100,
            le=HOUR,
            description="how long a request waits for the store before it is answered 503",
        ),
    ] = 20 * SECOND


class History(msgspec.Struct, frozen=True, kw_only=True):
    retention_days: Annotated[
        int, Meta(ge=1, le=3660, description="how many days finished messages are remembered")
    ] = 7


class Queues(msgspec.Struct, frozen=True, kw_only=True):
    auto_create: Annotated[
        bool, Meta(description="a send to an unknown queue makes it, with default settings")
    ] = False
    reap_interval_ms: Annotated[
        int,
        Meta(ge=10, le=HOUR, description="how often expired leases and messages are looked for"),
    ] = 2 * SECOND


class Aweq(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, Meta(description="serve the AweQ protocol")] = True
    queue: Annotated[str, Meta(description="the queue behind the AweQ protocol")] = "aweq"
    lease_ms: Annotated[
        int, Meta(ge=1, le=12 * HOUR, description="lease of a message claimed through AweQ")
    ] = 2 * MINUTE
    allow_origin: Annotated[
        str | None,
        Meta(description="pages of which site may use AweQ: * or http://host; unset: of none"),
    ] = None


class Sqs(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, Meta(description="serve the SQS protocol")] = True
    account: Annotated[
        str, Meta(description="account id in queue URLs and ARNs: twelve digits")
    ] = "000000000000"
    region: Annotated[str, Meta(description="region in ARNs")] = "us-east-1"
    limits: Annotated[
        Literal["relaxed", "strict"],
        Meta(description="strict: AWS's waits of 60 s, least retention and in-flight limits too"),
    ] = "relaxed"
    public_url: Annotated[
        str | None,
        Meta(description="what queue URLs begin with; unset: the address the client used"),
    ] = None


class Auth(msgspec.Struct, frozen=True, kw_only=True):
    required: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="are API keys asked for? auto: as soon as there is a key"),
    ] = "auto"
    secret_file: Annotated[
        str | None,
        Meta(description="file with the secret that new keys sign SQS requests with"),
    ] = None


class Waking(msgspec.Struct, frozen=True, kw_only=True):
    poll_ms: Annotated[
        int,
        Meta(
            ge=10,
            le=MINUTE,
            description="how often the queues of waiting claims are checked for missed wake-ups",
        ),
    ] = 1 * SECOND


class Log(msgspec.Struct, frozen=True, kw_only=True):
    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="least severity to log")
    ] = "info"
    format: Annotated[
        Literal["text", "json"], Meta(description="lines for people or for programs")
    ] = "text"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[str, Meta(description="folder for everything this node keeps")] = "./data"
    server: Server = Server()
    store: StoreSettings = StoreSettings()
    history: History = History()
    archive: Archive = Archive()
    pipeline: Pipeline = Pipeline()
    queues: Queues = Queues()
    aweq: Aweq = Aweq()
    sqs: Sqs = Sqs()
    workers: Workers = Workers()
    tasks: Tasks = Tasks()
    push: Push = Push()
    scaling: Scaling = Scaling()
    samples: Samples = Samples()
    console: Console = Console()
    insights: Insights = Insights()
    auth: Auth = Auth()
    waking: Waking = Waking()
    log: Log = Log()
    limits: Limits = Limits()

    @property
    def store_url(self) -> str:
        """Where the store is, derived from the data folder unless it is named."""
        return self.store.url or f"{SQLITE}{Path(self.data) / DATABASE_FILE}"

    @property
    def lake_folder(self) -> Path:
        return Path(self.archive.folder or Path(self.data) / LAKE_FOLDER)

    @property
    def insights_folder(self) -> Path:
        """Where the pipeline leaves its tables, beside the lake unless it is named."""
        return Path(self.insights.folder or self.lake_folder / "derived")

    @property
    def sqlite_path(self) -> Path | None:
        """The database file, or None when the store is not SQLite."""
        if self.store.url is None:
            return Path(self.data) / DATABASE_FILE
        url = self.store.url.partition("?")[0]
        return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None

    @property
    def sqlite_options(self) -> str:
        return (self.store.url or "").partition("?")[2]

    @property
    def sqlite_checksums(self) -> bool:
        """Whether a new database file gets them: not if an application is to write to it, too."""
        return self.sqlite_options != NO_CHECKSUMS


def _check_sqs(sqs: Sqs) -> None:
    if not re.fullmatch("[0-9]{12}", sqs.account):
        raise InvalidRequest(f"sqs.account has twelve digits, not {sqs.account[:40]!r}")
    if not re.fullmatch("[a-z0-9-]{1,40}", sqs.region):
        raise InvalidRequest(f"sqs.region is a name like us-east-1, not {sqs.region[:40]!r}")
    if sqs.public_url is not None and not re.fullmatch("https?://[^/]+", sqs.public_url):
        raise InvalidRequest("sqs.public_url is http:// or https:// and a host, without a path")


def _check_origin(origin: str | None) -> None:
    if origin is not None and not re.fullmatch(r"\*|https?://[^/\s]+", origin):
        raise InvalidRequest(
            "aweq.allow_origin is * or http:// or https:// and a host, without a path, not "
            f"{origin[:80]!r}"
        )


def _check_proxies(text: str) -> None:
    try:
        networks(text)
    except ValueError as error:
        raise InvalidRequest(
            f"server.trusted_proxies has addresses or networks like 10.0.0.0/8: {error}"
        ) from None


def is_loopback(host: str) -> bool:
    return host in LOOPBACK or host.startswith("127.")


def check_store_url(url: str) -> str:
    """Return it, or raise InvalidRequest for what names no store."""
    if not url.startswith((SQLITE, *POSTGRES)):
        raise InvalidRequest(
            f"store.url is sqlite:///path or postgresql://…, not {quoted_url(url)}"
        )
    path = url.removeprefix(SQLITE).partition("?")[0]
    if path == ":memory:":
        raise InvalidRequest(
            f"{url!r} names no file: a store outlives its process; for tests use penstock.testing"
        )
    if not path:
        raise InvalidRequest(f"{url!r} lacks the path of a file, as in sqlite:///jobs.db")
    return url


def check(settings: Settings) -> Settings:
    """Return them, or raise InvalidRequest for values that do not go together."""
    server, url = settings.server, settings.store.url
    if (server.tls_cert is None) != (server.tls_key is None):
        raise InvalidRequest("server.tls_cert and server.tls_key go together: set both or none")
    if url is not None:
        check_store_url(url)
    if settings.sqlite_path is not None and settings.sqlite_options not in ("", NO_CHECKSUMS):
        raise InvalidRequest(f"of store.url sqlite:///path the only option is ?{NO_CHECKSUMS}")
    check_name(settings.aweq.queue)
    _check_origin(settings.aweq.allow_origin)
    _check_proxies(server.trusted_proxies or "")
    _check_sqs(settings.sqs)
    check_work(settings.workers, settings.tasks)
    check_push(settings.push)
    check_pipeline(settings.pipeline)
    if settings.auth.required == "never" and not is_loopback(server.host):
        raise InvalidRequest(
            f"server.host {server.host!r} can be reached from outside: "
            "auth.required must not be 'never'"
        )
    return settings
