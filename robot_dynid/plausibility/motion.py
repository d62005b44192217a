"""Positions against limits, and measured velocity against positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.plausibility.excerpt import BLOCK, Excerpt
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray

#: positions and speeds this many times beyond the limits are in another unit; a robot may leave
#: what its description says by less
BEYOND = 3.0
#: what any joint can do, whatever its limits say: rad (m), rad/s (m/s)
REACH, FAST = np.pi, 3.0
#: a velocity belongs to a position where it explains this share of the travel, with a slope
#: within these; another joint's must explain as much
BELONGS, SLOPES = 0.8, (0.7, 1.4)
#: least travel of a block [rad, m] by which a joint moves, and how many such blocks
TRAVEL, BLOCKS = 2e-3, 8
#: a unit is named where the factor is as near to it [relative]
SAME_FACTOR = 0.1
#: factors of units of velocity over rad/s
UNITS = {180.0 / np.pi: 'deg/s', 30.0 / np.pi: 'rpm', 0.5 / np.pi: 'turns per second',
         np.pi / 180.0: 'rad/s while positions are degrees', 1000.0: 'mm/s or mrad/s'}


def motion_findings(robot: RobotModel, source: str, rows: Excerpt) -> list[Finding]:
    """Return findings about positions and velocities of an excerpt."""
    if not len(rows):
        return []
    slopes, shares = _slopes(rows)
    beyond = _beyond(robot, source, rows, slopes)
    if beyond:
        return beyond
    return [*_swapped(robot, source, rows, shares), *_velocity(robot, source, slopes, shares)]


def _slopes(rows: Excerpt) -> tuple[FloatArray, FloatArray]:
    """Return the slope of integrated velocity over travel, and the share explained.

    (n,) and (n, n): by the velocity of each joint (columns) of the travel of each (rows); NaN
    where a joint does not move or velocity was not measured.
    """
    n = rows.travel.shape[1]
    slopes, shares = np.full(n, np.nan), np.full((n, n), np.nan)
    known = np.isfinite(rows.integrated).all(axis=1) & np.isfinite(rows.travel).all(axis=1)
    travel, summed = rows.travel[known], rows.integrated[known]
    moves = [int(np.count_nonzero(np.abs(t) > TRAVEL)) >= BLOCKS for t in travel.T]
    for j in np.flatnonzero(moves):
        own = travel[:, j]
        slopes[j] = float(own @ summed[:, j]) / float(own @ own)
        for k in np.flatnonzero(moves):
            power = float(summed[:, k] @ summed[:, k])
            product = float(own @ summed[:, k])
            shares[j, k] = product**2 / (float(own @ own) * power) if power > 0.0 else 0.0
    return slopes, shares


def _beyond(
    robot: RobotModel, source: str, rows: Excerpt, slopes: FloatArray
) -> list[Finding]:
    """Return whether positions, or the speed they change at, are in another unit."""
    limits = robot.limits
    reach = np.fmax(np.abs(limits.lower), np.abs(limits.upper))
    far = np.abs(rows.position).max(axis=0) / np.fmax(reach, REACH)
    far[~np.isfinite(reach)] = 0.0
    seconds = rows.seconds[:, None]
    blocks = (rows.seconds > 0.5 * BLOCK) if (rows.seconds > 0.5 * BLOCK).any() else \
        rows.seconds > 0.0
    speed = np.abs(rows.travel / seconds)[blocks].max(axis=0, initial=0.0)
    fast = speed / np.fmax(limits.velocity, FAST)
    wrong = np.flatnonzero((far > BEYOND) | (fast > BEYOND))
    if not len(wrong):
        return []
    sizes = np.abs(rows.position[:, wrong]).max(axis=0)
    text = (f'positions up to {", ".join(f"{x:.3g}" for x in sizes)} (limits '
            f'{", ".join(f"{x:.3g}" for x in reach[wrong])}), changing by '
            f'{", ".join(f"{x:.3g}" for x in speed[wrong])} per second (limits '
            f'{", ".join(f"{x:.3g}" for x in limits.velocity[wrong])})')
    meaning, remedy = _position_unit(robot, wrong, (far, fast), slopes)
    return [Finding('position_unit', source, _some(robot, wrong), Severity.REFUSE,
                    f'{text}: look like {meaning}', remedy)]


def _position_unit(
    robot: RobotModel, wrong: NDArray[np.int64], beyond: tuple[FloatArray, FloatArray],
    slopes: FloatArray,
) -> tuple[str, str]:
    """Return the likely unit of positions, and the remedy."""
    worst = np.maximum(*beyond)[wrong]
    degrees = 180.0 / np.pi
    factor = 1.0 / slopes[wrong]
    measured = factor[np.isfinite(factor) & (np.abs(np.abs(np.log(np.abs(factor)))) > 0.3)]
    ratios = robot.drive.gear_ratios
    if ratios is not None:
        size = np.abs(ratios[wrong])
        by_slope = len(measured) and np.all(np.abs(np.abs(measured) / size[:len(measured)] - 1.0)
                                            < SAME_FACTOR)
        if by_slope or (not len(measured) and np.all(worst / size < 1.0)
                        and not np.all(worst < degrees)):
            return ('positions of the motors, by the gear ratios of the robot',
                    'divide positions (and velocities) by the gear ratios')
    if len(measured) and np.all(np.abs(measured / degrees - 1.0) < SAME_FACTOR):
        return 'degrees, as velocities in rad/s confirm', 'convert positions to rad'
    if len(measured):
        return (f'{", ".join(f"{x:.4g}" for x in measured)} times those of the joints, by their '
                'velocities: positions on the motor side of the gear',
                'divide positions by the gear ratios')
    if np.all(robot.types[wrong] == PRISMATIC):
        return 'mm', 'convert positions to m'
    if np.all(worst < degrees):
        return 'degrees', 'convert positions (and velocities) to rad (rad/s); if they are those ' \
            'of motors, divide them by the gear ratios'
    return ('positions on the motor side of the gear, or another unit',
            'divide positions (and velocities) by the gear ratios, or convert them to rad (m)')


def _swapped(
    robot: RobotModel, source: str, rows: Excerpt, shares: FloatArray
) -> list[Finding]:
    """Return whether velocities belong to other joints than their columns say."""
    moving = np.flatnonzero(np.isfinite(np.diag(shares)))
    pairs = []
    for j in moving:
        best = int(np.nanargmax(shares[j]))
        if best != j and shares[j, best] > BELONGS and shares[j, j] < 0.5 * shares[j, best]:
            pairs.append((int(j), best))
    if not pairs:
        return []
    named = ', '.join(f'that of {robot.joints[k]} explains {shares[j, k]:.0%} of the travel of '
                      f'{robot.joints[j]}, its own {shares[j, j]:.0%}' for j, k in pairs)
    return [Finding('velocity', source, tuple(robot.joints[j] for j, _ in pairs), Severity.REFUSE,
                    f'velocities look permuted: {named}',
                    'put the velocity columns in the order of the joints, or leave velocity out')]


def _velocity(
    robot: RobotModel, source: str, slopes: FloatArray, shares: FloatArray
) -> list[Finding]:
    """Return whether velocities have another unit or sign than the derivative of position."""
    own = np.diag(shares)
    zero = np.flatnonzero(np.isfinite(slopes) & (slopes == 0.0))
    found = []
    if len(zero):
        found.append(Finding(
            'velocity', source, _some(robot, zero), Severity.REFUSE,
            'velocity is zero throughout while the position changes',
            'leave velocity out, it is then taken from the position'))
    wrong = np.flatnonzero((own > BELONGS) & ~((slopes > SLOPES[0]) & (slopes < SLOPES[1])))
    if not len(wrong):
        return found
    factors = slopes[wrong]
    meaning, remedy = _velocity_unit(robot, wrong, factors)
    found.append(Finding(
        'velocity', source, _some(robot, wrong), Severity.REFUSE,
        f'velocity is {", ".join(f"{x:.4g}" for x in factors)} times the derivative of the '
        f'position: looks like {meaning}', remedy))
    return found


def _velocity_unit(
    robot: RobotModel, wrong: NDArray[np.int64], factors: FloatArray
) -> tuple[str, str]:
    if np.all(np.abs(factors + 1.0) < 0.4):
        return 'the wrong sign', 'change the sign of the velocities'
    sizes = np.abs(factors)
    ratios = robot.drive.gear_ratios
    if ratios is not None and np.all(np.abs(sizes / np.abs(ratios[wrong]) - 1.0) < SAME_FACTOR):
        return 'the speed of the motors', 'divide velocities by the gear ratios'
    for factor, name in UNITS.items():
        if np.all(np.abs(factors / factor - 1.0) < SAME_FACTOR):
            return name, 'convert positions to rad and velocities to rad/s (m, m/s)'
    return ('the speed of the motors, or another unit',
            'divide velocities by the gear ratios, convert them to rad/s (m/s), or leave them out')


def _some(robot: RobotModel, joints: NDArray[np.int64]) -> tuple[str, ...]:
    return () if len(joints) == robot.n else tuple(robot.joints[j] for j in joints)
