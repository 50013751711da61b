"""Keys and settings; the secret of a key is shown once, when it is created."""

from __future__ import annotations

from typing import Annotated, Self

from penstock.api.operation import (
    AnswerRecord,
    Instant,
    InstantOrMs,
    Operation,
    RequestRecord,
    ToInstant,
    about,
    everywhere,
)
from penstock.domain.access.api_key import ApiKey, Role


class Key(AnswerRecord, frozen=True, omit_defaults=True):
    """A key without its secret, of which only a hash is stored."""

    id: Annotated[str, about("The key's id: the middle part of its secret.")]
    name: Annotated[str, about("A name that describes what the key is for.")]
    roles: Annotated[tuple[Role, ...], about("The roles of the key.")]
    queues: Annotated[tuple[str, ...], about("Patterns of the queues that the key covers.")]
    created_at: Annotated[Instant, about("When it was created.")]
    revoked_at: Annotated[
        Instant | None, about("When it was revoked. Absent if it is still valid.")
    ] = None
    expires_at: Annotated[
        Instant | None, about("When it stops being valid. Absent if it does not expire.")
    ] = None
    last_used_at: Annotated[
        Instant | None,
        about("When it was last used, to within a few minutes. Absent if it was not used yet."),
    ] = None

    @classmethod
    def of(cls, key: ApiKey, instant: ToInstant) -> Self:
        return cls.copy_of(key, instant, id=key.key_id)


class Keys(AnswerRecord, frozen=True):
    keys: Annotated[list[Key], about("The keys, including revoked ones.")]


class NewKey(RequestRecord):
    name: Annotated[str, about("A name that describes what the key is for.")]
    roles: Annotated[tuple[Role, ...], about("The roles of the key; the caller must have them.")]
    queues: Annotated[
        tuple[str, ...], about("Patterns of the queues that it covers, such as `mail.*`.")
    ] = ("*",)
    expires_at: Annotated[
        InstantOrMs | None, about("When it stops being valid. Null: it does not expire.")
    ] = None


class CreatedKey(AnswerRecord, frozen=True):
    key: Annotated[Key, about("The key.")]
    secret: Annotated[str, about("Its secret, which is not stored and not shown again.")]


class Setting(AnswerRecord, frozen=True):
    """A setting as it is in force on this node."""

    key: Annotated[str, about("The name of the setting in the config file.")]
    value: Annotated[
        str | None, about("The value, as written in a config file. Null if it is not set.")
    ]
    default: Annotated[str | None, about("The default value. Null if there is none.")]
    is_default: Annotated[bool, about("True if the value is the default.")]
    text: Annotated[str, about("The meaning of the setting.")]
    env: Annotated[str, about("The environment variable that sets it.")]


class Settings(AnswerRecord, frozen=True):
    settings: Annotated[list[Setting], about("The settings, in the order of the config file.")]


LIST_KEYS = everywhere.get("listKeys", "/v1/keys", "List API keys, without their secrets.", Keys)
CREATE_KEY = everywhere.post(
    "createKey",
    "/v1/keys",
    "Create an API key. Its secret is in this answer only.",
    CreatedKey,
    request=NewKey,
    example={"name": "shop", "roles": ["read"], "queues": ["mail.*"]},
    status=201,
)
REVOKE_KEY: Operation[None] = everywhere.delete(
    "revokeKey",
    "/v1/keys/{key}",
    "Revoke an API key. Every node rejects it within a second.",
    status=204,
)
GET_SETTINGS = everywhere.get(
    "getSettings",
    "/v1/settings",
    "List the settings in force on this node, without passwords.",
    Settings,
)
