"""An arm of two joints whose second gear has kinematic error and hysteresis, in closed form.

Pinocchio moves the links along a periodic motion; the gear transmits ``K u + D u' + h z(u)``, with
u its deflection plus the error e(theta) of the motor, and z a state of Dahl's kind. The motor
drives against its inertia, friction, and that torque times 1 + e'(theta).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from robot_dynid import load_robot
from robot_dynid.effects import GearEffects
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, RawLog

#: stiffness, damping, sine and cosine [rad] of the error, two of its waves per turn of the motor
K, D, ERROR, RATIO = 5e3, 10.0, (6e-5, -8e-5), 40.0
#: friction [N m] of the gear, and the deflection [rad] over which it turns
LOOP, LENGTH = 0.4, 1.5e-4
#: inertia, viscous and Coulomb friction of the motors, and noise of the effort
INERTIA, VISCOUS, COULOMB, NOISE = 0.3, 2.0, 1.5, 1e-2
SECONDS, RATE = 4.0, 250.0


def arm(ratio: float = RATIO) -> RobotModel:
    """Return the arm, of which only the second joint is elastic."""
    robot = load_robot('elastic_2r')
    return replace(robot, drive=replace(
        robot.drive, elastic=(1,), gear_ratios=np.full(2, ratio)))


def recording(error: tuple[float, float] = ERROR, loop: float = LOOP) -> RawLog:
    """Return one period of the motion as ideal encoders and a noisy effort show it."""
    robot, count = arm(), round(SECONDS * RATE)
    rng, rate = np.random.default_rng(0), 2j * np.pi * np.fft.rfftfreq(count, 1.0 / RATE)
    waves = np.zeros((len(rate), 2), dtype=complex)
    waves[1:6] = 0.2 * count * rng.normal(size=(5, 2, 2)) @ [1.0, 1j] / np.arange(1, 6)[:, None]
    motion = [np.fft.irfft(waves * rate[:, None]**order, count, axis=0) for order in range(3)]
    model = pin.buildModelFromUrdf(robot.source)
    data = model.createData()
    through = np.array([pin.rnea(model, data, *state) for state in zip(*motion, strict=True)])
    slips = np.zeros(count)
    for _ in range(20 if loop else 1):
        bent = np.fft.irfft(np.fft.rfft(through[:, 1] - loop * slips) / (K + D * rate), count)
        slips = dahl(np.tile(bent, 2))[count:]
    motors, order = motion[0].copy(), 2.0 * RATIO
    for _ in range(20):
        sine, cosine = np.sin(order * motors[:, 1]), np.cos(order * motors[:, 1])
        motors[:, 1] = motion[0][:, 1] + bent - error[0] * sine - error[1] * cosine
    turned, speeds = (np.fft.irfft(np.fft.rfft(motors, axis=0) * rate[:, None]**k, count, axis=0)
                      for k in (2, 1))
    effort = through + INERTIA * turned + VISCOUS * speeds + COULOMB * np.tanh(speeds / 0.01)
    effort[:, 1] += through[:, 1] * order * (error[0] * cosine - error[1] * sine)
    return RawLog('gear', robot.joints, np.arange(count) / RATE, motion[0], motion[1],
                  effort + NOISE * rng.normal(size=effort.shape), motors, speeds)


def dahl(bent: FloatArray) -> FloatArray:
    """Return the state z (N,) along a deflection: ``dz/du = (1 - z sign(u')) / LENGTH``."""
    states = [0.0]
    for turn in np.diff(bent):
        side = np.sign(turn)
        states.append(side + (states[-1] - side) * np.exp(-abs(turn) / LENGTH))
    return np.array(states)


def model_of(robot: RobotModel, effects: tuple[GearEffects, ...] = (), **values: float
             ) -> IdentifiedModel:
    """Return a model with these ``values`` of parameters, others zero, known to a hundredth."""
    structure = replace(Structure.uniform(robot, True, 'coulomb', {}), gears=effects)
    reduction = structure.torque_model(robot).reduction
    base = np.array([values.get(name, 0.0) for name in reduction.names])
    return IdentifiedModel(robot, structure, reduction, base, 1e-2 * np.abs(base), base,
                           Preprocessing(20.0, decimate=False),
                           correlation_factor=np.eye(len(base)))
