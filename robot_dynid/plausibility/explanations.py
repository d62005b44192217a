"""The table of explanations: what a recording, or its description, may be in truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.plausibility.change import CHANNELS, Change
from robot_dynid.plausibility.excerpt import Excerpt
from robot_dynid.plausibility.finding import Severity
from robot_dynid.plausibility.score import Explained, rms
from robot_dynid.robot.model import PRISMATIC, REVOLUTE, STANDARD_GRAVITY, RobotModel
from robot_dynid.types import FloatArray

DEGREES = 180.0 / np.pi
#: units of stamps [s], and their names
TIMES = {'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9, 'minutes': 60.0}
#: a clock that is off by less than the first share goes unsaid, from the second on it is refused
CLOCK, WRONG_CLOCK, SLOWEST = 0.05, 0.1, 0.1
#: factors of stamps that no velocity shows: what they explain as well is not said
CLOCKS = (0.5, 0.8, 1.25, 2.0)
#: slopes of velocities that tell of one clock agree to this share
ONE_CLOCK = 0.05
#: factors of units of velocity over rad/s
SPEEDS = {DEGREES: 'deg/s', 30.0 / np.pi: 'rpm', 0.5 / np.pi: 'turns per second',
          np.pi / 180.0: 'rad/s while positions are degrees', 1e3: 'mm/s or mrad/s'}
#: factors of efforts over N m (A), and the prefix of their unit
UNITS = {1e3: 'm', 1e-3: 'k'}
#: currents are at least so many times smaller than torque in numbers, in mA larger; gains that are
#: right may be off by the next factor
CURRENTS, GAINS = 5.0, 1.3
#: gear ratios where none is stated, and the least; other factors of one effort, or of one position
RATIOS, LEAST_RATIO = (30.0, 50.0, 80.0, 100.0, 130.0, 160.0), 10.0
FACTORS = (2.0, 0.5, 10.0, 0.1, 100.0, 0.01)
POSITIONS = (2.0, 0.5)
#: where fewer joints move, nothing is said of single ones by efforts, nor of the description
FEW = 0.5
#: zeros that are tried [degrees]
ZEROS = (5, -5, 30, -30, 60, -60, 90, -90, 120, -120, 150, -150, 180)
#: lengths of an arm over those of its description
LENGTHS = (0.4, 0.5, 0.6, 0.7, 0.8, 1.25, 1.4, 1.7, 2.0, 2.5)
#: directions that have a name are taken within this angle [degrees]
NAMED = 12.0


@dataclass(frozen=True, eq=False)
class Explanation:
    """A ``change`` that would explain a recording, in words.

    ``kind`` is one of finding.KINDS; ``joints`` are those concerned, ``looks`` goes on after "it
    looks as if" and ``remedy`` is what to do. Nothing is said of what has no ``remedy``. So many
    numbers of the change are ``free``.
    """

    kind: str
    joints: tuple[int, ...]
    looks: str
    remedy: str
    change: Change
    severity: Severity = Severity.REFUSE
    free: int = 0


def explanations(robot: RobotModel, rows: Excerpt, stated: Explained) -> Iterator[Explanation]:
    """Yield every explanation of an excerpt, in the order of the table; ``stated`` is as it is.
    """
    yield from _times(stated)
    yield from _velocities(robot, stated)
    yield from _efforts(robot, stated)
    yield from _positions(robot, stated)
    yield from _orders(robot)
    if stated.known and np.mean(stated.moves) < FEW:
        yield from _gravity(robot, rows, stated)
    elif stated.known:
        yield from _zeros(robot)
        yield from _gravity(robot, rows, stated)
        yield from _description(robot)


def only(n: int, j: int, value: float, other: float = 1.0) -> FloatArray:
    """Return (n,) of ``value`` at joint j and ``other`` elsewhere."""
    found = np.full(n, other)
    found[j] = value
    return found


def _times(stated: Explained) -> Iterator[Explanation]:
    """Stamps in another unit, or of a clock that goes wrong."""
    for name, unit in TIMES.items():
        yield Explanation('time_unit', (), f'stamps look like {name}',
                          f'multiply time by {unit:g}, so that it is in seconds',
                          Change(time=unit))
    slopes = travel_slopes(stated)
    slopes = slopes[np.isfinite(slopes)]
    if not len(slopes):
        for clock in CLOCKS:
            yield Explanation('clock', (), '', '', Change(time=clock), free=1)
        return
    clock = float(np.median(slopes))
    if SLOWEST < clock < 1.0 / SLOWEST and np.ptp(slopes) < ONE_CLOCK * clock and abs(
            np.log(clock)) > CLOCK:
        yield Explanation(
            'clock', (), f'velocity is {clock:.3g} times the change of position in all joints: '
            'the clock of the stamps looks wrong', f'divide time by {clock:.3g}, or '
            'record the stamps of the driver', Change(time=1.0 / clock),
            Severity.REFUSE if abs(np.log(clock)) > WRONG_CLOCK else Severity.WARN, free=1)


def travel_slopes(stated: Explained) -> FloatArray:
    """Return integrated velocity over travel (n,), NaN for joints that do not move."""
    rows = stated.rows
    found = np.full(rows.travel.shape[1], np.nan)
    for j in np.flatnonzero(stated.travels):
        known = np.isfinite(rows.travel[:, j]) & np.isfinite(rows.integrated[:, j])
        travel, summed = rows.travel[known, j], rows.integrated[known, j]
        found[j] = float(travel @ summed) / float(travel @ travel)
    return found


def _velocities(robot: RobotModel, stated: Explained) -> Iterator[Explanation]:
    """Measured velocities with another unit or sign, or that say nothing."""
    n, everyone = robot.n, tuple(range(robot.n))
    if not stated.travels.any():
        return
    for factor, name in SPEEDS.items():
        yield Explanation('velocity', everyone, f'velocities look like {name}',
                          'convert positions to rad and velocities to rad/s (m, m/s)',
                          Change(velocity=np.full(n, 1.0 / factor)))
    if robot.drive.gear_ratios is not None:
        yield Explanation('velocity', everyone, 'velocities look like those of the motors',
                          'divide velocities by the gear ratios',
                          Change(velocity=1.0 / np.abs(robot.drive.gear_ratios)))
    yield Explanation('velocity', everyone, 'velocities look negated',
                      'change the sign of the velocities', Change(velocity=-np.ones(n)))
    slopes = travel_slopes(stated)
    for j in np.flatnonzero(np.isfinite(slopes)).tolist():
        yield Explanation('velocity', (j,), 'velocities look negated',
                          'change the sign of the velocities', Change(velocity=only(n, j, -1.0)))
        factor = float(slopes[j])
        if factor > 0.0 and abs(np.log(factor)) > CLOCK:
            yield Explanation('velocity', (j,), f'velocities look {factor:.3g} times too large',
                              f'divide its velocities by {factor:.3g}, or leave velocities out',
                              Change(velocity=only(n, j, 1.0 / factor)))
        yield Explanation('velocity', (j,), 'velocities say nothing of the motion',
                          'leave velocities out, they are then taken from the position',
                          Change(velocity=only(n, j, np.nan)))


def _positions(robot: RobotModel, stated: Explained) -> Iterator[Explanation]:
    """Positions in another unit, of motors, with another sign."""
    n = robot.n
    turning = np.flatnonzero(robot.types == REVOLUTE)
    sliding = np.flatnonzero(robot.types == PRISMATIC)
    degrees = np.where(robot.types == REVOLUTE, 1.0 / DEGREES, 1.0)
    motors = '; if they are those of the motors, divide them by the gear ratios'
    if len(turning):
        yield Explanation('position_unit', tuple(turning.tolist()), 'positions look like degrees',
                          f'convert positions to rad{motors}', Change(position=degrees))
        yield Explanation('position_unit', tuple(turning.tolist()),
                          'positions and velocities look like degrees',
                          f'convert positions and velocities to rad and rad/s{motors}',
                          Change(position=degrees, velocity=degrees))
    if len(sliding):
        metres = np.where(robot.types == PRISMATIC, 1e-3, 1.0)
        yield Explanation('position_unit', tuple(sliding.tolist()), 'positions look like mm',
                          'convert positions to m', Change(position=metres, velocity=metres))
    ratios = robot.drive.gear_ratios
    slopes = travel_slopes(stated)
    tried = [np.full(n, ratio) for ratio in RATIOS] if ratios is None else [np.asarray(ratios)]
    sides = [(one, None, '') for one in tried] + [(one, 1.0 / one, ' and velocities')
                                                  for one in tried]
    if np.isfinite(slopes).any() and ratios is None:
        slopes = np.where(np.isfinite(slopes), slopes, np.nanmedian(slopes))
        sides = [(1.0 / slopes, None, ''), *sides[len(tried):]]
    for ratio, velocity, also in sides:
        if np.abs(ratio).min() > LEAST_RATIO:
            yield Explanation(
                'position_unit', tuple(range(n)), f'positions{also} look like those of the '
                f'motors, {", ".join(f"{x:.3g}" for x in np.unique(ratio))} times too large',
                f'divide positions{also} by the gear ratios', Change(
                    position=1.0 / ratio, velocity=velocity), free=len(np.unique(ratio)))
    for j in range(n):
        # friction of a joint that slides slowly is of another shape at another speed
        for factor in POSITIONS if robot.types[j] == REVOLUTE else ():
            for both in (True, False):
                yield Explanation(
                    'position_unit', (j,), f'positions{" and velocities" * both} look {factor:g} '
                    'times too large', f'divide its positions{" and velocities" * both} by '
                    f'{factor:g}', Change(position=only(n, j, 1.0 / factor),
                                          velocity=only(n, j, 1.0 / factor) if both else None))
        for both in (True, False):
            yield Explanation(
                'position_sign', (j,), f'positions{" and velocities" * both} look negated',
                f'change the sign of its positions{" and velocities" * both}',
                Change(position=only(n, j, -1.0), velocity=only(n, j, -1.0) if both else None))
        yield Explanation(
            'position_sign', (j,), 'the axis looks the other way round', 'change the sign of its '
            'positions, velocities and efforts, or turn its axis in the URDF',
            Change(position=only(n, j, -1.0), velocity=only(n, j, -1.0), effort=only(n, j, -1.0)))


def _zeros(robot: RobotModel) -> Iterator[Explanation]:
    """Joints with another zero than the description has."""
    for j in np.flatnonzero(robot.types == REVOLUTE).tolist():
        for angle in ZEROS:
            yield zero(robot, j, float(angle))


def zero(robot: RobotModel, j: int, angle: float) -> Explanation:
    """Return the explanation that positions of joint j are an angle [degrees] too large."""
    return Explanation(
        'position_offset', (j,), f'the zero looks {angle:+.3g} degrees off',
        f'subtract {np.radians(angle):+.4g} rad from its positions, or correct the zero in the '
        'URDF', Change(offset=only(robot.n, j, -np.radians(angle), 0.0)))


def _efforts(robot: RobotModel, stated: Explained) -> Iterator[Explanation]:
    """Efforts with another sign or unit."""
    n, everyone, current = robot.n, tuple(range(robot.n)), robot.drive.kind == 'current'
    point = 'change the sign of the efforts, so that they point along the axis'
    yield Explanation('effort_sign', everyone, 'efforts look negated', point,
                      Change(effort=-np.ones(n)))
    for factor in UNITS:
        unit = 'A' if current else 'N m (N)'
        yield Explanation('effort_scale', everyone,
                          f'efforts look like {_unit(factor, current)}',
                          f'{"divide" if factor > 1.0 else "multiply"} efforts by 1000, so that '
                          f'they are {unit}', Change(effort=np.full(n, 1.0 / factor)))
    ratios, gains = robot.drive.gear_ratios, robot.drive.gains
    if ratios is not None:
        yield Explanation('effort_scale', everyone, 'efforts look like torque on the motor side '
                          'of the gear, by the gear ratios of the robot',
                          'multiply efforts by the gear ratios', Change(effort=np.abs(ratios)))
    if gains is not None and not current:
        for factor, name in ((1.0, 'A'), (1e-3, 'mA')):
            convert = '' if name == 'A' else 'divide efforts by 1000, and '
            yield Explanation('effort_scale', everyone, 'efforts look like currents in '
                              f'{name}, by the drive gains of the robot',
                              f'{convert}state effort_kind: current in the robot YAML',
                              Change(effort=factor * np.abs(gains)))
    yield from _currents(robot, stated)
    for j in range(n):
        yield Explanation('effort_sign', (j,), 'efforts look negated', point,
                          Change(effort=only(n, j, -1.0)))
        # gains are off by less without being wrong
        for factor in (GAINS, 1.0 / GAINS):
            yield Explanation('effort_scale', (j,), '', '',
                              Change(effort=only(n, j, 1.0 / factor)), free=1)
        for factor in (*UNITS, *FACTORS):
            much = f'divide its efforts by {factor:g}' if factor > 1.0 else \
                f'multiply its efforts by {1.0 / factor:g}'
            unit = f', as if they were {_unit(factor, current)}' if factor in UNITS else ''
            yield Explanation(
                'effort_scale', (j,), f'efforts look {factor:g} times too large{unit}',
                f'{much}, or correct its gain or gear ratio',
                Change(effort=only(n, j, 1.0 / factor)))


def _unit(factor: float, current: bool) -> str:
    return UNITS[factor] + ('A' if current else 'N m')


def _currents(robot: RobotModel, stated: Explained) -> Iterator[Explanation]:
    """Efforts of another size in every joint: currents, or torque of motors."""
    scales = stated.free_sizes
    shown = np.isfinite(scales)
    if not shown.any() or robot.drive.kind == 'current':
        return
    scales = np.where(shown, scales, np.median(scales[shown]))
    typical = float(np.median(scales))
    if abs(np.log(typical)) < np.log(CURRENTS):
        # links that are heavier, all of them, are no fault of the recording
        yield Explanation('effort_scale', (), '', '',
                          Change(effort=np.full(robot.n, 1.0 / typical)), free=1)
        return
    state = 'state effort_kind: current and drive_gains in the robot YAML'
    what, remedy = (
        'currents [A], or torque on the motor side of the gear',
        f'{state}, or multiply efforts by the gear ratios') if typical < 1.0 else (
        'currents in mA, or another unit',
        'if they are currents, divide efforts by 1000, so that they are A, and '
        f'{state}; else convert efforts to N m (N) on the joint side')
    yield Explanation(
        'effort_scale', tuple(range(robot.n)),
        f'efforts are {", ".join(f"{s:.3g}" for s in scales)} times those of the nominal links: '
        f'they look like {what}', remedy, Change(effort=1.0 / scales), free=robot.n)


def _orders(robot: RobotModel) -> Iterator[Explanation]:
    """Columns of two joints that changed places."""
    for a, b in combinations(range(robot.n), 2):
        order = np.arange(robot.n)
        order[[a, b]] = b, a
        for channels, what in ((('velocity',), 'velocities look'), (('effort',), 'efforts look'),
                               (CHANNELS, 'the joints look')):
            yield Explanation(
                'velocity' if what == 'velocities look' else 'joint_order', (a, b),
                f'{what} swapped', f'put {"all" if len(channels) > 1 else channels[0]} columns of '
                'these joints, or their names, in order',
                Change(order=tuple((channel, order) for channel in channels)))


def _gravity(robot: RobotModel, rows: Excerpt, stated: Explained) -> Iterator[Explanation]:
    """Gravity that efforts hold or not, and where it points to."""
    if robot.drive.kind == 'gravity_compensated_torque':
        yield Explanation('gravity', (), 'efforts hold gravity: they look like torque',
                          'state effort_kind: torque in the robot YAML', Change(kind='torque'))
        return
    yield Explanation('gravity', (), 'efforts look gravity-compensated',
                      'state effort_kind: gravity_compensated_torque in the robot YAML',
                      Change(kind='gravity_compensated_torque'))
    usual = float(np.linalg.norm(STANDARD_GRAVITY))
    directions = [*usual * np.eye(3), *-usual * np.eye(3)]
    best = gravity_direction(robot, rows, stated)
    for direction in [*directions, *([] if best is None else [best])]:
        if direction @ robot.gravity < np.cos(np.radians(NAMED)) * usual * float(
                np.linalg.norm(robot.gravity)):
            shown, meaning = mounting(direction)
            yield Explanation('gravity', (), f'the base looks {meaning}',
                              f'state gravity: {shown} in the robot YAML, or correct base_link',
                              Change(gravity=direction),
                              Severity.REFUSE if stated.moves.any() else Severity.WARN,
                              free=2 if direction is best else 0)


def gravity_direction(
    robot: RobotModel, rows: Excerpt, stated: Explained
) -> FloatArray | None:
    """Return the gravity (3,) [m/s^2] in the base frame by which efforts are nominal, or None.

    Least squares over all joints, of ``A(q) g = tau - inertial``: torque of the weight is linear
    in gravity. Friction, rotor and offset of a joint that moves are free.
    """
    still = np.zeros_like(rows.position)
    columns = np.stack([rigid_body.inverse_dynamics(
        robot.with_gravity(axis), rows.position, still, still) for axis in np.eye(3)], axis=-1)
    target = rows.torque - rigid_body.inverse_dynamics(
        robot.with_gravity(np.zeros(3)), rows.position, rows.velocity, rows.acceleration)
    for j in np.flatnonzero(stated.moves):
        basis = stated.bases[j]
        target[:, j] -= basis @ (basis.T @ target[:, j])
        columns[:, j] -= basis @ (basis.T @ columns[:, j])
    sizes = np.maximum([rms(t) for t in rows.torque.T], 1e-12)
    found, _, rank, _ = np.linalg.lstsq(
        (columns / sizes[:, None]).reshape(-1, 3), (target / sizes).ravel(), rcond=1e-2)
    size = float(np.linalg.norm(found))
    return None if rank < 3 or size == 0.0 else np.asarray(
        found * np.linalg.norm(STANDARD_GRAVITY) / size)


def mounting(direction: FloatArray) -> tuple[str, str]:
    """Return gravity of a direction (3,) as a robot YAML has it, and how the base is mounted."""
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


def _description(robot: RobotModel) -> Iterator[Explanation]:
    """Another arm than the description is of, or a spring that it does not state."""
    # of arms of one series the mass goes with a power of the length
    for length, power in product(LENGTHS, (1, 2)):
        yield Explanation('description', (), f'the arm looks {length:g} times as long as its '
                          'description', 'give the URDF of this arm',
                          Change(length=length, mass=length**power), free=2)
    for j in np.flatnonzero(robot.types == REVOLUTE).tolist():
        yield Explanation('counterbalance', (j,), 'a spring or counterbalance looks at work, '
                          'which the description does not state', 'nothing is to be done: the '
                          'model takes it up', Change(sprung=(j,)), Severity.WARN, free=1)
