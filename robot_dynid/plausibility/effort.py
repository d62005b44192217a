"""Efforts against the nominal dynamics: scale, sign, order of joints, offsets, gravity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.plausibility.excerpt import Excerpt, thinned
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.robot.model import REVOLUTE, RobotModel
from robot_dynid.types import FloatArray

#: a joint is judged by its nominal dynamics where they explain this share of what friction, rotor
#: and offset leave of its effort
DECISIVE = 0.5
#: efforts differ from nominal ones by up to this factor where inertials are wrong, by up to the
#: next where they are currents; beyond are other units
WRONG_INERTIALS, OTHER_UNITS = 7.0, 20.0
#: one joint alone differs by this factor where it is recorded in another unit than the others
ALONE = 200.0
#: what else would explain the efforts must do so to this share, with scales up to this factor
CONVINCING, NEAR = 0.7, 2.0
#: efforts are permuted where this share of what is left remains
PERMUTED = 0.6
#: another motion is named where what is left of the efforts, on average over all joints, is at
#: most this share and falls by this logarithm, and by so many over the root of independent rows
MOST_LEFT, BETTER, SCATTER = 0.2, 0.2, 1.25
#: a joint counts as moving from this speed, root mean square [rad/s, m/s]; ramp of dry friction
SPEED, RAMP = 0.02, 0.02
#: friction is negative when it drives with this share of rms effort times rms speed, and by so
#: many standard deviations
DRIVING, DEVIATIONS = 0.03, 4.0
#: share of the effort below which what is left of it is rounding
ROUNDING = 1e-12
#: rows of smoothed residuals per independent one
CORRELATED = 8.0
#: gravity loads a joint where it changes by this share of what the effort does
LOADED = 0.3
#: efforts hold no gravity below this share of the nominal one, known to this standard deviation
NO_GRAVITY, UNCERTAIN = 0.25, 0.15
#: least rows by which another motion is tried, and about how many are enough
LEAST_ROWS, ROWS = 40, 400
#: about how many rows are enough to see whether a payload explains them as well
PAYLOAD_ROWS = 150
#: gravity says something of a joint at rest in poses where it has this share of what it has in
#: any pose, and of the largest one of all joints; that of so many poses is known
WEIGHTY, OF_LARGEST, POSES = 0.5, 0.2, 200
#: nominal dynamics are judged where they change by this share of gravity in any pose, and by
#: this share of the limit: below are friction and cables
CHANGING, OF_LIMIT = 0.15, 0.02
#: efforts beyond the limits by this factor have another unit, whatever the inertials are
BEYOND_LIMITS = 30.0


@dataclass(frozen=True, eq=False)
class Fit:
    """Torque of joints on nominal dynamics, friction, rotor and offset, each (n,).

    ``scale`` of the nominal dynamics and its standard ``deviation``, ``explained`` share of the
    rest they explain; ``friction`` share of rms torque times rms speed that is dissipated,
    ``deviations`` how many standard deviations that is from zero.
    """

    scale: FloatArray
    deviation: FloatArray
    explained: FloatArray
    friction: FloatArray
    deviations: FloatArray


@dataclass(frozen=True, eq=False)
class Data:
    """An excerpt with its nominal dynamics (N, n): ``gravity`` and the ``inertial`` rest [N m]."""

    robot: RobotModel
    rows: Excerpt
    gravity: FloatArray
    inertial: FloatArray

    @classmethod
    def of(cls, robot: RobotModel, rows: Excerpt) -> Data:
        """Return an excerpt with the nominal dynamics of the robot."""
        gravity = rigid_body.gravity_effort(robot, rows.position)
        whole = rigid_body.inverse_dynamics(
            robot, rows.position, rows.velocity, rows.acceleration)
        return cls(robot, rows, gravity, whole - gravity)

    @property
    def expected(self) -> FloatArray:
        """Nominal torque (N, n) [N m] of links in the kind of effort the robot states."""
        if self.robot.drive.kind == 'gravity_compensated_torque':
            return self.inertial
        return self.gravity + self.inertial

    def others(self, j: int) -> FloatArray:
        """Return columns (N, k) of dry and viscous friction, rotors and an offset of a joint."""
        coupling = self.robot.drive.coupling
        turns = np.eye(self.robot.n) if coupling is None else np.asarray(coupling)
        motors = turns[turns[:, j] != 0.0]
        speed = self.rows.velocity @ motors.T
        return np.hstack([np.tanh(speed / RAMP), speed, self.rows.acceleration @ motors.T,
                          np.ones((len(self.rows), 1))])


def effort_findings(robot: RobotModel, source: str, rows: Excerpt) -> list[Finding]:
    """Return findings about the efforts of an excerpt: order, gravity, scale, sign."""
    if len(rows) < 3:
        return []
    data = Data.of(robot, rows)
    fit = fitted(data)
    friction = _free_friction(data, fit)
    found = _order(data, source) or _gravity(data, source) or [
        *_scales(data, fit, source), *_signs(data, fit, friction, source)]
    drives = np.any((friction.friction < -DRIVING) & (friction.deviations < -DEVIATIONS))
    if not found or drives:
        return found
    return another_motion(robot, source, thinned(rows, ROWS)) or found


def fitted(data: Data) -> Fit:
    """Return the fit of every joint by itself."""
    n = data.robot.n
    fit = Fit(*(np.zeros(n) for _ in range(5)))
    for j in range(n):
        torque, links, others = data.rows.torque[:, j], data.expected[:, j], data.others(j)
        without, _, _ = _solved(others, torque)
        columns = np.column_stack([links, others])
        left, values, covariance = _solved(columns, torque)
        fit.scale[j] = values[0]
        fit.deviation[j] = float(np.sqrt(covariance[0, 0]))
        before = _rms(without)
        if before > ROUNDING * _rms(torque):
            fit.explained[j] = 1.0 - (_rms(left) / before)**2
        fit.friction[j], fit.deviations[j] = _dissipated(data, j, values, covariance)
    return fit


def _dissipated(
    data: Data, j: int, values: FloatArray, covariance: FloatArray
) -> tuple[float, float]:
    """Return the share of its power that friction of a joint takes, and its deviations."""
    speed, torque = data.rows.velocity[:, j], data.rows.torque[:, j]
    if _rms(speed) < SPEED:
        return 0.0, 0.0
    columns = np.column_stack([np.zeros(len(speed)), data.others(j)])
    friction = (columns.shape[1] - 2) // 3 * 2
    columns[:, 1 + friction:] = 0.0
    power = np.mean(columns * speed[:, None], axis=0)
    deviation = float(np.sqrt(max(power @ covariance @ power, 0.0)))
    mean = float(power @ values)
    return (mean / max(_rms(torque) * _rms(speed), 1e-300),
            mean / deviation if deviation > 0.0 else 0.0)


def _solved(columns: FloatArray, torque: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return residuals (N,), coefficients (k,) and their covariance of least squares."""
    from scipy import linalg

    sizes = np.linalg.norm(columns, axis=0)
    sizes[sizes < 1e-9 * max(sizes.max(), 1e-300)] = np.inf
    # by QR iteration: divide and conquer fails on some finite matrices of low rank
    left, spread, right = linalg.svd(columns / sizes, full_matrices=False, lapack_driver='gesvd')
    kept = spread > 1e-4 * max(spread.max(), 1e-300)
    inverse = (right[kept].T / spread[kept]) / sizes[:, None]
    values = inverse @ (left[:, kept].T @ torque)
    residual = torque - columns @ values
    freedom = max(len(torque) / CORRELATED - int(kept.sum()), 1.0)
    variance = float(residual @ residual) / CORRELATED / freedom * CORRELATED
    return residual, values, inverse @ inverse.T * variance


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def _names(robot: RobotModel, joints: NDArray[np.int64] | list[int]) -> tuple[str, ...]:
    """Return the names of joints; none where all are meant."""
    return () if len(joints) == robot.n else tuple(robot.joints[j] for j in joints)


