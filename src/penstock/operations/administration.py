"""Keys and settings, read-only."""

from __future__ import annotations

from penstock.api import administration
from penstock.api.administration import Key, Setting
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
            administration.GET_SETTINGS: self.get_settings,
        }

    def list_keys(self, call: Call[None, None]) -> Work[administration.Keys]:
        return self._keys.all().map(
            lambda keys: administration.Keys(keys=[Key.of(key, call.instant) for key in keys])
        )

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
