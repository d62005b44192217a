"""Direction of gravity in the base frame, from efforts: how the base is mounted."""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.plausibility.effort import SPEED, Data
from robot_dynid.plausibility.excerpt import Excerpt, thinned
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.robot.model import PRISMATIC, STANDARD_GRAVITY, RobotModel
from robot_dynid.types import FloatArray

#: least angle to the stated direction: wrong inertials look like less; and the largest up to which
#: it is not the efforts that have the wrong sign [degrees]
TURNED, NEGATED = 50.0, 165.0
#: size of gravity over the standard one, within which the unit of the efforts is right
SIZES = (0.6, 1.6)
#: the stated gravity must leave this share of the efforts at least, that in another direction
#: at most the second one, and the third one of what the stated one leaves
CONTRADICTED, LEFT, SHARE = 0.3, 0.15, 0.25
#: least singular value of the efforts of three directions over the largest one
KNOWN = 0.05
#: travel of a joint [rad, m] from which there are several poses
TRAVEL = 0.2
#: one axis is the best where it leaves less than this share of what the next one does
DISTINCT = 0.5
#: rows that are looked at; directions that have a name are taken within this angle [degrees]
ROWS, NAMED = 200, 12.0


def gravity_direction(robot: RobotModel, rows: Excerpt) -> tuple[FloatArray, float, float]:
    """Return the gravity (3,) [m/s^2] in the base frame by which efforts are nominal.

    With it the shares of the efforts that this gravity and the stated one leave. Least squares
    over all joints, of ``A(q) g = tau - inertial``: torque of the weight is linear in gravity.
    Friction, rotor and offset of a joint that moves are free; at rest friction may point either
    way, and counts as error. In a single pose, or where a direction has hardly any effect, it is
    the best of the six along the axes of the base, NaN where another one is nearly as good.
    """
    data, still = Data.of(robot, rows), np.zeros_like(rows.position)
    columns = np.stack([rigid_body.inverse_dynamics(
        robot.with_gravity(axis), rows.position, still, still) for axis in np.eye(3)], axis=-1)
    target = rows.torque - data.inertial
    for j in range(robot.n):
        if np.sqrt(np.mean(rows.velocity[:, j]**2)) > SPEED:
            basis = np.linalg.qr(_scaled(data.others(j)))[0]
            target[:, j] -= basis @ (basis.T @ target[:, j])
            columns[:, j] -= basis @ (basis.T @ columns[:, j])
    matrix, flat = columns.reshape(-1, 3), target.ravel()
    size = max(float(np.linalg.norm(flat)), 1e-12)
    found, _, _, spread = np.linalg.lstsq(matrix, flat, rcond=None)
    stated = float(np.linalg.norm(flat - matrix @ robot.gravity)) / size
    if not _moved(rows) or not spread[-1] > KNOWN * spread[0]:
        found = _along_an_axis(matrix, flat)
    return np.asarray(found), float(np.linalg.norm(flat - matrix @ found)) / size, stated


def _moved(rows: Excerpt) -> bool:
    return bool(np.ptp(rows.position, axis=0).max(initial=0.0) > TRAVEL)


def _along_an_axis(matrix: FloatArray, torque: FloatArray) -> FloatArray:
    """Return standard gravity (3,) along the axis that explains ``torque`` (M,) best, or NaN."""
    usual = float(np.linalg.norm(STANDARD_GRAVITY))
    choices = usual * np.vstack([np.eye(3), -np.eye(3)])
    left = np.linalg.norm(torque[:, None] - matrix @ choices.T, axis=0)
    best, second = np.argsort(left)[:2]
    clear = left[best] < DISTINCT * left[second]
    return np.asarray(choices[best] if clear else np.full(3, np.nan))


def _scaled(columns: FloatArray) -> FloatArray:
    """Return columns (N, k) of length one, those without any left out."""
    sizes = np.linalg.norm(columns, axis=0)
    return np.asarray(columns[:, sizes > 0.0] / sizes[sizes > 0.0])


def mounting_findings(robot: RobotModel, source: str, rows: Excerpt) -> list[Finding]:
    """Return whether efforts hold gravity in another direction than the robot states.

    A recording in which the robot moved is refused, at rest friction might explain it. A turn
    about the axis of the first joint is none: an offset of its zero is the same, and is named so.
    """
    if len(rows) < 3 or robot.n < 3 or robot.drive.kind == 'gravity_compensated_torque':
        return []
    few = thinned(rows, ROWS)
    direction, left, stated = gravity_direction(robot, few)
    size, usual = float(np.linalg.norm(direction)), float(np.linalg.norm(STANDARD_GRAVITY))
    own = float(np.linalg.norm(robot.gravity))
    if not (size > 0.0 and own > 0.0 and left < LEFT and stated > CONTRADICTED
            and left < SHARE * stated and SIZES[0] < size / usual < SIZES[1]):
        return []
    angle = np.degrees(np.arccos(np.clip(direction @ robot.gravity / (size * own), -1.0, 1.0)))
    if not TURNED < angle < NEGATED or _is_offset(robot, direction):
        return []
    shown, meaning = _named(direction)
    return [Finding(
        'gravity', source, (), Severity.REFUSE if _moved(few) else Severity.WARN,
        f'efforts hold gravity {angle:.0f} degrees away from where the robot YAML says: it then '
        f'leaves {left:.0%} of them, not {stated:.0%}; the base looks {meaning}',
        f'state gravity: {shown} in the robot YAML, or correct base_link')]


def _is_offset(robot: RobotModel, direction: FloatArray) -> bool:
    """Return whether gravity is turned about the axis of a joint on the base."""
    turn = np.cross(robot.gravity, direction)
    turn /= max(float(np.linalg.norm(turn)), 1e-12)
    axes = (robot.rotations[j] @ robot.axes[j] for j in np.flatnonzero(robot.parents < 0)
            if robot.types[j] != PRISMATIC)
    return any(abs(float(turn @ axis)) > np.cos(np.radians(NAMED)) for axis in axes)


def _named(direction: FloatArray) -> tuple[str, str]:
    """Return gravity as it is written in a robot YAML, and how the base is mounted then."""
    usual = float(np.linalg.norm(STANDARD_GRAVITY))
    unit = direction / np.linalg.norm(direction)
    axis = int(np.argmax(np.abs(unit)))
    pure = np.zeros(3)
    pure[axis] = np.sign(unit[axis])
    near = np.degrees(np.arccos(np.clip(unit @ pure, -1.0, 1.0))) < NAMED
    values = usual * (pure if near else unit)
    shown = f'[{", ".join(f"{value + 0.0:.3g}" for value in values)}]'
    if not near:
        return shown, 'mounted at an angle'
    if axis == 2:
        return shown, 'hung from a ceiling' if pure[2] > 0.0 else 'mounted upright'
    return shown, f'mounted on a wall, its {"xy"[axis]} axis {"down" if pure[axis] > 0 else "up"}'