def _order(data: Data, source: str) -> list[Finding]:
    """Return whether efforts belong to other joints than their columns say."""
    from scipy.optimize import linear_sum_assignment

    robot, n = data.robot, data.robot.n
    moving = np.flatnonzero([_rms(v) > SPEED for v in data.rows.velocity.T])
    if len(moving) < 2 or len(data.rows) < 10 * n:
        return []
    left = np.zeros((len(moving), len(moving)))
    for b, owner in enumerate(moving):
        columns = np.column_stack([data.expected[:, owner], data.others(int(owner))])
        for a, joint in enumerate(moving):
            torque = data.rows.torque[:, joint]
            left[a, b] = np.log(max(_rms(_solved(columns, torque)[0]), 1e-12) / max(
                float(np.std(torque)), 1e-12))
    rows, owners = linear_sum_assignment(left)
    wrong = np.flatnonzero(rows != owners)
    gain = left[wrong, wrong] - left[wrong, owners[wrong]]
    if not len(wrong) or not np.mean(gain) > -np.log(PERMUTED) or np.min(gain) < 0.0 or np.max(
            left[wrong, owners[wrong]]) > np.log(PERMUTED):
        return []
    pairs = ', '.join(f'{robot.joints[moving[a]]} to {robot.joints[moving[owners[a]]]}'
                      for a in wrong)
    shares = ', '.join(f'{np.exp(left[a, owners[a]]):.0%} instead of {np.exp(left[a, a]):.0%}'
                       for a in wrong)
    return [Finding(
        'joint_order', source, tuple(robot.joints[moving[a]] for a in wrong), Severity.REFUSE,
        f'efforts look permuted: they follow the motion of other joints ({pairs}) and leave '
        f'{shares} of their size', 'put the effort columns, or the joint names, in order')]


