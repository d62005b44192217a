"""External torque and contacts of recordings, as the monitor would report them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.contact import LEAST_STATES
from robot_dynid.monitoring.monitor import MonitorSettings, levels_of
from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.monitoring.noise_levels import holding_torque
from robot_dynid.monitoring.observer import Observer
from robot_dynid.monitoring.state_monitor import CLAIMED, CONTACT, EXTERNAL, THRESHOLD
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
    """External torque (N, n) [N m] of a recording over ``time`` (N,), and contacts.

    A contact begins where ``torque`` differs from ``claimed`` (N, n) by ``threshold`` (N, n).
    ``without_contact`` (n,) [N m] is its largest size while no joint is in contact,
    ``static_friction`` (n,) [N m] what that can hide at rest; ``notes`` what was repaired.
    """

    source: str
    time: FloatArray
    torque: FloatArray
    claimed: FloatArray
    threshold: FloatArray
    contacts: tuple[Contact, ...]
    without_contact: FloatArray
    static_friction: FloatArray
    notes: tuple[str, ...]


@one_blas_thread()
def contact_events(
    model: IdentifiedModel, logs: Sequence[RawLog], settings: MonitorSettings | None = None
) -> tuple[ContactEvents, ...]:
    """Return the contacts that the monitor finds. Raises DataError for unusable recordings."""
    if not len(logs):
        raise DataError('no recording to look for contacts in')
    return tuple(_contact_events(model, log, settings or MonitorSettings()) for log in logs)


def _contact_events(
    model: IdentifiedModel, log: RawLog, settings: MonitorSettings
) -> ContactEvents:
    motion = monitor_input(model, log)
    if not len(motion.time):
        raise DataError(f'{log.source}: holds no usable joint states')
    results = Observer(model, settings.gain, levels_of(model, settings)).along(motion)
    torque, contact = results[:, EXTERNAL], results[:, CONTACT] != 0.0
    touched = contact.any(axis=1)
    free = ~touched
    for ahead in range(1, LEAST_STATES):  # while contact is about to be reported
        free[:-ahead] &= ~touched[ahead:]
    return ContactEvents(
        log.source,
        motion.time,
        torque,
        results[:, CLAIMED],
        results[:, THRESHOLD],
        tuple(_contacts(model.joints, motion.time, torque, contact)),
        np.abs(torque[free]).max(axis=0, initial=0.0),
        holding_torque(model),
        motion.notes,
    )


def _contacts(
    joints: Sequence[str], time: FloatArray, torque: FloatArray, contact: FloatArray
) -> list[Contact]:
    found = []
    for j, joint in enumerate(joints):
        edges = np.diff(np.concatenate([[0], contact[:, j].astype(np.int8), [0]]))
        for a, b in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
            size = torque[a:b, j]
            found.append(Contact(joint, float(time[a]), float(time[b - 1]),
                                 float(size[np.argmax(np.abs(size))])))
    return sorted(found, key=lambda c: c.start)
