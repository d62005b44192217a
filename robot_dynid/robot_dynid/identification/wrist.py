"""Tool, bias and mounting of a wrist force-torque sensor, from its readings in a motion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import number, percent
from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.wrist import SIX, WristSensor, with_rest, with_sensor
from robot_dynid.effects.links import AttachedBody
from robot_dynid.errors import DataError, UsageError, reported
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.irls import LOW_WEIGHT, MEDIAN_DEVIATION, NORMS, SQUARES, Norm
from robot_dynid.estimation.least_squares import batch_covariance, joint_weights, solve
from robot_dynid.estimation.payload import PayloadEstimate, PayloadStatus, fit_payload
from robot_dynid.identification.payload import (
    Equations,
    Match,
    PayloadResult,
    moderate_effort,
    reduce_equations,
    settings_for,
    warnings_of,
)
from robot_dynid.robot.inertia import PARAMETERS, rotation_about, skew
from robot_dynid.robot.model import STANDARD_GRAVITY, RobotModel
from robot_dynid.signals.prepare import prepare, repair
from robot_dynid.types import WRENCH_COMPONENTS, FloatArray, Progress, RawLog

#: nuisance parameters: small rotation of the mounting [rad], change of the bias [N, N m], and the
#: horizontal pull of a hose or cable at the tool [N] with its stiffness [N/m], in the base frame
NAMES = (*(f'rotation_{axis}' for axis in 'xyz'), *(f'bias_{c}' for c in WRENCH_COMPONENTS),
         'pull_1', 'pull_2', 'stiffness')
TURN, BIAS, PULL, TOOL = slice(0, 3), slice(3, 9), slice(9, 11), len(NAMES)
#: matrices S (3, 3, 3) with S[i] @ x = cross(axis i, x)
TURNS = np.array([skew(axis) for axis in np.eye(3)])
#: directions in which gravity changes less than this share of its largest change do not orient
#: the sensor at the start of the search
SHOWN_SHARE = 0.1
#: least travel of gravity [share of g] along a direction of the sensor; a pose and its opposite
#: move it by two
LEAST_TRAVEL = 0.5
#: least change of the direction of gravity [share of g] in two directions, for any mounting
LEAST_CHANGE = 0.02
#: rounds of Gauss-Newton steps with new weights; change of the rotation [rad] at which they end
ROUNDS, SETTLED = 40, 1e-6
#: farthest centre of mass of a tool [m]; N mm are 1000 times, kgf 9.81 times as far
FARTHEST = 1.0
#: units of force in N, recognised by a weighed tool, and their relative tolerance
UNITS, UNIT_TOLERANCE = {'kgf': 9.80665, 'lbf': 4.44822, 'kN': 1e3, 'mN': 1e-3}, 0.1
#: pull that is significant [deviations], and reported [share of the weight]
SIGNIFICANT, REPORTED_PULL = 2.0, 0.01
#: share of samples with less than half weight that is reported
REPORTED_OUTLIERS = 0.02
#: directions within this cosine of an axis are named after it
NEARLY_AXIS = 0.95


@dataclass(frozen=True, eq=False)
class WristResult(PayloadResult):
    """A tool with its ``sensor``: the estimate is that of the tool in the frame of ``link``.

    ``bias_width`` (6,) [N, N m] and ``rotation_width`` (3,) [rad], about the axes of the link, are
    half-widths of 95 % intervals. ``outliers`` is the share of samples with less than half weight.
    """

    sensor: WristSensor
    bias_width: FloatArray
    rotation_width: FloatArray
    outliers: float


@reported
@one_blas_thread()
def identify_wrist_sensor(
    robot: RobotModel, logs: Sequence[RawLog], link: str = '', known_mass: float | None = None,
    progress: Progress | None = None,
) -> WristResult:
    """Identify the tool behind a force-torque sensor, the bias of the sensor and its mounting.

    ``logs`` are recordings of ``robot`` with a ``wrench_sensor``; ``link`` is the link at whose
    origin it measures, by default the frame of the readings. A ``known_mass`` [kg] checks the
    scale of the sensor. Raises UsageError (wrong use), DataError (the data does not allow it).
    """
    if not logs:
        raise UsageError('no recording of the sensor')
    link = link or _frame(robot, logs)
    body = AttachedBody.on(with_sensor(robot, link), f'{link} {WRENCH_COMPONENTS[-1]}')
    report = progress or (lambda *_: None)
    first = rigid_body.link_poses(body.robot, with_rest(robot.motion(logs[0].position)[0]))
    centre, readings = np.nanmean(first.origins[:, -1], axis=0), []
    for i, log in enumerate(logs):
        readings.append(sensor_equations(robot, body, log, centre))
        report(f'prepared {log.source}', 0.8 * (i + 1) / len(logs))
    report('fitting', 0.8)
    _require_units(readings, link)
    start = WristSensor(robot.name, robot.hash(), link, np.zeros(10), np.zeros(SIX), np.eye(3), 1)
    sensor, information, outliers, _ = min(
        (refine_mounting(one, readings) for one in _starts(start, readings)),
        key=lambda fit: fit[3])
    tool = fit_payload(information, moderate_effort(body)[-SIX:])
    weights = joint_weights(information)
    solution = solve(information, weights)
    std = np.sqrt(np.diag(batch_covariance(information, weights, solution)[0]))
    width = tool.margins[0] * std
    excess = np.sum(solution.values[PULL] ** 2 - (SIGNIFICANT * std[PULL]) ** 2)
    pull, gravity = float(np.sqrt(max(0.0, excess))), float(np.linalg.norm(robot.gravity))
    tool = _without_hidden(_with_pull(tool, pull / gravity))
    sensor = replace(sensor, parameters=tool.parameters)
    return WristResult(
        tool, robot, link, information.samples, (), (
            *warnings_of(readings), *_missing(tool, robot.name, readings),
            *_warnings(tool, tool.mass * gravity, known_mass, pull, outliers)),
        sensor, np.abs(sensor.turn) @ width[BIAS], width[TURN], outliers)


def _frame(robot: RobotModel, logs: Sequence[RawLog]) -> str:
    """Return the link of the readings; raises DataError if it is none of the robot."""
    frames = list(dict.fromkeys(log.wrench_frame for log in logs))
    links = [link.name for link in robot.tree.links]
    if len(frames) > 1 or frames[0] not in links:
        raise DataError(f'the frame of the wrenches, {", ".join(frames) or "not stated"}, is no '
                        'link that moves: name the link at whose origin the sensor measures with '
                        f'--link: {", ".join(links)}')
    return frames[0]


def sensor_equations(
    robot: RobotModel, body: AttachedBody, log: RawLog, centre: FloatArray
) -> Equations:
    """Return the readings of a recording with the wrenches of a hose and of the tool.

    The force of the hose is linear in the way (3,) [m] from ``centre``, near which it is the pull.
    Raises DataError for a wrench that is missing or constant.
    """
    if log.wrench is None or not np.isfinite(log.wrench).all(axis=1).any():
        raise DataError(f'{log.source}: no wrench at the time of any position: read it with the '
                        'wrench_sensor of the robot, or correct its stamps')
    for name, column in zip(WRENCH_COMPONENTS, log.wrench.T, strict=True):
        if np.ptp(column[np.isfinite(column)]) == 0.0:
            raise DataError(f'{log.source}: {name} of the wrench is constant: the sensor or its '
                            'driver does not measure; restart them')
    tree = body.robot
    rates = () if log.velocity is None else (log.velocity,)
    position, *velocity = map(with_rest, robot.motion(log.position, *rates))
    arm = np.ones((len(log.time), tree.n - SIX))  # efforts of the arm are not used
    whole = RawLog(log.source, tree.joints, log.time, position, velocity[0] if velocity else None,
                   np.hstack([arm, log.wrench]), part=log.part, began=log.began, epoch=log.epoch)
    settings = settings_for(None, whole)
    repaired = repair(tree, whole, settings.rate)
    samples = prepare(tree, repaired, settings)
    assert samples.effort is not None and samples.measured is not None
    poses = rigid_body.link_poses(tree, samples.moved.position)
    across = np.linalg.svd(robot.gravity[None])[2][1:]  # horizontal directions in the base
    hose = np.concatenate([np.tile(across, (len(samples), 1, 1)),
                           centre - poses.origins[:, -1:]], axis=1)
    pull = np.pad(np.einsum('nba,nkb->akn', poses.rotations[:, -1], hose),
                  ((0, 3), (0, 0), (0, 0)))
    columns = np.concatenate([pull, -body.columns(samples.moved)[-SIX:]], axis=1)
    return Equations(samples, columns, samples.effort[:, -SIX:],
                     samples.measured[:, -SIX:], Match(log.source), repaired.notes)


def _without_hidden(tool: PayloadEstimate) -> PayloadEstimate:
    """Return the estimate without moments of inertia that are zero within their intervals.

    At rest they are in no wrench, and slow motion shows less of them than noise.
    """
    moments, widths = np.diag(tool.inertia), tool.margins[0] * np.diag(tool.inertia_std)
    hidden = np.isfinite(moments) & (moments <= widths)
    if not hidden.any():
        return tool
    either = hidden[:, None] | hidden
    names = (f'I{axis}{axis}' for axis, one in zip('xyz', hidden, strict=True) if one)
    return replace(tool, inertia=np.where(either, np.nan, tool.inertia),
                   inertia_std=np.where(either, np.inf, tool.inertia_std),
                   status=PayloadStatus.NOT_EXCITED,
                   not_excited=tuple(dict.fromkeys((*tool.not_excited, *names))))


def _with_pull(tool: PayloadEstimate, mass: float) -> PayloadEstimate:
    """Return the estimate with deviations for a pull [kg] that may be vertical.

    It counts as weight; of a pull of unknown direction the vertical component is 1 / sqrt(2) of
    the horizontal one. The first moments stay, so centre of mass and inertia about it change.
    """
    mass /= np.sqrt(2.0)
    share, lever = mass / max(tool.mass, np.finfo(float).tiny), skew(tool.centre_of_mass)
    return replace(
        tool, mass_std=float(np.hypot(tool.mass_std, mass)),
        centre_of_mass_std=np.hypot(tool.centre_of_mass_std, share * np.abs(tool.centre_of_mass)),
        inertia_std=np.hypot(tool.inertia_std, mass * np.abs(lever @ lever)),
        parameters_std=np.hypot(tool.parameters_std, mass * np.eye(len(PARAMETERS))[0]))


def _gravity(readings: Sequence[Equations]) -> FloatArray:
    """Return the reaction to gravity and acceleration (N, 3) [m/s^2], in the axes of the link."""
    return -np.concatenate([one.columns[:3, TOOL - BIAS.stop].T for one in readings])


def _starts(sensor: WristSensor, readings: Sequence[Equations]) -> list[WristSensor]:
    """Return the mountings to start from: the force is linear in gravity, F = -sign m R g + b.

    The sign is that of the determinant if gravity moves in all directions; if only in two, both
    signs explain the forces, and the mounting closer to that stated is taken. Source: Umeyama 1991
    (rotation from a matrix of rank two).
    """
    gravity, force = _gravity(readings), np.concatenate([one.effort[:, :3] for one in readings])
    centred = gravity - gravity.mean(axis=0)
    sizes = np.linalg.svd(centred, compute_uv=False) / np.sqrt(len(centred))
    if sizes[1] < LEAST_CHANGE * float(np.linalg.norm(STANDARD_GRAVITY)):
        raise DataError('gravity hardly turns in the sensor, or about one axis only, so weight, '
                        'bias and mounting cannot be separated: turn the sensor to poses in all '
                        f'directions: {_design("static-poses", sensor.robot)}')
    matrix = -(np.linalg.pinv(centred, rcond=SHOWN_SHARE) @ (force - force.mean(axis=0))).T
    starts = []
    for sign in (1, -1):
        u, _, vt = np.linalg.svd(sign * matrix)
        rotation = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
        starts.append(replace(sensor, rotation=rotation, sign=sign))
    if sizes[2] < SHOWN_SHARE * sizes[0]:
        return [max(starts, key=lambda one: float(np.trace(one.rotation)))]
    return starts


def refine_mounting(
    sensor: WristSensor, readings: Sequence[Equations]
) -> tuple[WristSensor, Information, float, float]:
    """Return mounting and bias by robust Gauss-Newton steps, see `_turned` for their equations.

    Also the information about them, the share of outliers, and the size of the residuals. Norms
    as those of `RobustLeastSquares`; the weight of a sample is that of all six components.
    """
    weights, size = [np.ones(len(one.samples)) for one in readings], np.inf
    for norm in (SQUARES, *NORMS['tukey']):
        for _ in range(ROUNDS):
            turned = [_turned(sensor, one) for one in readings]
            information = reduce_equations((*NAMES, *PARAMETERS), [
                _weighted(one, np.sqrt(w)) for one, w in zip(turned, weights, strict=True)])
            values = solve(information, joint_weights(information)).values
            weights, size = _weights(turned, values, norm)
            sensor = _moved(sensor, values)
            if values[TOOL] < 0.0:  # the same readings as of a positive mass and the other sign
                sensor = replace(sensor, sign=-sensor.sign)
            elif np.abs(values[TURN]).max() < SETTLED:
                break
    return sensor, information, float((np.concatenate(weights) < LOW_WEIGHT).mean()), size


def _turned(sensor: WristSensor, reading: Equations) -> Equations:
    """Return the equations about a small rotation d, a change of bias b, hose f, parameters p.

    With the rotation R exp(d), readings w in the axes of the link, without bias, are
    w = d x w + b + F f - Y p.
    """
    effort = sensor.without_mounting(reading.effort)
    turn = np.concatenate([np.einsum('sc,cab->abs', -part, TURNS)
                           for part in (effort[:, :3], effort[:, 3:])])
    bias = np.repeat(np.eye(SIX)[:, :, None], len(effort), axis=2)
    return replace(reading, columns=np.concatenate([turn, bias, reading.columns], axis=1),
                   effort=effort, measured=sensor.without_mounting(reading.measured))


def _weighted(reading: Equations, root: FloatArray) -> Equations:
    """Return equations whose samples have the weight ``root`` (N,) squared."""
    return replace(reading, columns=reading.columns * root, effort=reading.effort * root[:, None],
                   measured=reading.measured * root[:, None])


def _weights(
    turned: Sequence[Equations], values: FloatArray, norm: Norm
) -> tuple[list[FloatArray], float]:
    """Return the weights (N,) of the samples, and the sum of the logarithms of the scales.

    The residual of a sample is the root mean square of its components, each in units of its scale.
    """
    errors = [one.effort - np.einsum('ips,p->si', one.columns, values) for one in turned]
    whole = np.abs(np.concatenate(errors))
    scale = np.maximum(np.median(whole, axis=0) / MEDIAN_DEVIATION,
                       np.finfo(float).eps * whole.max(initial=1.0))
    sizes = [np.sqrt(np.mean((error / scale) ** 2, axis=1)) for error in errors]
    return [norm.weight(size) for size in sizes], float(np.sum(np.log(scale)))


def _moved(sensor: WristSensor, values: FloatArray) -> WristSensor:
    """Return the sensor turned and its bias changed by a step (9,) or more."""
    angle = float(np.linalg.norm(values[TURN]))
    turn = np.eye(3) if angle == 0.0 else rotation_about(values[TURN] / angle, min(angle, 1.0))
    return replace(sensor.with_change(values[BIAS]), rotation=sensor.rotation @ turn)


def _design(kind: str, robot: str) -> str:
    """Return the command that designs a motion."""
    return f'robot-dynid design {robot} --type {kind} --out {kind.replace("-", "_")}.yaml'


def _missing(tool: PayloadEstimate, robot: str, readings: Sequence[Equations]) -> Iterator[str]:
    """Yield the poses and the motion that are missing, with the commands that design them."""
    gravity = _gravity(readings)
    up = gravity / np.linalg.norm(gravity, axis=1, keepdims=True)
    lacking = []
    for direction in np.linalg.svd(up - up.mean(axis=0), full_matrices=False)[2][::-1]:
        axis = int(np.argmax(np.abs(direction)))
        direction *= np.sign(direction[axis])
        high, low = np.percentile(up @ direction, (99.0, 1.0))
        if high - low < LEAST_TRAVEL:
            name = f'the {"xyz"[axis]} axis' if direction[axis] > NEARLY_AXIS else \
                f'the direction ({", ".join(f"{value:.2f}" for value in direction)})'
            angles = np.degrees(np.arccos(np.clip((high, low), -1.0, 1.0)))
            lacking.append(f'{name} up and down (it was {angles[0]:.0f}° to {angles[1]:.0f}° from '
                           'up)')
    if lacking:
        yield f'missing poses: {"; ".join(lacking)}: {_design("static-poses", robot)}'
    if tool.not_excited:
        yield f'a motion that shows the inertia: {_design("fourier", robot)}'


def _require_units(readings: Sequence[Equations], link: str) -> None:
    """Raise DataError if torque is out of proportion to force: T = c x F + constant."""
    force, torque = (np.concatenate([one.effort[:, part] for one in readings])
                     for part in (slice(0, 3), slice(3, 6)))
    levers = np.einsum('sc,cab->sab', force.mean(axis=0) - force, TURNS).reshape(-1, 3)
    centre = np.linalg.lstsq(levers, (torque - torque.mean(axis=0)).ravel(), rcond=None)[0]
    if (reach := float(np.linalg.norm(centre))) > FARTHEST:
        raise DataError(f'the centre of mass would be {number(reach, 2)} m from {link}: the '
                        'wrench must be in N and N m (torque in N mm makes it 1000 times, force '
                        'in kgf 9.81 times as far)')


def _warnings(
    tool: PayloadEstimate, weight: float, known_mass: float | None, pull: float, outliers: float
) -> Iterator[str]:
    """Yield warnings about scale, hose and contacts; raises DataError for another unit."""
    if known_mass is not None:
        for unit, newtons in UNITS.items():
            if abs(known_mass - newtons * tool.mass) < UNIT_TOLERANCE * newtons * tool.mass:
                raise DataError(f'the tool would have {number(tool.mass)} kg, and was weighed at '
                                f'{number(known_mass)} kg: forces look like {unit}; convert them '
                                f'to N (times {newtons:g}), and torques to N m')
        if abs(known_mass - tool.mass) > tool.margins[0] * tool.mass_std:
            yield (f'the tool was weighed at {number(known_mass)} kg: the scale of the sensor is '
                   f'wrong by {percent(tool.mass / known_mass - 1.0)} %')
    if pull > REPORTED_PULL * weight:
        yield (f'a hose or cable pulls at the tool with {number(pull, 2)} N horizontally; what it '
               'pulls vertically counts as weight: detach it, or lead it along the arm')
    if outliers > REPORTED_OUTLIERS:
        yield (f'{percent(outliers)} % of the samples contradict the rest and have less than half '
               'weight: did the tool touch something?')
