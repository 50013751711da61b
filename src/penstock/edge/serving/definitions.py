"""Applies the definitions file of the settings before a server accepts connections."""

from __future__ import annotations

import logging
from pathlib import Path

from penstock.client.definitions.broker import BrokerDefinitions
from penstock.client.definitions.document import read_definitions
from penstock.client.local.channel import LocalChannel
from penstock.wiring.broker import Broker
from penstock.wiring.handlers import handlers_of

_log = logging.getLogger("penstock.server")


def apply_definitions(broker: Broker) -> None:
    """Create and change, but remove nothing; raises the error of a wrong file."""
    file = broker.settings.server.definitions
    if file is None:
        return
    wanted = read_definitions(Path(file))
    definitions = BrokerDefinitions(LocalChannel(handlers_of(broker)))
    planned = definitions.plan(wanted, prune=False)
    for change in definitions.apply(planned, wanted):
        _log.info("%s: %s %s %s", file, change.action, change.kind, change.name)
