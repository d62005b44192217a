"""MuJoCo model of an arm: links of its description, motors with friction, elastic gears."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.dynamics.rotors import SpinningRotors
from robot_dynid.errors import RobotError
from robot_dynid.export.mujoco import mujoco
from robot_dynid.export.written import FRICTION_IMPEDANCE, rotor_name
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import source_text
from robot_dynid.simulation.truth import Truth
from robot_dynid.types import FloatArray

__all__ = ['TIMESTEP', 'build_model', 'elastic_accelerations', 'motor_name', 'mujoco']

TIMESTEP = 2.5e-4
# The friction constraint softens where |qd| < |qdd| / FRICTION_RATE; RK4 stays stable up to 2.7.
FRICTION_RATE = 2.0 / TIMESTEP
#: bandwidth [rad/s] of a position servo, so that weight and friction bend it by less than 0.02
#: rad, and time constant [s] of what it makes of its command
BANDWIDTH, COMMAND_FILTER = 50.0, 0.03
#: mass and inertia of the rotor body that MuJoCo requires; its real inertia is an armature
ROTOR_BODY = 1e-9


def build_model(robot: RobotModel, truth: Truth) -> mujoco.MjModel:
    """Compile the MuJoCo model of ``robot`` with ``truth``; raises RobotError as `build_spec`."""
    return compile_spec(robot, build_spec(robot, truth))


def compile_spec(robot: RobotModel, spec: mujoco.MjSpec) -> mujoco.MjModel:
    """Compile a specification of ``robot``; raises RobotError when MuJoCo refuses it."""
    try:
        return spec.compile()
    except ValueError as error:
        raise RobotError(f'{robot.source}: MuJoCo cannot use it: {error}; give every moving '
                         'link a mass and an inertia') from None


def servo_mjcf(robot: RobotModel, truth: Truth) -> str:
    """Return MJCF of ``robot`` with ``truth`` and a position servo of each joint's name.

    Each servo is critically damped, with BANDWIDTH for the inertia at zero, and smooths its
    command over COMMAND_FILTER: a controller holds that for a cycle, and a stiff servo answers
    each step with a torque that, measured once per cycle, passes for negative friction. Raises
    RobotError as `build_spec`.
    """
    spec = build_spec(robot, truth)
    model = compile_spec(robot, spec)
    data, column = mujoco.MjData(model), np.zeros(model.nv)
    mujoco.mj_forward(model, data)
    for joint in robot.joints:
        motor = motor_name(joint, truth)
        dof = int(model.joint(motor).dofadr[0])
        mujoco.mj_mulM(model, data, column, np.eye(model.nv)[dof])
        servo = spec.add_actuator(name=joint, target=motor, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.set_to_position(kp=BANDWIDTH**2 * column[dof], kv=2.0 * BANDWIDTH * column[dof],
                              timeconst=COMMAND_FILTER)
        if hasattr(servo, 'ctrlspec'):  # the plugin of ros2_control has an older MuJoCo
            servo.ctrlspec = 0
    compile_spec(robot, spec)
    return str(spec.to_xml())


def build_spec(robot: RobotModel, truth: Truth) -> mujoco.MjSpec:
    """Build the MuJoCo specification of ``robot`` with ``truth``.

    Joints the robot does not list are locked at zero. Raises RobotError if MuJoCo refuses the URDF
    (it requires a mass and a valid inertia on every moving link), and for rotors that spin on
    moving links, which are not simulated.
    """
    if robot.linkage is not None:
        raise RobotError(f'{robot.name}: coupled joints (<mimic>) are not simulated')
    carried = [j for j, rotor_inertia in zip(robot.joints, truth.rotor_inertia, strict=True)
               if rotor_inertia > 0.0 and SpinningRotors(robot).mounted(robot.index(j))]
    if carried:
        raise RobotError(f'{robot.name}: the simulation supports no rotors that spin on moving '
                         f'links; remove rotor_axes of {", ".join(carried)} from the robot YAML')
    try:
        spec = mujoco.MjSpec.from_string(source_text(robot))
    except ValueError as error:
        raise RobotError(f'{robot.source}: MuJoCo cannot read it: {error}') from None
    base = spec.body(robot.base_link)
    if base not in (None, spec.worldbody) and base.parent != spec.worldbody:
        raise RobotError(f'{robot.source}: base_link {robot.base_link} is not the root of the '
                         'URDF, which the simulation requires; set base_link to its root link')
    spec.compiler.inertiafromgeom = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE)
    spec.compiler.discardvisual = True
    spec.option.timestep, spec.option.tolerance = TIMESTEP, 1e-12
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    flag = mujoco.mjtDisableBit
    spec.option.disableflags |= int(flag.mjDSBL_CONTACT) | int(flag.mjDSBL_LIMIT)
    spec.option.gravity = np.asarray(robot.gravity)
    # no contacts, no mesh files needed, mimic joints are locked
    for element in (*spec.geoms, *spec.meshes, *spec.equalities):
        spec.delete(element)
    for joint in list(spec.joints):
        if joint.name not in robot.joints:
            spec.delete(joint)
        else:  # friction is that of the truth; <dynamics> of the URDF is ignored
            joint.damping, joint.frictionloss = _linear(joint.damping, 0.0), 0.0
    _add_motors(spec, robot, truth)
    return spec


def motor_name(joint: str, truth: Truth) -> str:
    """Return the MuJoCo joint driven by the motor of ``joint``."""
    return rotor_name(joint) if joint in truth.drives else joint


def _add_motors(spec: mujoco.MjSpec, robot: RobotModel, truth: Truth) -> None:
    """Add friction and rotor of every motor to its joint, or to the joints it drives."""
    coupling = np.eye(robot.n) if robot.drive.coupling is None else robot.drive.coupling
    for i, name in enumerate(robot.joints):
        if np.array_equal(coupling[i], np.eye(robot.n)[i]):
            if name in truth.drives:
                _add_drive(spec, robot, truth, name)
            motor = spec.joint(motor_name(name, truth))
        else:
            if name in truth.drives or any(amount is not None and amount[i] > 0.0 for amount in (
                    truth.stribeck, truth.presliding)):
                raise RobotError(f'{robot.name}: the motor of {name} drives several joints; '
                                 'remove its drive, stribeck and presliding')
            motor = spec.add_tendon(name=f'{name}_motor')
            for j in np.flatnonzero(coupling[i]):
                motor.wrap_joint(robot.joints[j], float(coupling[i, j]))
        motor.damping = _linear(motor.damping, truth.viscous[i])
        motor.armature = truth.rotor_inertia[i]
        motor.frictionloss = truth.coulomb[i]
        motor.solref_friction = [-1.0, -FRICTION_RATE]
        motor.solimp_friction = [FRICTION_IMPEDANCE, FRICTION_IMPEDANCE, 1e-3, 0.5, 2.0]


def _add_drive(spec: mujoco.MjSpec, robot: RobotModel, truth: Truth, joint: str) -> None:
    """Add a separate rotor body, and the linear spring and damper to its joint."""
    if not truth.rotor_inertia[robot.index(joint)] > 0.0:
        raise RobotError(f'{robot.name}: the drive of {joint} needs a positive rotor_inertia')
    drive, name = truth.drives[joint], motor_name(joint, truth)
    body = spec.worldbody.add_body(name=name, mass=ROTOR_BODY, inertia=[ROTOR_BODY] * 3)
    body.explicitinertial = True
    body.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0.0, 0.0, 1.0])
    spring = spec.add_tendon(name=f'{joint}_gear')
    spring.springlength = [0.0, 0.0]
    spring.stiffness = _linear(spring.stiffness, drive.stiffness)
    spring.damping = _linear(spring.damping, drive.damping)
    spring.wrap_joint(name, 1.0)
    spring.wrap_joint(joint, -1.0)


def _linear(given: object, value: float) -> object:
    """Return a coefficient in MuJoCo's format: a number, since version 4 a polynomial."""
    return [value, *np.zeros(np.size(given) - 1)] if np.ndim(given) else value  # type: ignore


