"""validation/rollout_scores.py: position servos under commands, and the MJCF of them in MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from identified_models import feasible_model
from position_servos import ERROR_LIMIT, PERIOD, random_commands, servo_robot

from robot_dynid.errors import ModelError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor import Monitor
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import FloatArray, RawLog
from robot_dynid.validation.rollout_scores import INSTANTS, Stretches

DELAY = 0.006
FRICTION = {'Ia': 0.02, 'fv': 0.4, 'fc': 0.06, 'f0': 0.02}


@pytest.fixture(scope='module')
def model() -> IdentifiedModel:
    robot = servo_robot(derivative_time=np.full(5, 0.01))
    links = robot.nominal
    model = feasible_model(robot, links)
    assert model.feasible is not None
    values = model.feasible + [FRICTION.get(name[:2], 0.0) for name in model.reduction.standard]
    return replace(model, feasible=values, values=model.reduction.base(values),
                   preprocessing=Preprocessing(10.0, effort_lag=DELAY))


@pytest.fixture(scope='module')
def log(model: IdentifiedModel) -> RawLog:
    """The MJCF of the model along commands, in which servos reach their limit."""
    commands = random_commands(3, 6.0)
    commands[150:] += 0.25  # a step
    return follow(model.to_mjcf().model(), commands)


def follow(compiled: mujoco.MjModel, commands: FloatArray) -> RawLog:
    """Return the recording of MuJoCo's motion along ``commands``."""
    compiled.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data, position = mujoco.MjData(compiled), np.empty_like(commands)
    steps = round(PERIOD / compiled.opt.timestep)
    for k, command in enumerate(commands):
        position[k], data.ctrl[:] = data.qpos, command
        mujoco.mj_step(compiled, data, nstep=steps)
    return RawLog('mujoco', tuple(compiled.joint(j).name for j in range(compiled.njnt)),
                  PERIOD * np.arange(len(commands)), position, reference_position=commands)


def errors(model: IdentifiedModel, log: RawLog) -> tuple[FloatArray, FloatArray]:
    """Return the RMS errors (6,) of simulated motions [mrad, mm], and of the effort (5,) [N m]."""
    repaired = repair(model.robot, log)
    samples = prepare(model.robot, repaired, model.preprocessing)
    stretches = Stretches.along(model.robot, samples, 0.5)
    assert stretches is not None and samples.effort is not None
    distances = stretches.distances(stretches.rollouts(model)[0])[:, :len(INSTANTS) // 4]
    off = samples.effort - model.predicted(samples)
    return (1e3 * np.sqrt(np.mean(distances**2, axis=(0, 1))),
            np.sqrt(np.mean(off**2, axis=0)))


def test_commands_move_the_model_as_they_moved_the_arm(
    model: IdentifiedModel, log: RawLog
) -> None:
    """Delay, limit, derivative and gain each matter; what the servos did is the effort."""
    assert any('lift' in note and 'limit of their output' in note
               for note in repair(model.robot, log).notes)
    motion, effort = errors(model, log)
    assert np.all(motion < 3.0) and np.all(effort < 0.05), (motion, effort)
    drive, gains = model.robot.drive, model.robot.torque_factors
    for other in (
        replace(model, preprocessing=replace(model.preprocessing, effort_lag=-0.01)),
        *(replace(model, robot=replace(model.robot, drive=replace(drive, **change)))
          for change in ({'gains': 0.8 * gains}, {'error_limit': np.full(5, 0.5 * ERROR_LIMIT)},
                         {'derivative_time': None})),
    ):
        worse, _ = errors(other, log)
        assert worse.max() > 2.0 * motion.max(), (worse, motion)


def test_mjcf_has_position_servos(model: IdentifiedModel) -> None:
    """MuJoCo's kp, kv and forcerange; the file is checked with its accelerations."""
    mjcf = model.to_mjcf()
    assert mjcf.facts()['error'] < 1e-9
    compiled = mjcf.model()
    servo = compiled.actuator('elbow')
    gain = model.robot.torque_factors[2]
    assert servo.gainprm[0] == gain and compiled.actuator_delay[2] == pytest.approx(DELAY)
    np.testing.assert_allclose(servo.biasprm[1:3], [-gain, -0.01 * gain])
    np.testing.assert_allclose(servo.forcerange + 0.02, np.array([-1, 1]) * gain * ERROR_LIMIT)


def test_a_model_of_servos_is_stored_and_not_monitored(
    model: IdentifiedModel, tmp_path: Path
) -> None:
    model.save(tmp_path / 'M.yaml')
    drive = IdentifiedModel.load(tmp_path / 'M.yaml').robot.drive
    assert drive.error_limit is not None and drive.derivative_time is not None
    assert drive.kind == 'position_error' and drive.error_limit[4] == ERROR_LIMIT
    with pytest.raises(ModelError, match='joint states hold no commands'):
        Monitor(model)
