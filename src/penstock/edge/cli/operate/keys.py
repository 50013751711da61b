"""`penstock keys`: API keys.  Opens the store itself, so that the first key needs no key."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.domain.access.api_key import ApiKey, Role
from penstock.domain.errors import NotFound
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import StoreCommand, argument, flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.view import View
from penstock.settings import Settings
from penstock.settings.store_url import without_passwords

if TYPE_CHECKING:
    from penstock.services.access import KeyService

_ID = argument("ID", "id of the key, from the list")


def _create(settings: Settings, args: Namespace, out: Output) -> None:
    roles = tuple(dict.fromkeys(Role(role) for role in args.role))
    with _keys(settings) as keys:
        made = keys.create(args.name, roles=roles, queues=tuple(args.queues) or ("*",)).result()
        signing = keys.signing_secret(made.key)
    record = {**_facts(made.key), "secret": made.secret, **_aws(made.key.key_id, signing)}
    store = _store_name(settings)
    out.result({**record, "store": store}, made.secret)
    if not out.json:
        exits.note(f"created in the store {store}")
        exits.note("this secret is not shown again; clients send it as a bearer token")


def _list(settings: Settings, args: Namespace, out: Output) -> None:
    with _keys(settings) as keys:
        found = [_facts(key) for key in keys.all().result()]
    out.records(found, View("id name roles queues created_at revoked_at"))


def _show_aws(settings: Settings, args: Namespace, out: Output) -> None:
    with _keys(settings) as keys:
        in_use = {key.key_id: key for key in keys.all().result() if key.revoked_at is None}
        if args.id not in in_use:
            raise NotFound(f"key {args.id!r} does not exist or is revoked")
        credentials = _aws(args.id, keys.signing_secret(in_use[args.id]))
    lines = (f"{name.upper()}={value}" for name, value in credentials.items())
    out.result(credentials, "\n".join(lines))


def _aws(key_id: str, secret: str) -> dict[str, object]:
    """Credentials by the names of the environment variables that AWS's tools read."""
    return {"aws_access_key_id": key_id, "aws_secret_access_key": secret}


def _revoke(settings: Settings, args: Namespace, out: Output) -> None:
    with _keys(settings) as keys:
        keys.revoke(args.id).result()
    store = _store_name(settings)
    out.result(
        {"revoked": args.id, "store": store},
        f"{args.id} is revoked in {store}; servers reject it within a second",
    )


def _store_name(settings: Settings) -> str:
    path = settings.sqlite_path
    return str(path.absolute()) if path else without_passwords(settings.store_url)


@contextmanager
def _keys(settings: Settings) -> Iterator[KeyService]:
    from penstock.wiring.broker import open_existing

    with closing(open_existing(settings)) as broker:
        yield broker.keys


def _facts(key: ApiKey) -> dict[str, object]:
    return {
        "id": key.key_id,
        "name": key.name,
        "roles": key.roles,
        "queues": key.queues,
        "created_at": datetime.fromtimestamp(key.created_at / 1000, UTC),
        "revoked_at": key.revoked_at and datetime.fromtimestamp(key.revoked_at / 1000, UTC),
    }


COMMANDS = {
    "keys": StoreCommand(_list, more="Includes revoked keys.", examples=("penstock keys",)),
    "keys create": StoreCommand(
        _create,
        flag("--name", "name of the key's owner", value="NAME", required=True),
        flag(
            "--role",
            "produce, consume, operate or read; may be repeated",
            action="append",
            choices=[str(role) for role in Role],
            default=[],
            required=True,
        ),
        flag(
            "--queues",
            "queues that it is for, such as mail or mail.*; may be repeated; default: all",
            value="PATTERN",
            action="append",
            default=[],
        ),
        more="Opens the store itself, which must exist, and needs no server. Once a key exists, "
        "servers reject requests without one. Only a hash of the secret is stored.",
        examples=(
            "penstock keys create --name shop --role produce --queues 'mail.*'",
            "penstock keys create --name ops --role operate --role read",
        ),
    ),
    "keys aws": StoreCommand(
        _show_aws,
        _ID,
        more="AWS's SDKs and tools sign SQS requests with these credentials; the lines can be put "
        "into the environment as they are.",
        examples=("penstock keys aws 5d0c3a91fe",),
    ),
    "keys revoke": StoreCommand(_revoke, _ID, examples=("penstock keys revoke 5d0c3a91fe",)),
}
