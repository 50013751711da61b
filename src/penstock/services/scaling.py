"""The autoscaler's state in the store: leader, status of the fleets, decisions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.domain.document import Document
from penstock.domain.errors import FleetNotFound, FleetNotWatched
from penstock.domain.fact import FactFilter
from penstock.domain.scaling.fleet_status import (
    ALERT,
    PROFILE_CHANGED,
    FleetStatus,
    NewFact,
    is_watched,
)
from penstock.domain.scaling.profile_overrides import (
    NO_OVERRIDES,
    OVERRIDABLE,
    ProfileOverrides,
    merge_profile,
    read_overrides,
)
from penstock.domain.scaling.recommendation import Profile
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read, write

INDEX = "scaling"  # a document with the names of all fleets
PROFILES = "scaling_profiles"  # a document with the overrides of their profiles

_log = logging.getLogger("penstock.scaling")
_index = msgspec.json.Decoder(dict[str, str])
_status = msgspec.json.Decoder(FleetStatus)
_overrides = msgspec.json.Decoder(dict[str, ProfileOverrides])


class FleetProfile(msgspec.Struct, frozen=True, kw_only=True):
    fleet: str
    queues: tuple[str, ...]
    profile: str  # its name in the fleets file
    overrides: ProfileOverrides
    settings: Profile | None  # in force: the file's with the overrides; None: not reported yet

    @property
    def is_replayed(self) -> bool:
        """Whether back-tests apply: they replay one queue, and no other goal than the backlog."""
        found = self.settings
        return (
            found is not None
            and len(self.queues) == 1
            and found == Profile(**{name: getattr(found, name) for name in OVERRIDABLE})
        )


ChangeProfile = Callable[[FleetProfile], Mapping[str, Any] | None]


class _AlertData(msgspec.Struct):
    what: str


_alert = msgspec.json.Decoder(_AlertData)


class ScalingService:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    # ---- for the autoscaler

    def lead(self, group: str, *, holder: str, for_ms: int, now: int) -> bool:
        """Become or stay the leader: only one autoscaler of a group acts."""
        name = _duty(group)
        leading = self._store.write(
            lambda s: s.duties.lead(name, holder=holder, for_ms=for_ms, now=now)
        )
        return leading.result()

    def leave(self, group: str, *, holder: str) -> None:
        self._store.write(lambda s: s.duties.leave(_duty(group), holder=holder)).result()

    def is_led(self, group: str, *, now: int) -> bool:
        until = self._store.read(lambda s: s.duties.until(_duty(group))).result()
        return until is not None and until > now

    def save_tick(
        self,
        statuses: Sequence[FleetStatus],
        facts: Sequence[NewFact] = (),
        *,
        gone: Iterable[str] = (),
        now: int,
    ) -> Work[None]:
        """Save the results of a tick, all or nothing."""
        gone = frozenset(gone)

        def do(session: Session) -> None:
            _save_index(session, {one.name: one.group for one in statuses}, gone, now=now)
            for one in statuses:
                session.documents.put(_name(one.name), _text(one), now=now)
            for name in gone:
                session.documents.remove(_name(name), now=now)
            for fact in facts:
                session.facts.add(fact.kind, fact.subject, at=now, data=fact.data)

        return write(self._store, do)

    def of_group(self, group: str) -> dict[str, FleetStatus]:
        """The status that the previous leader saved."""
        found = self.all().result()
        return {status.name: status for status in found if status.group == group}

    def alerted(self, source: str) -> dict[str, int]:
        """When alerts about memory and disk were last raised."""
        wanted = FactFilter(kind=ALERT, subject=source, limit=10)
        facts = self._store.read(lambda s: s.facts.search(wanted)).result()
        return {_alert.decode(fact.data).what: fact.at for fact in reversed(facts)}

    # ---- for all callers

    def all(self) -> Work[list[FleetStatus]]:
        """All fleets, by name."""

        def do(session: Session) -> list[FleetStatus]:
            found = (_find(session, name) for name in sorted(_read_index(session)))
            return [status for status in found if status is not None]

        return read(self._store, do)

    def get(self, name: str) -> Work[FleetStatus]:
        """Raises FleetNotFound."""

        def do(session: Session) -> FleetStatus:
            return _existing(session, name)

        return read(self._store, do)

    def profiles(self) -> Work[list[FleetProfile]]:
        """The profiles of all fleets that report theirs, by name of the fleet."""

        def do(session: Session) -> list[FleetProfile]:
            own = _read_overrides(session.documents.find(PROFILES))
            found = (_find(session, name) for name in sorted(_read_index(session)))
            return [_profile(one, own) for one in found if one is not None]

        return read(self._store, do)

    def profile(self, name: str) -> Work[FleetProfile]:
        """Raises FleetNotFound."""

        def do(session: Session) -> FleetProfile:
            return _profile(_existing(session, name), self.overrides_in(session))

        return read(self._store, do)

    def change_profile(self, name: str, change: ChangeProfile) -> Work[FleetProfile]:
        """Change the overrides of a fleet; its autoscaler takes them with its next refresh.

        `change` returns the values to set, or None to remove all.  Raises FleetNotFound, and what
        `change` raises; then nothing is stored.
        """
        now = self._clock.now()

        def do(session: Session) -> FleetProfile:
            status = _existing(session, name)
            own = _read_overrides(session.documents.lock(PROFILES, now=now))
            before = _profile(status, own)
            values = change(before)
            after = NO_OVERRIDES
            if values is not None:
                after = read_overrides(before.overrides.values() | dict(values))
            own = {key: one for key, one in own.items() if key != name}
            if after != NO_OVERRIDES:
                own[name] = after
            session.documents.put(PROFILES, msgspec.json.encode(own).decode(), now=now)
            session.facts.add(PROFILE_CHANGED, name, at=now, data=after.values())
            return _profile(status, own)

        return write(self._store, do)

    def overrides(self) -> dict[str, ProfileOverrides]:
        """By fleet, for the autoscaler."""
        return self._store.read(self.overrides_in).result()

    def overrides_in(self, session: Session) -> dict[str, ProfileOverrides]:
        return _read_overrides(session.documents.find(PROFILES))

    def wanted(self, name: str) -> Work[int]:
        """How many workers it should have; raises FleetNotFound or FleetNotWatched."""
        now = self._clock.now()

        def do(session: Session) -> int:
            found = _existing(session, name)
            if found.wanted is None or not is_watched(found, now=now):
                raise FleetNotWatched(
                    f"no autoscaler has handled fleet {name!r} lately; run penstock autoscale"
                )
            return found.wanted

        return read(self._store, do)


def _existing(session: Session, name: str) -> FleetStatus:
    found = _find(session, name)
    if found is None:
        raise FleetNotFound(name)
    return found


def _read_overrides(found: Document | None) -> dict[str, ProfileOverrides]:
    return {} if found is None else _overrides.decode(found.text)


def _profile(status: FleetStatus, own: Mapping[str, ProfileOverrides]) -> FleetProfile:
    overrides = own.get(status.name, NO_OVERRIDES)
    known = status.file_profile
    return FleetProfile(
        fleet=status.name,
        queues=status.all_queues,
        profile=status.profile,
        overrides=overrides,
        settings=None if known is None else merge_profile(known, overrides),
    )


def _duty(group: str) -> str:
    return f"autoscaler/{group}"


def _name(fleet: str) -> str:
    return f"{INDEX}/{fleet}"


def _text(status: FleetStatus) -> str:
    return msgspec.json.encode(status).decode()


def _read_index(session: Session) -> dict[str, str]:
    found = session.documents.find(INDEX)
    return _index.decode(found.text) if found else {}


def _save_index(session: Session, named: dict[str, str], gone: frozenset[str], *, now: int) -> None:
    known = _read_index(session)
    if named.items() <= known.items() and not gone & known.keys():
        return  # almost always; otherwise it is read again with a lock
    found = session.documents.lock(INDEX, now=now)
    known = _index.decode(found.text) if found else {}
    after = {name: group for name, group in {**known, **named}.items() if name not in gone}
    session.documents.put(INDEX, msgspec.json.encode(after).decode(), now=now)


def _find(session: Session, name: str) -> FleetStatus | None:
    found = session.documents.find(_name(name))
    if found is None:
        return None
    try:
        return _status.decode(found.text)
    except msgspec.ValidationError as error:  # another version's: the next run overwrites it
        _log.debug("the stored status of fleet %s cannot be read: %s", name, error)
        return None