def _gravity(data: Data, source: str) -> list[Finding]:
    """Return whether efforts hold gravity though they should not, or hold none."""
    robot = data.robot
    compensated = robot.drive.kind == 'gravity_compensated_torque'
    scale, share, bare = np.zeros(robot.n), np.zeros(robot.n), np.ones(robot.n)
    heavy = []
    for j in range(robot.n):
        torque, others = data.rows.torque[:, j], np.column_stack(
            [data.inertial[:, j], data.others(j)])
        size, weight = float(np.std(torque)), float(np.std(data.gravity[:, j]))
        if weight < LOADED * size or weight < 1e-9:
            continue
        without = _rms(_solved(others, torque)[0])
        left, values, covariance = _solved(np.column_stack([data.gravity[:, j], others]), torque)
        if np.sqrt(covariance[0, 0]) > UNCERTAIN:
            continue
        heavy.append(j)
        scale[j], share[j] = values[0], 1.0 - (_rms(left) / max(without, 1e-300)) ** 2
        bare[j] = without / max(size, 1e-300)
    judged = np.array(heavy, dtype=int)
    moves = any(_rms(v) > SPEED for v in data.rows.velocity.T)
    if not len(judged) or len(data.rows) < 40:
        return []
    if compensated:
        full = judged[(share[judged] > CONVINCING) & (np.abs(np.log(np.abs(
            scale[judged]) + 1e-12)) < np.log(NEAR)) & (scale[judged] > 0.0)]
        if len(full) < max(1, len(judged) // 2 + 1):
            return []
        return [Finding('gravity', source, _names(robot, full), Severity.REFUSE,
                        f'efforts hold gravity, {", ".join(f"{s:.2g}" for s in scale[full])} '
                        'times that of the nominal links: they look like torque',
                        'state effort_kind: torque in the robot YAML')]
    none = judged[(np.abs(scale[judged]) < NO_GRAVITY) & (bare[judged] < 0.5)]
    if not moves or len(none) < len(judged) or np.any(share[judged] > 1.0 - CONVINCING):
        return []
    return [Finding('gravity', source, _names(robot, none), Severity.REFUSE,
                    f'friction and inertia explain the efforts to {1.0 - bare[none].max():.0%}, '
                    f'and they hold {", ".join(f"{s:.2g}" for s in scale[none])} of the gravity '
                    'of the nominal links: they look gravity-compensated',
                    'state effort_kind: gravity_compensated_torque in the robot YAML')]


def _judged(data: Data, fit: Fit) -> NDArray[np.bool_]:
    """Return the joints (n,) whose nominal dynamics tell scale and sign of their efforts."""
    limits = data.robot.limits.effort
    change = np.std(data.expected, axis=0)
    moves = np.sqrt(np.mean(data.rows.velocity**2, axis=0)) > SPEED
    heavy = change > CHANGING * _capacity(data.robot)
    large = ~(np.isfinite(limits) & (limits > 0.0)) | (change > OF_LIMIT * limits)
    return np.asarray((fit.explained > DECISIVE) & heavy & moves & large)


def _capacity(robot: RobotModel) -> FloatArray:
    """Return the gravity (n,) [N m] of the nominal links in any pose, root mean square."""
    generator = np.random.default_rng(0)
    lower, upper = (np.where(np.isfinite(x), x, side * np.pi) for x, side in (
        (robot.limits.lower, -1.0), (robot.limits.upper, 1.0)))
    poses = generator.uniform(lower, upper, (POSES, robot.n))
    return np.asarray(np.sqrt(np.mean(rigid_body.gravity_effort(robot, poses) ** 2, axis=0)))


def _scales(data: Data, fit: Fit, source: str) -> list[Finding]:
    """Return whether efforts have another unit than the robot states."""
    robot, judged = data.robot, _judged(data, fit)
    size = np.abs(fit.scale)
    above = judged & (size - 3.0 * fit.deviation > WRONG_INERTIALS)
    below = judged & (size + 3.0 * fit.deviation < 1.0 / WRONG_INERTIALS)
    resting, along = _at_rest(data)
    other = (np.abs(along) > OTHER_UNITS) | (np.abs(along) < 1.0 / OTHER_UNITS)
    if resting.any() and np.all(other[resting]):
        size = np.where(resting, np.abs(along), size)
        judged, above, below = judged | resting, above | (resting & (size > 1.0)), below | (
            resting & (size < 1.0))
    far = above | below
    beyond = _beyond_limits(data) & ~(judged & ~far)
    wrong = np.flatnonzero(far | beyond)
    if not len(wrong):
        return []
    typical = float(np.median(size[judged])) if judged.any() else 1.0
    several = judged.sum() > 1 and not 1.0 / OTHER_UNITS < typical < OTHER_UNITS
    alone = np.any((size[far] > ALONE) | (size[far] < 1.0 / ALONE))
    severe = bool(beyond.any() or several or alone)
    peaks = ', '.join(f'{p:.3g}' for p in np.abs(data.rows.torque[:, wrong]).max(axis=0))
    limits = ', '.join(f'{x:.3g}' for x in robot.limits.effort[wrong])
    evidence = f'largest {peaks} (limits {limits}) N m'
    if far.any():
        scales = ', '.join(f'{s:.3g}' for s in size[far])
        evidence += f', {scales} times those of the nominal links'
    meaning, remedy = _unit(robot, size, far)
    return [Finding('effort_scale', source, _names(robot, wrong),
                    Severity.REFUSE if severe else Severity.WARN,
                    f'{evidence}: look like {meaning}', remedy)]


def _at_rest(data: Data) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return the heavy joints (n,) that hardly move, and their effort over nominal gravity."""
    robot = data.robot
    weight = np.sqrt(np.mean(data.gravity**2, axis=0))
    along = np.sum(data.rows.torque * data.gravity, axis=0) / np.maximum(
        np.sum(data.gravity**2, axis=0), 1e-300)
    if robot.drive.kind == 'gravity_compensated_torque':
        return np.zeros(robot.n, dtype=bool), along
    capacity = _capacity(robot)
    heavy = (weight > WEIGHTY * capacity) & (capacity > OF_LARGEST * capacity.max(initial=0.0))
    limits = robot.limits.effort
    heavy &= ~(np.isfinite(limits) & (limits > 0.0) & (weight < OF_LIMIT * limits))
    still = np.std(data.gravity, axis=0) < 0.02 * weight
    return np.asarray(heavy & still), along


def _beyond_limits(data: Data) -> NDArray[np.bool_]:
    limits = data.robot.limits.effort
    with np.errstate(invalid='ignore'):
        return np.asarray((limits > 0.0) & (
            np.abs(data.rows.torque).max(axis=0) > BEYOND_LIMITS * limits))


def _unit(robot: RobotModel, size: FloatArray, far: NDArray[np.bool_]) -> tuple[str, str]:
    """Return the likely unit of efforts of ``size`` (n,) over nominal, and the remedy."""
    typical = float(np.median(size[far])) if far.any() else 1e3
    ratios, gains = robot.drive.gear_ratios, robot.drive.gains
    if typical > 1.0:
        return _small_unit(robot, size, far)
    if gains is not None and robot.drive.kind != 'current' and _near(size * np.abs(gains), far):
        return ('currents [A], by the drive gains of the robot',
                'state effort_kind: current in the robot YAML')
    if ratios is not None and _near(size * np.abs(ratios), far):
        return ('torque on the motor side of the gear, by the gear ratios of the robot',
                'multiply efforts by the gear ratios')
    if 2e-4 < typical < 5e-3:
        return 'kN m', 'multiply efforts by 1000, so that they are N m (N)'
    if robot.drive.kind == 'current':
        return ('another unit than A', 'convert efforts to A, or correct drive_gains in the '
                'robot YAML')
    return ('currents [A], or torque on the motor side of the gear',
            'state effort_kind: current and drive_gains in the robot YAML, or multiply efforts by '
            'the gear ratios')


def _small_unit(
    robot: RobotModel, size: FloatArray, far: NDArray[np.bool_]
) -> tuple[str, str]:
    """Return the likely unit and the remedy of efforts that are too large in numbers."""
    typical = float(np.median(size[far])) if far.any() else 1e3
    gains, current = robot.drive.gains, robot.drive.kind == 'current'
    amperes = 'divide efforts by 1000, so that they are A'
    if gains is not None and not current and _near(size * np.abs(gains) / 1e3, far):
        return ('currents in mA, by the drive gains of the robot',
                f'{amperes}, and state effort_kind: current in the robot YAML')
    if 200.0 < typical < 5000.0 or not far.any():
        return ('mA', amperes) if current else (
            'mN m', 'divide efforts by 1000, so that they are N m (N)')
    if current:
        return ('another unit than A', 'convert efforts to A, or correct drive_gains in the '
                'robot YAML')
    if typical < 200.0:
        return ('currents in mA, or another unit',
                f'if they are currents, {amperes}, and state effort_kind: current and drive_gains '
                'in the robot YAML; else convert efforts to N m (N) on the joint side')
    return 'another unit', 'convert efforts to N m (N) on the joint side'


def _near(scales: FloatArray, judged: NDArray[np.bool_]) -> bool:
    return bool(np.all(np.abs(np.log(scales[judged])) < np.log(1.0 + NEAR)))


def _signs(data: Data, fit: Fit, friction: Fit, source: str) -> list[Finding]:
    """Return whether efforts have the wrong sign: friction drives, gravity points up."""
    robot = data.robot
    driving = (friction.friction < -DRIVING) & (friction.deviations < -DEVIATIONS)
    braking = (friction.friction > DRIVING) & (friction.deviations > DEVIATIONS)
    judged = _judged(data, fit)
    against = judged & (fit.scale + 3.0 * fit.deviation < 0.0)
    wrong = (driving & ~(judged & (fit.scale > 0.0))) | (
        against & ~braking & ((fit.explained > 0.9) | driving))
    joints = np.flatnonzero(wrong)
    if not len(joints):
        return _held_up(data, source)
    shares = ', '.join(f'{100.0 * x:.0f}' for x in friction.friction[joints])
    nominal = ''
    if judged[joints].any():
        scales = ', '.join(f'{x:.2g}' for x in fit.scale[joints[judged[joints]]])
        nominal = f' and efforts are {scales} times those of the nominal links'
    return [Finding('effort_sign', source, _names(robot, joints), Severity.REFUSE,
                    f'friction takes {shares} % of effort times speed (negative: it drives)'
                    f'{nominal}: they look negated',
                    'change the sign of the efforts, so that they point along the axis')]


def _held_up(data: Data, source: str) -> list[Finding]:
    """Return whether a robot at rest is held the wrong way."""
    resting, along = _at_rest(data)
    still = np.flatnonzero(resting)
    if not len(still) or np.any(along[still] > -WEIGHTY):
        return []
    scales = ', '.join(f'{x:.2g}' for x in along[still])
    return [Finding('effort_sign', source, _names(data.robot, still), Severity.REFUSE,
                    f'efforts at rest are {scales} times the gravity of the nominal links: they '
                    'look negated', 'change the sign of the efforts, so that they point along the '
                    'axis')]


def _free_friction(data: Data, nominal: Fit) -> Fit:
    """Return the fit with all parameters of the links free, where the rows allow it.

    Friction then does not depend on nominal inertials.
    """
    n, rows = data.robot.n, data.rows
    if len(rows) < 30 * n + 30:
        return nominal
    fit = replace(nominal, friction=nominal.friction.copy(), deviations=nominal.deviations.copy())
    columns = rigid_body.regressor(
        data.robot, (rows.position, rows.velocity, rows.acceleration))
    for j in range(n):
        if _rms(rows.velocity[:, j]) < SPEED:
            continue
        links, others = columns[j].T, data.others(j)
        used = links[:, np.any(links != 0.0, axis=0)]
        _, values, covariance = _solved(np.hstack([used, others]), rows.torque[:, j])
        own = slice(used.shape[1], None)
        padded = np.concatenate([[0.0], values[own]])
        spread = np.zeros((len(padded), len(padded)))
        spread[1:, 1:] = covariance[own, own]
        fit.friction[j], fit.deviations[j] = _dissipated(data, j, padded, spread)
    return fit


def unexplained(robot: RobotModel, rows: Excerpt) -> float:
    """Return the share of the efforts that nominal links and friction leave, NaN if undecided.

    Geometric mean over all joints, which must all move.
    """
    if len(rows) < LEAST_ROWS or np.any(
            np.sqrt(np.mean(rows.velocity**2, axis=0)) < SPEED) or not robot.nominal.any():
        return float('nan')
    return float(np.exp(np.mean(_left(Data.of(robot, rows))[0])))


def another_motion(robot: RobotModel, source: str, rows: Excerpt) -> list[Finding]:
    """Return another zero, unit or order of joints by which the efforts are nominal."""
    own = unexplained(robot, rows)
    if not own > 0.0:
        return []
    fall = max(BETTER, SCATTER / np.sqrt(len(rows) / CORRELATED))
    best: tuple[float, tuple[str, tuple[int, ...], str, str]] | None = None
    for what, rows_then in _alternatives(robot, rows):
        other = Data.of(robot, rows_then)
        left, scale = _left(other)
        share = float(np.exp(np.mean(left)))
        loaded = np.std(other.expected, axis=0) > LOADED * np.std(other.rows.torque, axis=0)
        near = np.abs(np.log(np.maximum(scale[loaded], 1e-12))) < np.log(NEAR)
        if loaded.any() and near.all() and share < MOST_LEFT and np.log(own / share) > fall and (
                best is None or share < best[0]):
            best = share, what
    if best is None:
        return []
    share, (kind, joints, text, remedy) = best
    few = Data.of(robot, thinned(rows, PAYLOAD_ROWS))
    carrying = _left_with_payload(few, joints)
    evidence = (f'{text}: nominal links and friction then leave {share:.1%} of the efforts, '
                f'instead of {own:.1%} as recorded')
    if np.log(carrying / share) > fall:
        return [Finding(kind, source, _names(robot, list(joints)), Severity.REFUSE, evidence,
                        remedy)]
    return [Finding(kind, source, _names(robot, list(joints)), Severity.WARN,
                    f'{evidence}; a payload that is not in the URDF would leave {carrying:.1%}',
                    f'{remedy}, unless there is a payload')]


def _left(data: Data) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm (n,) of the share of efforts that links and friction leave; scales.

    Links count with positive scale only; without an offset, which would take the place of gravity
    in small motions.
    """
    left, scale = np.zeros(data.robot.n), np.zeros(data.robot.n)
    for j in range(data.robot.n):
        torque = data.rows.torque[:, j]
        columns = np.column_stack([data.expected[:, j], data.others(j)[:, :-1]])
        sizes = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        values = np.linalg.lstsq(columns / sizes, torque, rcond=1e-6)[0]
        if values[0] < 0.0:
            columns[:, 0] = 0.0
            values = np.linalg.lstsq(columns / sizes, torque, rcond=1e-6)[0]
        rest = torque - columns @ (values / sizes)
        left[j] = np.log(max(_rms(rest), 1e-12) / max(float(np.std(torque)), 1e-12))
        scale[j] = values[0] / sizes[0]
    return left, scale


def _left_with_payload(data: Data, joints: tuple[int, ...]) -> float:
    """Return the share of the efforts left when the last links, or ``joints``, carry anything.

    A payload at the side looks like another zero of the joint that turns it. It is made of masses
    at POINTS, the same for all joints, each weighted by its effort; geometric mean over them.
    """
    from scipy.optimize import nnls

    robot, rows, n = data.robot, data.rows, data.robot.n
    if robot.drive.kind == 'gravity_compensated_torque':
        robot = robot.with_gravity(np.zeros(3))
    last = {*np.flatnonzero(robot.carried.sum(axis=1) == 1).tolist(), *joints}
    bodies = np.array(sorted(last)) if len(last) < n else np.arange(n)
    chosen = (10 * bodies[:, None] + np.arange(10)).ravel()
    motion = (rows.position, rows.velocity, rows.acceleration)
    links = rigid_body.regressor(robot, motion, chosen).reshape(n, len(bodies), 10, -1)
    masses = np.einsum('jbpt,mp->jtbm', links, POINTS).reshape(n, len(rows), -1)
    sizes = np.maximum(np.std(rows.torque, axis=0), 1e-12)
    torque = (rows.torque / sizes).T
    blocks = []
    for j in range(n):
        own = np.zeros((n, len(rows), data.others(j).shape[1]))
        own[j] = np.column_stack([data.expected[:, j], data.others(j)[:, :-1]]) / sizes[j]
        blocks += [own, -own[:, :, 1:]]
    columns = np.concatenate([masses / sizes[:, None, None], *blocks], axis=2).reshape(
        torque.size, -1)
    norms = np.maximum(np.linalg.norm(columns, axis=0), 1e-12)
    values, _ = nnls(columns / norms, torque.ravel(), maxiter=100 * columns.shape[1])
    rest = torque - (columns @ (values / norms)).reshape(torque.shape)
    return float(np.exp(np.mean(np.log(np.maximum(np.sqrt(np.mean(rest**2, axis=1)), 1e-12)))))


def _points() -> FloatArray:
    """Return the standard parameters (27, 10) of masses of 1 kg around a frame, within 0.3 m."""
    places = np.array(list(product((-0.3, 0.0, 0.3), repeat=3)))
    inertia = np.sum(places**2, axis=1)[:, None, None] * np.eye(3) - np.einsum(
        'ma,mb->mab', places, places)
    entries = [inertia[:, a, b] for a, b in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
    return np.column_stack([np.ones(len(places)), places, *entries])


#: masses of which a payload is made up
POINTS = _points()


def _alternatives(
    robot: RobotModel, rows: Excerpt
) -> Iterator[tuple[tuple[str, tuple[int, ...], str, str], Excerpt]]:
    """Yield (kind, joints, description, remedy), and the rows as they would then be."""
    revolute = np.flatnonzero(robot.types == REVOLUTE)
    factor = np.ones(robot.n)
    factor[revolute] = np.pi / 180.0
    yield ('position_unit', tuple(revolute.tolist()), 'positions look like degrees',
           'convert positions to rad'), replace(
               rows, position=rows.position * factor, velocity=rows.velocity * factor,
               acceleration=rows.acceleration * factor)
    for j in revolute.tolist():
        for quarter, name in ((1, '-pi/2'), (2, 'pi'), (3, '+pi/2')):
            position = rows.position.copy()
            position[:, j] += 0.5 * np.pi * quarter
            yield ('position_offset', (j,), f'the zero looks {name} off', f'subtract {name} from '
                   'its positions, or correct the zero in the URDF'), replace(
                       rows, position=position)
    for a in range(robot.n):
        for b in range(a):
            order = np.arange(robot.n)
            order[[a, b]] = b, a
            yield ('joint_order', (b, a), 'the joints look swapped', 'correct their names or the '
                   'order of the columns'), replace(
                       rows, position=rows.position[:, order], velocity=rows.velocity[:, order],
                       acceleration=rows.acceleration[:, order], torque=rows.torque[:, order])
