"""The table of explanations: possible mistakes in a recording or its description."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from robot_dynid.document import number
from robot_dynid.dynamics import rigid_body
from robot_dynid.plausibility.excerpt import Excerpt
from robot_dynid.plausibility.finding import Severity
from robot_dynid.plausibility.score import Explained
from robot_dynid.robot.model import (
    GAIN_UNITS,
    POSITION_ERROR,
    PRISMATIC,
    REVOLUTE,
    STANDARD_GRAVITY,
    RobotModel,
)
from robot_dynid.robot.robot_file import RATIO
from robot_dynid.types import FloatArray, frozen

#: channels recorded per joint
CHANNELS = ('position', 'velocity', 'effort')
DEGREES = 180.0 / np.pi
GRAVITY = float(np.linalg.norm(STANDARD_GRAVITY))
#: units of stamps [s] and their names
TIMES = {'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9, 'minutes': 60.0}
#: velocities or a clock off by less than the first share are not reported, from the second on a
#: clock is refused; slopes of velocities that agree to the first share share one clock
CLOCK, WRONG_CLOCK, SLOWEST_CLOCK = 0.05, 0.1, 0.1
#: factors of stamps that velocities do not show: a finding these explain equally well is not
#: reported
CLOCKS = (0.5, 0.8, 1.25, 2.0)
#: factors of velocity units relative to rad/s
SPEEDS = {DEGREES: 'deg/s', 30.0 / np.pi: 'rpm', 0.5 / np.pi: 'turns per second',
          np.pi / 180.0: 'rad/s while positions are degrees', 1e3: 'mm/s or mrad/s'}
#: factors of efforts relative to N m (A), and the prefix of their unit
UNITS = {1e3: 'm', 1e-3: 'k'}
#: currents are smaller than torque in numbers by at least this factor, in mA larger; correct gains
#: may be off by the second factor
CURRENTS, GAINS = 5.0, 1.3
#: gear ratios tried if none is stated, and the least ratio
RATIOS, LEAST_RATIO = (30.0, 50.0, 80.0, 100.0, 130.0, 160.0), 10.0
#: factors of all efforts, such as N cm; for a single effort these and their inverses, for single
#: efforts and positions also the second
SLIPS, FACTORS = (10.0, 100.0), (2.0, 0.5)
#: share of moving joints below which efforts show nothing about single joints or the description
MOVING_JOINTS_SHARE = 0.5
#: zeros tried [degrees]
ZEROS = (5, -5, 30, -30, 60, -60, 90, -90, 120, -120, 150, -150, 180)
#: lengths of an arm relative to its description, and the power of them that the mass follows
LENGTHS, MASSES = (0.4, 0.5, 0.6, 0.7, 0.8, 1.25, 1.4, 1.7, 2.0, 2.5), (1, 2)
#: angle [degrees] within which a direction has a name
NAMED_DIRECTION_ANGLE = 12.0


@dataclass(frozen=True, eq=False)
class Change:
    """A change of a recording and its robot.

    Factors and offsets (n,) of positions, measured velocities and efforts; the columns of two
    ``swapped`` joints are exchanged in ``channels``; ``time`` is the factor of the stamps. Of the
    robot: ``gravity`` (3,) [m/s^2], the ``kind`` of efforts, the factors ``length`` of all
    distances and ``mass``. ``sprung`` are joints with a spring.
    """

    position: FloatArray | None = None
    offset: FloatArray | None = None
    velocity: FloatArray | None = None
    effort: FloatArray | None = None
    swapped: tuple[int, ...] = ()
    channels: tuple[str, ...] = ()
    time: float = 1.0
    gravity: FloatArray | None = None
    kind: str = ''
    length: float = 1.0
    mass: float = 1.0
    sprung: tuple[int, ...] = ()

    @property
    def motion(self) -> Hashable:
        """Key of the changes of motion and robot; equal keys share normal equations."""
        tables = (None if table is None else tuple(table.tolist())
                  for table in (self.position, self.offset, self.gravity))
        return (*tables, self.swapped * ('position' in self.channels), self.time, self.kind,
                self.length, self.mass, self.sprung)

    def order(self, channel: str, n: int) -> NDArray[np.int64]:
        """Return the order (n,) of the columns of a channel."""
        order = np.arange(n)
        if channel in self.channels:
            order[list(self.swapped)] = self.swapped[::-1]
        return order

    def robot(self, robot: RobotModel) -> RobotModel:
        """Return the changed robot."""
        if self.gravity is not None:
            robot = robot.with_gravity(self.gravity)
        if self.kind:
            robot = replace(robot, drive=replace(robot.drive, kind=self.kind))
        if (self.length, self.mass) != (1.0, 1.0):
            powers = self.length ** np.repeat([0.0, 1.0, 2.0], [1, 3, 6])
            tree = robot.tree
            robot = robot.with_tree(replace(
                tree, nominal=frozen(tree.nominal * powers * self.mass),
                translations=tree.translations * self.length))
        return robot

    def integrated(self, rows: Excerpt) -> FloatArray:
        """Return the changed integrated velocity (K, n) of an excerpt."""
        factor = self.time if self.velocity is None else self.time * self.velocity
        return np.asarray(
            rows.integrated[:, self.order('velocity', rows.integrated.shape[1])] * factor)

    def rows(self, rows: Excerpt) -> Excerpt:
        """Return the changed excerpt."""
        motion = self.of_motion(rows)
        torque = rows.torque[:, self.order('effort', rows.torque.shape[1])]
        return replace(motion, torque=torque if self.effort is None else torque * self.effort,
                       integrated=self.integrated(rows))

    def of_motion(self, rows: Excerpt) -> Excerpt:
        """Return the excerpt with changed motion; unchanged arrays are shared."""
        order = self.order('position', rows.position.shape[1])
        factor = np.ones(1) if self.position is None else self.position
        position, velocity, acceleration, travel = (
            table if self.position is None and 'position' not in self.channels
            else table[:, order] * factor
            for table in (rows.position, rows.velocity, rows.acceleration, rows.travel))
        if self.offset is not None:
            position = position + self.offset
        if self.time != 1.0:
            velocity, acceleration = velocity / self.time, acceleration / self.time**2
        return Excerpt(position, velocity, acceleration, rows.torque, travel, rows.integrated
                       * self.time, rows.seconds * self.time, rows.step * self.time)


@dataclass(frozen=True, eq=False)
class Explanation:
    """A ``change`` that would explain a recording, in words.

    ``kind`` is one of finding.KINDS; ``joints`` are those concerned, ``looks`` is the evidence and
    ``remedy`` what to do, empty if nothing is reported. ``free`` is the number of fitted values of
    the change.
    """

    kind: str
    joints: tuple[int, ...]
    looks: str
    remedy: str
    change: Change
    severity: Severity = Severity.REFUSE
    free: int = 0


def explanations(stated: Explained) -> Iterator[Explanation]:
    """Yield every explanation of an excerpt; of equally good ones, the first is reported."""
    robot = stated.stated
    yield from _times(stated)
    yield from _velocities(stated)
    yield from _efforts(stated)
    yield from _positions(stated)
    enough = stated.described and bool(np.mean(stated.moves) >= MOVING_JOINTS_SHARE)
    for j in np.flatnonzero(robot.types == REVOLUTE).tolist() if enough else ():
        yield from (zero(robot.n, j, float(angle)) for angle in ZEROS)
    for j in range(robot.n):
        other = only(robot.n, j, -1.0)
        yield Explanation(
            'position_sign', (j,), 'the axis looks reversed', 'change the sign of its '
            'positions, velocities and efforts, or turn its axis in the URDF',
            Change(position=other, velocity=other, effort=other))
    for pair in combinations(range(robot.n), 2):
        for channels, what, columns in (
                (('velocity',), 'velocities look', 'velocity'),
                (('effort',), 'efforts look', 'effort'), (CHANNELS, 'the joints look', 'all')):
            if columns != 'velocity' and not stated.moves[list(pair)].all():
                continue  # friction of a joint at rest takes any effort
            yield Explanation(
                'velocity' if columns == 'velocity' else 'joint_order', pair, f'{what} swapped',
                f'put {columns} columns of these joints, or their names, in order',
                Change(swapped=pair, channels=channels))
    yield from _gravity(stated) if stated.described else ()
    for length, power in product(LENGTHS, MASSES) if enough else ():
        yield Explanation('description', (), f'the arm looks {length:g} times as long as its '
                          'description', 'give the URDF of this arm',
                          Change(length=length, mass=length**power), free=2)
    for j in np.flatnonzero(robot.types == REVOLUTE).tolist() if enough else ():
        yield Explanation('counterbalance', (j,), 'efforts look like those of a spring or '
                          'counterbalance that the description does not state', 'nothing needs to '
                          'be done: the model includes it',
                          Change(sprung=(j,)), Severity.WARN, free=1)


def only(n: int, j: int, value: float, other: float = 1.0) -> FloatArray:
    """Return (n,) with ``value`` at joint j and ``other`` elsewhere."""
    values = np.full(n, other)
    values[j] = value
    return values


def zero(n: int, j: int, angle: float) -> Explanation:
    """Return the explanation that positions of joint j of n are an angle [degrees] too large."""
    return Explanation(
        'position_offset', (j,), f'the zero looks {angle:+.3g} degrees off', f'subtract '
        f'{np.radians(angle):+.4g} rad from its positions, or correct the zero in the URDF',
        Change(offset=only(n, j, -np.radians(angle), 0.0)), free=int(angle % 90.0 != 0.0))


def _times(stated: Explained) -> Iterator[Explanation]:
    """Yield explanations by stamps in another unit, or from a wrong clock."""
    degrees = np.where(stated.stated.types == REVOLUTE, 1.0 / DEGREES, 1.0)
    for name, unit in TIMES.items():
        of_table = f' (of a table: unit: {name} in columns)' if unit < 1.0 else ''
        remedy = f'multiply time by {unit:g}, so that it is in seconds{of_table}'
        yield Explanation('time_unit', (), f'stamps look like {name}', remedy, Change(time=unit))
        if unit < 1.0:
            yield Explanation(
                'time_unit', (), f'stamps look like {name}, and positions like degrees',
                f'{remedy}, and convert positions to rad, velocities to rad/s (unit: deg, deg/s)',
                Change(time=unit, position=degrees, velocity=degrees))
    slopes = stated.travel_slopes[np.isfinite(stated.travel_slopes)]
    if not len(slopes):
        for clock in CLOCKS:
            yield Explanation('clock', (), '', '', Change(time=clock), free=1)
        return
    clock = float(np.median(slopes))
    if SLOWEST_CLOCK < clock < 1.0 / SLOWEST_CLOCK and np.ptp(slopes) < CLOCK * clock and abs(
            np.log(clock)) > CLOCK:
        yield Explanation(
            'clock', (), f'velocity is {clock:.3g} times the change of position in all joints: '
            'the clock of the stamps looks wrong', f'divide time by {clock:.3g}, or '
            'record the stamps of the driver', Change(time=1.0 / clock),
            Severity.REFUSE if abs(np.log(clock)) > WRONG_CLOCK else Severity.WARN, free=1)


def _velocities(stated: Explained) -> Iterator[Explanation]:
    """Yield explanations by velocities with another unit or sign, or uninformative ones."""
    n, ratios = stated.stated.n, stated.stated.drive.gear_ratios
    if not stated.travels.any():
        return
    for factor, name in SPEEDS.items():
        yield Explanation('velocity', tuple(range(n)), f'velocities look like {name}',
                          'convert positions to rad and velocities to rad/s (m, m/s)',
                          Change(velocity=np.full(n, 1.0 / factor)))
    if ratios is not None:
        yield Explanation('velocity', tuple(range(n)), 'velocities look like those of the motors',
                          'divide velocities by the gear ratios',
                          Change(velocity=1.0 / np.abs(ratios)))
    negated = 'velocities look negated', 'change the sign of the velocities'
    yield Explanation('velocity', tuple(range(n)), *negated, Change(velocity=-np.ones(n)))
    for j in np.flatnonzero(np.isfinite(stated.travel_slopes)).tolist():
        yield Explanation('velocity', (j,), *negated, Change(velocity=only(n, j, -1.0)))
        factor = float(stated.travel_slopes[j])
        if factor > 0.0 and abs(np.log(factor)) > CLOCK:
            yield Explanation('velocity', (j,), f'velocities look {_too(factor)}',
                              f'{_rescale("its velocities", factor)}, or leave velocities out',
                              Change(velocity=only(n, j, 1.0 / factor)))
        yield Explanation('velocity', (j,), 'velocities are unrelated to the motion',
                          'omit velocities, they are then computed from the position',
                          Change(velocity=only(n, j, np.nan)))


def _positions(stated: Explained) -> Iterator[Explanation]:
    """Yield explanations by positions in another unit, of motors, or with another sign."""
    n, types, ratios = stated.stated.n, stated.stated.types, stated.stated.drive.gear_ratios
    turning, sliding = (tuple(np.flatnonzero(types == one).tolist())
                        for one in (REVOLUTE, PRISMATIC))
    degrees = np.where(types == REVOLUTE, 1.0 / DEGREES, 1.0)
    metres = np.where(types == PRISMATIC, 1e-3, 1.0)
    motors = '; if they are those of the motors, divide them by the gear ratios'
    for also, unit, stated_unit, velocity in (
            ('', '', 'deg', None), (' and velocities', ' and rad/s', 'deg and deg/s', degrees)):
        if turning:
            yield Explanation('position_unit', turning, f'positions{also} look like degrees',
                              f'convert positions{also} to rad{unit} (of a table: unit: '
                              f'{stated_unit} in columns){motors}',
                              Change(position=degrees, velocity=velocity))
    if sliding:
        yield Explanation('position_unit', sliding, 'positions look like mm',
                          'convert positions to m', Change(position=metres, velocity=metres))
    slopes = stated.travel_slopes
    tried = [np.full(n, ratio) for ratio in RATIOS] if ratios is None else [np.asarray(ratios)]
    known = np.abs(slopes) > 1.0 / RATIO.high
    alone = tried if ratios is not None or not known.any() else [
        1.0 / np.where(known, slopes, np.median(slopes[known]))]
    for ratio, velocity, also in [*((one, 1.0 / one, ' and velocities') for one in tried),
                                  *((one, None, '') for one in alone)]:
        if np.abs(ratio).min() > LEAST_RATIO:
            yield Explanation(
                'position_unit', tuple(range(n)), f'positions{also} look like those of the '
                f'motors, {", ".join(f"{x:.3g}" for x in np.unique(ratio))} times too large',
                f'divide positions{also} by the gear ratios', Change(
                    position=1.0 / ratio, velocity=velocity), free=len(np.unique(ratio)))
    for j, also in product(range(n), (' and velocities', '')):
        for factor in FACTORS:
            smaller = only(n, j, 1.0 / factor)
            yield Explanation(
                'position_unit', (j,), f'positions{also} look {_too(factor)}',
                _rescale(f'its positions{also}', factor),
                Change(position=smaller, velocity=smaller if also else None))
        other = only(n, j, -1.0)
        yield Explanation('position_sign', (j,), f'positions{also} look negated',
                          f'change the sign of its positions{also}',
                          Change(position=other, velocity=other if also else None))


def _efforts(stated: Explained) -> Iterator[Explanation]:
    """Yield explanations by efforts with another sign or unit."""
    n, drive = stated.stated.n, stated.stated.drive
    everyone, unit = tuple(range(n)), GAIN_UNITS.get(drive.kind, '/N m').partition('/')[2]
    negated = 'efforts look negated', 'change the sign of the efforts, so that they point along ' \
        'the axis'
    yield Explanation('effort_sign', everyone, *negated, Change(effort=-np.ones(n)))
    for factor in (*UNITS, *SLIPS):
        looks = f'like {UNITS[factor]}{unit}' if factor in UNITS else _too(factor)
        yield Explanation('effort_scale', everyone, f'efforts look {looks}',
                          f'{_rescale("efforts", factor)}, so that they are {unit}'
                          f'{" (N)" * (unit == "N m")}',
                          Change(effort=np.full(n, 1.0 / factor)))
    if drive.gear_ratios is not None:
        yield Explanation('effort_scale', everyone, 'efforts look like torque on the motor side '
                          'of the gear, by the gear ratios of the robot', 'multiply efforts by '
                          'the gear ratios', Change(effort=np.abs(drive.gear_ratios)))
    if drive.gains is not None and drive.kind not in GAIN_UNITS:
        for factor, name in ((1.0, 'A'), (1e-3, 'mA')):
            convert = '' if name == 'A' else 'divide efforts by 1000, and '
            yield Explanation('effort_scale', everyone, f'efforts look like currents in {name}, '
                              'by the drive gains of the robot',
                              f'{convert}state effort_kind: current in the robot YAML',
                              Change(effort=factor * np.abs(drive.gains)))
    if drive.kind not in GAIN_UNITS:
        yield from _currents(stated)
    for j in range(n):
        yield Explanation('effort_sign', (j,), *negated, Change(effort=only(n, j, -1.0)))
        # gains may be off by less without being wrong
        for factor in (GAINS, 1.0 / GAINS):
            yield Explanation('effort_scale', (j,), '', '',
                              Change(effort=only(n, j, 1.0 / factor)), free=1)
        for factor in (*UNITS, *FACTORS, *SLIPS, *(1.0 / slip for slip in SLIPS)):
            also = f', as if they were {UNITS[factor]}{unit}' if factor in UNITS else ''
            yield Explanation(
                'effort_scale', (j,), f'efforts look {_too(factor)}{also}',
                f'{_rescale("its efforts", factor)}, or correct its gain or gear ratio',
                Change(effort=only(n, j, 1.0 / factor)), free=int(factor in FACTORS))


def _too(factor: float) -> str:
    return f'{number(factor, 3)} times too large' if factor > 1.0 else \
        f'{number(1.0 / factor, 3)} times too small'


def _rescale(what: str, factor: float) -> str:
    return f'divide {what} by {number(factor, 3)}' if factor > 1.0 else \
        f'multiply {what} by {number(1.0 / factor, 3)}'


def _currents(stated: Explained) -> Iterator[Explanation]:
    """Yield explanations by efforts of another size in every joint: currents, or motor torque."""
    n, scales = stated.stated.n, stated.free_sizes
    determined = np.isfinite(scales)
    if not determined.any():
        return
    scales = np.where(determined, scales, np.median(scales[determined]))
    typical = float(np.median(scales))
    if abs(np.log(typical)) < np.log(CURRENTS):
        # links that are all heavier are no fault of the recording
        yield Explanation('effort_scale', (), '', '', Change(effort=np.full(n, 1.0 / typical)),
                          free=1)
        return
    state = 'state effort_kind: current and drive_gains of this arm (docs/drivers.md) in its YAML'
    what, remedy = (
        'currents [A], or torque on the motor side of the gear',
        f'{state}, or multiply efforts by the gear ratios') if typical < 1.0 else (
        'currents in mA, or another unit',
        'if they are currents, divide efforts by 1000, so that they are A, and '
        f'{state}; if the arm is larger than described, give its URDF; else convert efforts to '
        'N m (N) on the joint side')
    yield Explanation(
        'effort_scale', tuple(range(n)),
        f'efforts are {", ".join(f"{s:.3g}" for s in scales)} times those of the nominal links: '
        f'they look like {what}', remedy, Change(effort=1.0 / scales), free=n)


def _gravity(stated: Explained) -> Iterator[Explanation]:
    """Yield explanations by compensated or missing gravity, and by its direction."""
    robot = stated.stated
    if robot.drive.kind == 'gravity_compensated_torque':
        yield Explanation('gravity', (), 'efforts hold gravity: they look like torque',
                          'state effort_kind: torque in the robot YAML', Change(kind='torque'))
        return
    if robot.drive.kind != POSITION_ERROR:
        yield Explanation('gravity', (), 'efforts look gravity-compensated',
                          'state effort_kind: gravity_compensated_torque in the robot YAML',
                          Change(kind='gravity_compensated_torque'))
    fitted = gravity_direction(stated)
    near = np.cos(np.radians(NAMED_DIRECTION_ANGLE)) * GRAVITY * float(
        np.linalg.norm(robot.gravity))
    for direction in [*GRAVITY * np.eye(3), *-GRAVITY * np.eye(3),
                      *([] if fitted is None else [fitted])]:
        if direction @ robot.gravity < near:
            shown, meaning = mounting(direction)
            yield Explanation('gravity', (), f'the base looks {meaning}',
                              f'state gravity: {shown} in the robot YAML, or correct base_link',
                              Change(gravity=direction),
                              Severity.REFUSE if stated.moves.any() else Severity.WARN,
                              free=2 if direction is fitted else 0)


def gravity_direction(stated: Explained) -> FloatArray | None:
    """Return the gravity (3,) [m/s^2] in the base frame that explains nominal efforts, or None.

    Least squares over all joints of ``A(q) g = tau - inertial``: gravity torque is linear in
    gravity. Friction, rotor and offset of a moving joint are free.
    """
    robot, rows = stated.stated, stated.rows
    still = np.zeros_like(rows.position)
    columns = np.stack([rigid_body.inverse_dynamics(
        robot.with_gravity(axis), rows.position, still, still) for axis in np.eye(3)], axis=-1)
    target = rows.torque - rigid_body.inverse_dynamics(
        robot.with_gravity(np.zeros(3)), rows.position, rows.velocity, rows.acceleration)
    for j, basis in enumerate(stated.friction().basis):
        columns[:, j] -= basis @ (basis.T @ columns[:, j])
    sizes = np.maximum(np.linalg.norm(rows.torque, axis=0), 1e-12)
    gravity, _, rank, _ = np.linalg.lstsq(
        (columns / sizes[:, None]).reshape(-1, 3), (target / sizes).ravel(), rcond=1e-2)
    size = float(np.linalg.norm(gravity))
    return None if rank < 3 or size == 0.0 else np.asarray(gravity * GRAVITY / size)


def mounting(direction: FloatArray) -> tuple[str, str]:
    """Return gravity along a direction (3,) as a robot YAML states it, and the mounting."""
    unit = direction / np.linalg.norm(direction)
    axis = int(np.argmax(np.abs(unit)))
    pure = only(3, axis, float(np.sign(unit[axis])), 0.0)
    near = np.degrees(np.arccos(np.clip(unit @ pure, -1.0, 1.0))) < NAMED_DIRECTION_ANGLE
    values = GRAVITY * (pure if near else unit)
    shown = f'[{", ".join(f"{value + 0.0:.3g}" for value in values)}]'
    if not near:
        return shown, 'mounted at an angle'
    if axis == 2:
        return shown, 'hung from a ceiling' if pure[2] > 0.0 else 'mounted upright'
    return shown, f'mounted on a wall, its {"xy"[axis]} axis {"down" if pure[axis] > 0 else "up"}'
