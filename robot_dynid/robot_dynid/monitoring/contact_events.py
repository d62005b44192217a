"""Contact detection on recordings, as the running monitor would report it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError, reported
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.states import holding_torque
from robot_dynid.identified.uses import recordings_for
from robot_dynid.monitoring.deflected_observer import DEFLECTED
from robot_dynid.monitoring.monitor import MonitorSettings, levels_of, observer_of
from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.monitoring.motor_states import follows_motors, motors_unused, used_joints
from robot_dynid.monitoring.observer import CLAIMED, CONTACT, CONTACT_STATES, EXTERNAL, THRESHOLD
from robot_dynid.monitoring.watched_joints import WATCHED, BlindTime, blind_codes, blind_times
from robot_dynid.types import FloatArray, RawLog


@dataclass(frozen=True)
class Contact:
    """A contact of one joint from ``start`` to ``stop`` [s]; ``peak`` [N m] with its sign."""

    joint: str
    start: float
    stop: float
    peak: float


@dataclass(frozen=True, eq=False)
class ContactEvents:
    """External torque (N, n) [N m] of a recording over ``time`` (N,), and its contacts.

    A contact begins where ``torque`` differs from ``claimed`` (N, n) by ``threshold`` (N, n).
    ``without_contact`` (n,) [N m] is its largest size while the joint is watched and no joint is
    in contact, NaN if it never is; ``static_friction`` (n,) [N m] hides contact at rest unless the
    gear torque is measured; ``moving`` (n,) [N m] is the threshold in motion; ``notes`` lists
    repairs, ``blind`` the times without contact detection.
    """

    source: str
    time: FloatArray
    torque: FloatArray
    claimed: FloatArray
    threshold: FloatArray
    contacts: tuple[Contact, ...]
    without_contact: FloatArray
    static_friction: FloatArray
    moving: FloatArray
    notes: tuple[str, ...]
    blind: tuple[BlindTime, ...] = ()

    @property
    def watched(self) -> bool:
        """True if contact of every joint was watched all the time after the observer started."""
        return all(one.begins for one in self.blind)

    def blind_seconds(self, joints: Sequence[str]) -> tuple[float, ...]:
        """Return the time [s] without contact detection of each joint."""
        return tuple(sum(one.seconds for one in self.blind if one.joint == joint)
                     for joint in joints)


@reported
@one_blas_thread()
def contact_events(
    model: IdentifiedModel, logs: Sequence[RawLog], settings: MonitorSettings | None = None
) -> tuple[ContactEvents, ...]:
    """Return the contacts the monitor detects; raises DataError for unusable recordings."""
    if not len(logs):
        raise DataError('no recording to detect contacts in')
    logs, findings = recordings_for(model, model.robot, logs)
    events = [_contact_events(model, log, settings or MonitorSettings()) for log in logs]
    events[0] = replace(events[0], notes=(*findings, *events[0].notes))
    return tuple(events)


def _contact_events(
    model: IdentifiedModel, log: RawLog, settings: MonitorSettings
) -> ContactEvents:
    motion = monitor_input(model, log)
    if not len(motion.time):
        raise DataError(f'{log.source}: holds no usable joint states')
    levels = levels_of(model, settings)
    results = observer_of(model, settings).along(motion)
    seen = np.zeros(model.robot.n, dtype=bool)
    if follows_motors(model):
        seen = (results[:, DEFLECTED] != 0.0).any(axis=0)
    sight = blind_codes(model, levels.without.moving, settings.gain, motion)
    torque, contact = results[:, EXTERNAL], results[:, CONTACT] != 0.0
    touched = contact.any(axis=1)
    free = ~touched
    for ahead in range(1, CONTACT_STATES):  # the states before contact is reported
        free[:-ahead] &= ~touched[ahead:]
    return ContactEvents(
        log.source,
        motion.time,
        torque,
        results[:, CLAIMED],
        results[:, THRESHOLD],
        tuple(_contacts(model.joints, motion.time, torque, contact)),
        _largest(torque, free[:, None] & (sight == WATCHED)),
        np.where(seen & np.isin(model.joints, model.elastic_joints), 0.0, holding_torque(model)),
        np.where(seen, levels.contact.moving, levels.without.moving),
        (*motion.notes, *_without_deflection(model, log.source, seen), *(
            f'{log.source}: {one}' for one in model.trained.warnings(
                model.robot, {'position': motion.position, 'velocity': motion.velocity}))),
        blind_times(model.joints, motion, sight),
    )


def _without_deflection(
    model: IdentifiedModel, source: str, seen: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Return a note on joints whose deflection the model uses but which was not ``seen``."""
    unused = motors_unused(model)
    if unused or not follows_motors(model):
        return (f'{source}: {unused}',) if unused else ()
    never = used_joints(model) & ~seen
    names = ', '.join(joint for joint, one in zip(model.joints, never, strict=True) if one)
    return (f'{source}: {names}: no motor states with velocities: contact detected without the '
            'gear deflection',) if names else ()


def _largest(torque: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
    """Return the largest size (n,) in the chosen ``rows`` (N, n), NaN if there are none."""
    largest = np.where(rows, np.abs(torque), -np.inf).max(axis=0)
    return np.where(rows.any(axis=0), largest, np.nan)


def _contacts(
    joints: Sequence[str], time: FloatArray, torque: FloatArray, contact: FloatArray
) -> list[Contact]:
    contacts = []
    for j, joint in enumerate(joints):
        edges = np.diff(np.concatenate([[0], contact[:, j].astype(np.int8), [0]]))
        for a, b in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
            size = torque[a:b, j]
            contacts.append(Contact(joint, float(time[a]), float(time[b - 1]),
                                 float(size[np.argmax(np.abs(size))])))
    return sorted(contacts, key=lambda c: c.start)
