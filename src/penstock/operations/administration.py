"""Keys and settings."""

from __future__ import annotations

from penstock.api import administration
from penstock.api.administration import CreatedKey, Key, NewKey, Setting
from penstock.domain.access.api_key import allow, allow_expiry
from penstock.domain.datetimes import parse_instant
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.access import KeyService
from penstock.settings import Settings
from penstock.settings.catalogue import catalogue
from penstock.settings.text import masked_value, render


class AdministrationOperations:
    def __init__(self, keys: KeyService, settings: Settings) -> None:
        self._keys = keys
        self._settings = settings

    def handlers(self) -> Handlers:
        return {
            administration.LIST_KEYS: self.list_keys,
            administration.CREATE_KEY: self.create_key,
            administration.REVOKE_KEY: self.revoke_key,
            administration.GET_SETTINGS: self.get_settings,
        }

    def list_keys(self, call: Call[None, None]) -> Work[administration.Keys]:
        return self._keys.all().map(
            lambda keys: administration.Keys(keys=[Key.of(key, call.instant) for key in keys])
        )

    def create_key(self, call: Call[NewKey, None]) -> Work[CreatedKey]:
        wanted = call.body
        for role in wanted.roles:  # otherwise a caller could give itself more rights
            allow(call.caller, role)
        expires_at = None
        if wanted.expires_at is not None:
            expires_at = parse_instant("expires_at", wanted.expires_at)
        allow_expiry(call.caller, expires_at)
        created = self._keys.create(
            wanted.name, roles=wanted.roles, queues=wanted.queues, expires_at=expires_at
        )
        return created.map(
            lambda made: CreatedKey(key=Key.of(made.key, call.instant), secret=made.secret)
        )

    def revoke_key(self, call: Call[None, None]) -> Work[None]:
        return self._keys.revoke(call.path["key"])

    def get_settings(self, call: Call[None, None]) -> Steps[administration.Settings]:
        yield from ()  # needs no store
        found = []
        for setting in catalogue().values():
            value = masked_value(self._settings, setting)
            found.append(
                Setting(
                    key=setting.key,
                    value=None if value is None else render(setting, value),
                    default=None if setting.default is None else render(setting, setting.default),
                    is_default=value == setting.default,
                    text=setting.text,
                    env=setting.env,
                )
            )
        return administration.Settings(settings=found)
