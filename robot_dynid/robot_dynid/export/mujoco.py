"""Accelerations of MuJoCo with the model of an arm, compared with ours."""

from __future__ import annotations

from copy import copy
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.export.text_file import read_by
from robot_dynid.export.written import FRICTION_IMPEDANCE, Motion, Written, rotor_name
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import parse_urdf
from robot_dynid.types import FloatArray

try:
    import mujoco
    from mujoco import MjModel
except ImportError as error:
    raise MissingDependency.of('a simulation needs MuJoCo', 'simulation') from error

#: first version with correct inertia of links that others are fixed to
OLDEST = 3, 16
if tuple(map(int, mujoco.__version__.split('.')[:2])) < OLDEST:
    raise MissingDependency.of(f'MuJoCo {mujoco.__version__} merges fixed links wrongly; 3.16 or '
                               'newer is needed', 'simulation')

__all__ = ['MjModel', 'accelerations', 'check', 'deviation', 'mujoco', 'require_mesh',
           'urdf_model']

#: dry friction sticks if |velocity| is below this multiple of |acceleration| * step
HELD_STEPS = 2.0


def urdf_model(robot: RobotModel, urdf_text: str) -> mujoco.MjModel:
    """Return MuJoCo's model of a URDF of ``robot``, without shapes; other joints are locked.

    Raises ModelError if MuJoCo refuses the text.
    """
    root = parse_urdf(urdf_text, 'URDF')
    for link in root.findall('link'):
        for element in (*link.findall('visual'), *link.findall('collision')):
            link.remove(element)
    with read_by('MuJoCo', 'URDF'):
        spec = mujoco.MjSpec.from_string(tostring(root, encoding='unicode'))
        locked = [joint for joint in spec.joints if joint.name not in robot.joints]
        for element in (*spec.equalities, *locked):  # mimic joints lose their leader
            spec.delete(element)
        spec.option.gravity = np.asarray(robot.gravity)
        model = spec.compile()
    model.dof_solref[:] = -1.0, -1.0 / float(model.opt.timestep)
    model.dof_solimp[:, :2] = FRICTION_IMPEDANCE
    return model


def require_mesh(mesh: Element, name: str) -> None:
    """Raise ModelError if MuJoCo refuses a <mesh>, called ``name``, of a collision geom."""
    root = Element('mujoco')
    SubElement(root, 'asset').append(mesh)
    SubElement(SubElement(root, 'worldbody'), 'geom', type='mesh', mesh=mesh.get('name', ''))
    with read_by('MuJoCo', name):
        mujoco.MjModel.from_xml_string(tostring(root, encoding='unicode'))


def check(written: Written, model: mujoco.MjModel) -> dict[str, Any]:
    """Return the error of MuJoCo's accelerations, as `deviation`, and its version."""
    return {'error': deviation(written, model), 'tool': f'MuJoCo {mujoco.__version__}'}


def deviation(written: Written, model: mujoco.MjModel) -> float | None:
    """Return the largest error of MuJoCo's accelerations relative to ours, joint by joint.

    In random states with sliding dry friction; without joint limits and contacts.
    """
    motion = Motion.of(written, HELD_STEPS * float(model.opt.timestep))
    return motion.error(accelerations(written, model, motion))


def accelerations(written: Written, model: mujoco.MjModel, motion: Motion) -> FloatArray:
    """Return MuJoCo's accelerations (K, N) in the states of ``motion``."""
    robot = written.arm.robot
    gears = written.mechanism.gears
    elastic = [robot.joints[j] for j in gears.joints] if gears is not None else []
    names = (*robot.joints, *map(rotor_name, elastic))
    ids = [model.joint(name).id for name in names]
    places, rows = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
    motors = [model.actuator(name).id for name in robot.joints] if model.nu else []
    model, flags = copy(model), mujoco.mjtDisableBit
    model.opt.disableflags |= int(flags.mjDSBL_CONTACT) | int(flags.mjDSBL_LIMIT) | int(
        flags.mjDSBL_CLAMPCTRL)
    model.actuator_forcelimited[:], model.actuator_delay[:] = False, 0.0
    gain, place, speed = (table[motors, i] for table, i in (
        (model.actuator_gainprm, 0), (model.actuator_biasprm, 1), (model.actuator_biasprm, 2)))
    data, result = mujoco.MjData(model), np.empty_like(motion.x)
    for k, (x, v, effort) in enumerate(zip(motion.x, motion.v, motion.effort, strict=True)):
        data.qpos[places], data.qvel[rows], data.qacc_warmstart[:] = x, v, 0.0
        if motors:
            n = len(motors)
            data.ctrl[motors] = (effort - place * x[:n] - speed * v[:n]) / gain
        else:
            data.qfrc_applied[rows] = effort
        mujoco.mj_forward(model, data)
        result[k] = data.qacc[rows]
    return result
