"""export/mjcf.py: an arm of position servos, simulated under commands nobody fitted.

The plant has friction of no law of the package. Beside the model: the description with the
friction of the servos' data sheet, and what mujoco.sysid fits to the same recordings.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import mujoco
import mujoco.sysid
import numpy as np
import pytest
from position_servos import (
    ERROR_LIMIT,
    GAIN,
    JOINTS,
    PERIOD,
    Plant,
    random_commands,
    servo_robot,
    urdf,
)

from robot_dynid import identify
from robot_dynid.types import FloatArray, RawLog

pytestmark = pytest.mark.soak
#: rows of 2 s that are simulated from a measured state, without a look at the arm
WINDOW = 100
#: viscous friction [N m s/rad] with back-EMF, dry friction [N m] and armature [kg m^2]
DATA_SHEET = (0.33, 0.06, 0.02)
#: place on the last link whose error is that of the tip [m]
TIP = np.array([0.1, 0.0, 0.0])
LIMIT, STEP = mujoco.mjtDisableBit.mjDSBL_LIMIT, 1e-3
#: rounds after which mujoco.sysid gets no better here
ROUNDS = 12


def windows(log: RawLog) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield begin, position (5,) and velocity (5,) of the stretches that are simulated."""
    velocity = np.gradient(log.position, PERIOD, axis=0)
    for k in range(10, len(log.time) - WINDOW - 1, WINDOW):
        yield k, log.position[k], velocity[k]


def commands(log: RawLog, begin: int) -> FloatArray:
    """Return the commands (WINDOW, 5) of a stretch."""
    assert log.reference_position is not None
    return log.reference_position[begin:begin + WINDOW]


def errors(model: mujoco.MjModel, logs: list[RawLog]) -> tuple[FloatArray, float]:
    """Return the RMS errors of the joints (5,) [mrad] and of the tip [mm] in all stretches."""
    model.opt.disableflags |= int(LIMIT)
    data, joints, tips = mujoco.MjData(model), [], []

    def tip(position: FloatArray) -> FloatArray:
        data.qpos[:] = position
        mujoco.mj_kinematics(model, data)
        body = data.body('roll_link')
        return np.asarray(body.xpos + body.xmat.reshape(3, 3) @ TIP)

    for log in logs:
        for begin, position, velocity in windows(log):
            moving = mujoco.MjData(model)
            moving.qpos[:], moving.qvel[:] = position, velocity
            for k, moving.ctrl[:] in enumerate(commands(log, begin), begin + 1):
                mujoco.mj_step(model, moving, nstep=round(PERIOD / model.opt.timestep))
                joints.append(moving.qpos - log.position[k])
                tips.append(tip(moving.qpos) - tip(log.position[k]))
    return (1e3 * np.sqrt(np.mean(np.square(joints), axis=0)),
            float(1e3 * np.sqrt(np.mean(np.sum(np.square(tips), axis=1)))))


def described(text: str, viscous: float, dry: float, armature: float) -> mujoco.MjSpec:
    """Return the exported arm with the links of its description, and this friction."""
    spec = mujoco.MjSpec.from_string(text)
    links = mujoco.MjSpec.from_string(urdf(np.ones(5))).compile()
    for name in JOINTS:
        body, link = spec.body(f'{name}_link'), links.body(f'{name}_link')
        body.fullinertia, body.mass = np.full(6, np.nan), float(link.mass[0])
        body.ipos, body.iquat, body.inertia = link.ipos, link.iquat, link.inertia
        joint, servo, bias = spec.joint(name), spec.actuator(name), np.zeros(10)
        joint.damping[0], joint.frictionloss, joint.armature = viscous, dry, armature
        bias[1], servo.forcerange = -GAIN, GAIN * ERROR_LIMIT * np.array([-1.0, 1.0])
        servo.biasprm = bias
        spec.add_sensor(name=name, type=mujoco.mjtSensor.mjSENS_JOINTPOS,
                        objtype=mujoco.mjtObj.mjOBJ_JOINT, objname=name)
    spec.option.disableflags |= int(LIMIT)
    spec.option.timestep = STEP
    return spec


def fitted_by_sysid(spec: mujoco.MjSpec, logs: list[RawLog]) -> mujoco.MjModel:
    """Return what mujoco.sysid makes of it: friction, armature, masses and their centres."""
    sysid: Any = mujoco.sysid
    model, parameters = spec.compile(), sysid.ParameterDict()

    def setter(joint: str, name: str) -> Callable[[Any, Any], None]:
        def modify(changed: Any, parameter: Any) -> None:
            if name == 'damping':
                changed.joint(joint).damping[0] = parameter.value[0]
            else:
                setattr(changed.joint(joint), name, float(parameter.value[0]))
        return modify

    for joint in JOINTS:
        for name, first, least, most in (
                ('damping', 0.1, 0.0, 2.0), ('frictionloss', 0.05, 0.0, 1.0),
                ('armature', 0.01, 1e-4, 0.2)):
            parameters.add(sysid.Parameter(f'{joint}_{name}', first, least, most,
                                           modifier=setter(joint, name)))
        parameters.add(sysid.body_inertia_param(
            spec, model, f'{joint}_link', inertia_type=sysid.InertiaType.MassIpos,
            scale_rot_inertia=True, ipos_bound_off=np.array([-0.05, 0.05])))
    stretches = [
        (sysid.create_initial_state(model, position, velocity),
         sysid.TimeSeries.from_control_names(
             STEP * np.arange(round(WINDOW * PERIOD / STEP)),
             np.repeat(commands(log, begin), round(PERIOD / STEP), axis=0), model),
         sysid.TimeSeries.from_names(PERIOD * np.arange(1, WINDOW),
                                     log.position[begin + 1:begin + WINDOW], model))
        for log in logs for begin, position, velocity in windows(log)]
    sequences = sysid.ModelSequences(
        'servos', spec, [f'stretch {i}' for i in range(len(stretches))],
        *(list(part) for part in zip(*stretches, strict=True)))
    found, _ = sysid.optimize(
        initial_params=parameters, verbose=False, max_iters=ROUNDS,
        residual_fn=sysid.build_residual_fn(models_sequences=[sequences]))
    return sysid.apply_param_modifiers(found, spec)


def test_servos_move_under_other_commands_as_the_model_says() -> None:
    train = [Plant().follow(random_commands(seed, 30.0)) for seed in (1, 2)]
    held_out = [Plant().follow(random_commands(seed, 20.0, pace))
                for seed, pace in ((11, 1.0), (12, 0.8), (13, 1.3))]
    begin = time.process_time()
    exported = identify(servo_robot(), train, 'feasible').model.to_mjcf()
    ours, seconds = exported.model(), [time.process_time() - begin]
    found = {'data sheet': described(exported.text, *DATA_SHEET).compile(), 'model': ours}
    if hasattr(mujoco.sysid, 'optimize'):  # pip install 'mujoco[sysid]'
        begin = time.process_time()
        found['mujoco.sysid'] = fitted_by_sysid(
            described(exported.text, 0.1, 0.05, 0.01), train)
        seconds.append(time.process_time() - begin)
    tips = {}
    for name, model in found.items():
        joints, tips[name] = errors(model, held_out)
        sys.stdout.write(f'{name}: {joints.round(1)} mrad, tip {tips[name]:.2f} mm\n')
    sys.stdout.write(f'fits: {np.round(seconds, 1)} s of processor\n')
    assert tips['model'] < 0.3 * tips['data sheet']
    assert tips['model'] < 1.1 * tips.get('mujoco.sysid', np.inf)
