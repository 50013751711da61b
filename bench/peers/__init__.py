"""The peers, in the order in which they are measured. Ours comes first."""

from __future__ import annotations

from bench.peers.base import Peer
from bench.peers.beanstalkd import Beanstalkd
from bench.peers.libraries import LiteQueue, PersistQueue
from bench.peers.look_alikes import LocalEmu, LocalWebServices, MiniStack
from bench.peers.moto import Moto
from bench.peers.penstock import (
    Penstock,
    PenstockOnMariadb,
    PenstockOnPostgres,
    PenstockSqs,
    PenstockSqsOnPostgres,
)
from bench.peers.rabbitmq import ClassicRabbitMQ, QuorumRabbitMQ
from bench.peers.skip_locked import SkipLocked
from bench.peers.streams import Redis, Valkey

PEERS: tuple[type[Peer], ...] = (
    Penstock,
    PenstockSqs,  # at once: the two are compared
    PenstockOnPostgres,
    PenstockSqsOnPostgres,
    PenstockOnMariadb,
    Valkey,
    Redis,
    ClassicRabbitMQ,
    QuorumRabbitMQ,
    Beanstalkd,
    SkipLocked,
    LiteQueue,
    PersistQueue,
    Moto,
    MiniStack,
    LocalWebServices,
    LocalEmu,
)