def elastic_accelerations(
    robot: RobotModel, truth: Truth, states: Sequence[FloatArray], ramp: float
) -> tuple[FloatArray, FloatArray]:
    """Return MuJoCo's accelerations of links and motors (K, n).

    ``states`` are position and velocity of links, those of motors, and the motors' effort, each
    (K, n); without a drive in ``truth`` motor and link coincide. Dry friction grows linearly
    within +-ramp (rad/s) of zero speed; gears are linear, without kinematic error and hysteresis.
    """
    model = build_model(robot, truth)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS)
    data = mujoco.MjData(model)
    link, motor = (np.array([int(model.joint(name).dofadr[0]) for name in names]) for names in (
        robot.joints, [motor_name(joint, truth) for joint in robot.joints]))
    rigid = link == motor
    links, motors = np.empty_like(states[0]), np.empty_like(states[0])
    for k, (q, qd, theta, theta_d, effort) in enumerate(zip(*states, strict=True)):
        speed = np.where(rigid, qd, theta_d)
        data.qpos[motor], data.qvel[motor] = theta, theta_d
        data.qpos[link], data.qvel[link] = q, qd
        data.qfrc_applied[:] = 0.0
        data.qfrc_applied[motor] = effort - truth.dry(speed) * np.clip(speed / ramp, -1.0, 1.0)
        data.qacc_warmstart[:] = 0.0
        mujoco.mj_forward(model, data)
        links[k], motors[k] = data.qacc[link], data.qacc[motor]
    return links, motors
