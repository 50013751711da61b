"""The peers, in the order of the table. Ours comes first: the ratios are taken to it."""

from __future__ import annotations

from bench.peers.base import Peer
from bench.peers.beanstalkd import Beanstalkd
from bench.peers.libraries import LiteQueue, PersistQueue
from bench.peers.moto import Moto
from bench.peers.penstock import Penstock, PenstockOnPostgres
from bench.peers.rabbitmq import ClassicRabbitMQ, QuorumRabbitMQ
from bench.peers.skip_locked import SkipLocked
from bench.peers.streams import Redis, Valkey

PEERS: tuple[type[Peer], ...] = (
    Penstock,
    PenstockOnPostgres,
    Valkey,
    Redis,
    ClassicRabbitMQ,
    QuorumRabbitMQ,
    Beanstalkd,
    SkipLocked,
    Moto,
    LiteQueue,
    PersistQueue,
)
