"""Keys and settings over HTTP, to be looked at: no secret is ever told."""

from __future__ import annotations

import msgspec

from penstock.domain.access.api_key import ApiKey, Role, Scope
from penstock.edge.instants import to_text
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.services.keys import Keys
from penstock.settings import Settings
from penstock.settings.catalogue import catalogue
from penstock.settings.read import told
from penstock.settings.shown import shown_value


class KeyOut(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A key without its secret, of which only a hash is kept."""

    id: str
    name: str
    roles: tuple[Role, ...]
    queues: tuple[str, ...]
    created_at: str
    revoked_at: str | None = None


class KeysOut(msgspec.Struct):
    keys: list[KeyOut]


class SettingOut(msgspec.Struct, kw_only=True):
    """A setting as this node goes by it."""

    key: str
    value: str | None
    default: str | None
    is_default: bool
    text: str
    env: str


class SettingsOut(msgspec.Struct):
    settings: list[SettingOut]


class AdministrationApi:
    def __init__(self, keys: Keys, settings: Settings) -> None:
        self._keys = keys
        self._settings = settings

    def routes(self) -> list[Route]:
        return [
            Route(
                method="GET",
                path="/v1/keys",
                handler=self.list_keys,
                name="listKeys",
                scope=Scope.ALL,
                summary="The API keys and what they are for, without their secrets.",
                role=Role.READ,
                gives=KeysOut,
            ),
            Route(
                method="GET",
                path="/v1/settings",
                handler=self.get_settings,
                name="getSettings",
                scope=Scope.ALL,
                summary="The settings this node goes by, without the passwords in them.",
                role=Role.READ,
                gives=SettingsOut,
            ),
        ]

    async def list_keys(self, request: Request, respond: Respond) -> Response:
        return json_response(KeysOut([_key_out(key) for key in await self._keys.all()]))

    async def get_settings(self, request: Request, respond: Respond) -> Response:
        found = []
        for setting in catalogue().values():
            value = shown_value(self._settings, setting)
            found.append(
                SettingOut(
                    key=setting.key,
                    value=None if value is None else told(setting, value),
                    default=None if setting.default is None else told(setting, setting.default),
                    is_default=value == setting.default,
                    text=setting.text,
                    env=setting.env,
                )
            )
        return json_response(SettingsOut(found))


def _key_out(key: ApiKey) -> KeyOut:
    return KeyOut(
        id=key.key_id,
        name=key.name,
        roles=key.roles,
        queues=key.queues,
        created_at=to_text(key.created_at),
        revoked_at=None if key.revoked_at is None else to_text(key.revoked_at),
    )
