"""An arm of five hobby servos in MuJoCo, in the manner of an SO-101, that reports no effort.

Its friction is of no law of the package: gears lose other shares of the motor's torque than of the
load's, a Stribeck curve has the exponent 0.7, and the torque of the motor falls with speed, as its
voltage is limited. Links differ from the description by up to 20 %, commands come at 50 Hz and act
late, encoders have 12 bits. Source of the friction: Duclusaud, Passault, Padois, Daney 2024,
Extended friction models for the physics simulation of servo actuators (Rhoban/bam).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import mujoco
import numpy as np

from robot_dynid.robot.model import Drive, RobotModel
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import FloatArray, RawLog

JOINTS = ('pan', 'lift', 'elbow', 'flex', 'roll')
#: axis, place on the link before [m], range [rad]; mass [kg], centre [m] and size [m] of the link
LINKS = (
    ((0, 0, 1), (0.0, 0.0, 0.06), 1.5, 0.10, (0.02, 0.0, 0.03), (0.06, 0.05, 0.06)),
    ((0, 1, 0), (0.03, 0.0, 0.05), 1.4, 0.12, (0.02, 0.0, 0.07), (0.04, 0.05, 0.13)),
    ((0, 1, 0), (0.03, 0.0, 0.11), 1.4, 0.11, (0.08, 0.0, 0.01), (0.14, 0.05, 0.04)),
    ((0, 1, 0), (0.135, 0.0, 0.0), 1.5, 0.08, (0.03, 0.0, 0.0), (0.06, 0.05, 0.04)),
    ((1, 0, 0), (0.06, 0.0, 0.0), 2.5, 0.14, (0.05, 0.008, 0.0), (0.10, 0.05, 0.03)),
)
STEP, PERIOD = 1e-3, 0.02
#: 12 bits over a turn
COUNT = 2.0 * np.pi / 4096
#: N m/rad and rad: a position error of so many rad takes the whole voltage
GAIN, ERROR_LIMIT = 17.8, 0.18


@dataclass(frozen=True)
class Servos:
    """Parameters of the five servos, each as of a STS3215 at 7.4 V, and their links' difference.

    ``back_emf`` and ``viscous`` N m s/rad, ``dry`` and ``static`` N m, ``speed`` rad/s of the
    Stribeck curve; shares ``driven`` and ``loaded`` of the torque of motor and load that gears
    lose; ``armature`` kg m^2; ``delay`` s from stamp to action of a command.
    """

    back_emf: float = 0.33
    viscous: float = 0.06
    dry: float = 0.03
    static: float = 0.03
    speed: float = 0.15
    driven: float = 0.06
    loaded: float = 0.10
    armature: float = 0.02
    delay: float = 0.006
    masses: FloatArray = field(default_factory=lambda: np.array([1.1, 1.2, 0.85, 1.15, 1.2]))
    gains: FloatArray = field(default_factory=lambda: np.full(5, GAIN))
    payload: float = 0.0


def servo_robot(gains: float = GAIN, **drive: object) -> RobotModel:
    """Return the arm as described, with position servos."""
    robot = robot_from_urdf(urdf(np.ones(5)), source='servos.urdf')
    n = robot.n
    return replace(robot, drive=replace(Drive(), **{
        'kind': 'position_error', 'gains': np.full(n, gains),
        'error_limit': np.full(n, ERROR_LIMIT), **drive}))


def urdf(masses: FloatArray, armature: float = 0.0) -> str:
    """Return the description of the arm with links times ``masses`` (5,)."""
    parts = ['<robot name="servos"><link name="base"/>']
    before = 'base'
    for i, (joint, (axis, place, reach, mass, centre, size)) in enumerate(zip(JOINTS, LINKS)):
        m = mass * float(masses[i])
        x, y, z = np.square(size) * m / 12.0
        parts.append(
            f'<link name="{joint}_link"><inertial><origin xyz="{_text(centre)}"/>'
            f'<mass value="{m}"/><inertia ixx="{y + z}" iyy="{x + z}" izz="{x + y}" ixy="0" '
            f'ixz="0" iyz="0"/></inertial></link><joint name="{joint}" type="revolute">'
            f'<parent link="{before}"/><child link="{joint}_link"/><origin xyz="{_text(place)}"/>'
            f'<axis xyz="{_text(axis)}"/><limit lower="{-reach}" upper="{reach}" velocity="8" '
            'effort="3.2"/></joint>')
        before = f'{joint}_link'
    return ''.join([*parts, '</robot>'])


def _text(numbers: tuple[float, ...]) -> str:
    return ' '.join(f'{one:g}' for one in numbers)


def random_commands(seed: int, seconds: float, pace: float = 1.0) -> FloatArray:
    """Return commands (T, 5) [rad] at PERIOD: quintic moves between random poses, with rests."""
    generator = np.random.default_rng(seed)
    reach = 0.75 * np.array([one[2] for one in LINKS])
    commands = np.zeros((round(seconds / PERIOD), 5))
    for j in range(5):
        time, place = [0.0], [0.0]
        while time[-1] < seconds:
            goal = generator.uniform(-reach[j], reach[j])
            rest = generator.uniform(0.0, 0.3)
            time += [time[-1] + rest, time[-1] + rest + pace * generator.uniform(0.4, 1.4)]
            place += [place[-1], goal]
        t = PERIOD * np.arange(len(commands))
        for (begin, end), (one, other) in zip(pairwise(time), pairwise(place), strict=True):
            s = np.clip((t - begin) / max(end - begin, 1e-9), 0.0, 1.0)
            inside = (t >= begin) & (t <= end)
            commands[inside, j] = (one + (other - one) * s**3 * (10 - 15 * s + 6 * s**2))[inside]
    return commands


class Plant:
    """The true arm: `follow` makes its recording of a file of commands."""

    def __init__(self, servos: Servos | None = None) -> None:
        self.servos = servos = servos or Servos()
        spec = mujoco.MjSpec.from_string(urdf(servos.masses))
        spec.option.timestep = STEP
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(
            mujoco.mjtDisableBit.mjDSBL_LIMIT)
        if servos.payload:
            body = spec.body('roll_link').add_body(pos=[0.09, 0.0, 0.0])
            body.mass, body.inertia = servos.payload, [1e-5] * 3
            body.explicitinertial = True
        self.model = spec.compile()
        self.model.dof_armature[:] = servos.armature
        self.model.dof_frictionloss[:] = servos.dry
        self.model.dof_solref[:], self.model.dof_solimp[:, :2] = (-1.0, -1.0 / STEP), 0.999

    def follow(self, commands: FloatArray, source: str = 'servos') -> RawLog:
        """Return the recording of positions along ``commands`` (T, 5) [rad] at PERIOD."""
        servos, model = self.servos, self.model
        data = mujoco.MjData(model)
        data.qpos[:] = commands[0]
        position = np.empty_like(commands)
        late, count = round(servos.delay / STEP), round(PERIOD / STEP)
        held = commands[0]
        for k, command in enumerate(commands):
            position[k] = np.round(data.qpos / COUNT) * COUNT
            for i in range(count):
                held = command if i == late else held
                self._step(data, held)
        time = PERIOD * np.arange(len(commands))
        return RawLog(source, JOINTS, time, position, reference_position=commands)

    def _step(self, data: mujoco.MjData, command: FloatArray) -> None:
        servos, model, v = self.servos, self.model, data.qvel
        limit = servos.gains * ERROR_LIMIT
        motor = np.clip(servos.gains * (command - data.qpos), -limit, limit) - servos.back_emf * v
        mujoco.mj_fwdVelocity(model, data)
        model.dof_frictionloss[:] = (
            servos.dry + servos.static * np.exp(-(np.abs(v) / servos.speed)**0.7)
            + servos.driven * np.abs(motor) + servos.loaded * np.abs(data.qfrc_bias))
        data.qfrc_applied[:] = motor - servos.viscous * v
        mujoco.mj_step(model, data)
