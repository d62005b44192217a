"""identified/caution.py: kinematic error and hysteresis of gears where an identified model is
used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elastic_arms import ARM, LOOP, true_model, with_effects
from geared_robots import energy
from motions import Sines
from tolerances import ENERGY_DRIFT, PLANT_MOTION

from robot_dynid.cli.main import main
from robot_dynid.dynamics.elastic import coordinates
from robot_dynid.dynamics.gears import GearStates
from robot_dynid.errors import ExportWarning, ModelError, UsageError
from robot_dynid.identified.caution import cautions, states_leave_out, stiff_leaves_out
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.simulation.arm import Arm, record
from robot_dynid.simulation.plant import Plant
from robot_dynid.types import FloatArray, Samples

MODEL, TRUTH = with_effects()
WAVY, WAVY_TRUTH = with_effects(loop=(0.0, 0.0))


def motion(seconds: float, step: float) -> FloatArray:
    """Return a motion (3, T, 2) of the links that begins at rest."""
    time = np.arange(round(seconds / step)) * step
    turn, size = np.array([3.0, 5.0]), np.array([0.4, 0.5])
    phase = time[:, None] * turn
    return np.array([size * (1.0 - np.cos(phase)), size * turn * np.sin(phase),
                     size * turn**2 * np.cos(phase)])


def without(model: IdentifiedModel, *symbols: str) -> IdentifiedModel:
    """Return the model with these parameters of both joints at zero."""
    known = {**model.standard, **{f'{p}{j}': 0.0 for p in symbols for j in (1, 2)}}
    return replace(model, values=model.reduction.base(
        [known[name] for name in model.reduction.standard]))


def test_a_rollout_ends_where_mujoco_ends() -> None:
    """The plant has the same effects; models without them end elsewhere.

    Without dry friction: its ramp is not MuJoCo's, and decides at rest.
    """
    plant, start = Plant(ARM, replace(TRUTH, coulomb=np.zeros(2))), np.array([-0.5, 0.8])
    plant.set_state(start, np.zeros(2))
    (q, qd), (theta, theta_d) = plant.state(), plant.motor_state()
    waves = np.sin(np.outer(1e-3 * np.arange(1000), [2.0, 7.0, 15.0]))
    effort = MODEL.gravity(start) + waves @ np.array([[60.0, 20.0], [-30.0, 15.0], [40.0, -10.0]])
    for row in effort:
        plant.step(row)
    twist = plant.motor_state()[0] - plant.state()[0]
    off = []
    for whole in (MODEL, WAVY, true_model()):
        model = without(whole, 'fc')
        found = model.rollout(q, qd, np.repeat(effort, 4, axis=0)[None], 2.5e-4, (theta, theta_d))
        off.append(np.abs(found.motor_position[0, -1] - found.position[0, -1] - twist).max())
        if whole is MODEL:
            assert np.ptp(found.position[0], axis=0).max() > 0.5
            assert np.abs(found.position[0, -1] - plant.state()[0]).max() < PLANT_MOTION
    assert off[0] < 0.1 * min(off[1:]), off


def test_motions_of_gears_with_effects_are_each_by_itself() -> None:
    """However many run beside each other, and in however many pieces."""
    rng = np.random.default_rng(3)
    q = rng.uniform(-1.0, 1.0, (40, 2))
    effort = np.tile(30.0 * rng.normal(size=(40, 1, 2)), (1, 100, 1))
    many = MODEL.rollout(q, 0.0 * q, effort, 1e-3, (q, 0.0 * q))
    for k in (0, 39):
        alone = MODEL.rollout(q[k], 0.0 * q[k], effort[k:k + 1], 1e-3, (q[k], 0.0 * q[k]))
        np.testing.assert_array_equal(alone.motor_position[0], many.motor_position[k])


def test_kinematic_error_takes_no_energy() -> None:
    """A free arm on undamped gears keeps its energy, whose springs see the error."""
    rest = without(WAVY, 'fv', 'fc', 'f0', 'D')
    moving = rest.elastic_motion
    q0 = np.array([[0.4, -0.9]])
    theta0 = q0 + 0.02
    found = rest.rollout(q0, [[1.0, -2.0]], np.zeros((1, 2000, 2)), 2.5e-4,
                         (theta0, [[1.0, -2.0]]))
    x = np.hstack([found.position[0], found.motor_position[0]])
    v = np.hstack([found.velocity[0], found.motor_velocity[0]])
    kinetic, potential = energy(rest.robot, moving.gears, x, v)
    own = 0.5 * (x[:, 2:] - x[:, :2])**2 @ moving.gears.stiffness
    bent = moving.gears.deflection(x[None, :, 2:].repeat(2, 0), x[None, :, :2].repeat(2, 0))[0]
    stretched = 0.5 * bent**2 @ moving.gears.stiffness
    whole = kinetic + potential - own + stretched
    assert np.ptp(whole) < ENERGY_DRIFT * kinetic.max()
    assert np.ptp(whole) < 0.1 * np.ptp(stretched - own)


@pytest.mark.parametrize('spins', [False, True])
def test_forward_of_inverse_is_the_motion(spins: bool) -> None:
    """Also where rotors spin on moving links, so that motors act on the torque of gears."""
    axes = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    spinning = replace(ARM, drive=replace(ARM.drive, rotor_axes=axes))
    model, wanted = true_model(spinning) if spins else WAVY, motion(1.0, 1e-3)
    drive = model.inverse_elastic(*wanted, 1e-3)
    links, motors = model.forward_elastic(wanted[0], wanted[1], drive.effort, drive.position,
                                          drive.velocity)
    size = np.abs(drive.acceleration).max()
    np.testing.assert_allclose(links, wanted[2], rtol=0.0, atol=1e-11 * size)
    np.testing.assert_allclose(motors, drive.acceleration, rtol=0.0, atol=1e-11 * size)


def test_motors_of_a_motion_move_at_their_rates() -> None:
    """Finite differences; the waves are by far the most of the acceleration."""
    step = 2.5e-5  # waves turn by 0.013 in it, the square of that over 6
    wanted = motion(0.5, step)
    drive = WAVY.inverse_elastic(*wanted, step)
    inner = slice(20, -20)
    for rate, values, least in ((drive.velocity, drive.position, 0.1),
                                (drive.acceleration, drive.velocity, 10.0)):
        slope = np.gradient(values, step, axis=0)[inner]
        assert np.abs(rate[inner]).max() > least
        assert np.abs(slope - rate[inner]).max() < 2e-4 * np.abs(rate[inner]).max()
    smooth = true_model().inverse_elastic(*wanted, step)
    assert np.abs(drive.acceleration - smooth.acceleration)[inner].max() \
        > 0.3 * np.abs(smooth.acceleration).max()


@pytest.mark.parametrize('model', [WAVY, MODEL], ids=['waves', 'both'])
def test_a_rollout_of_inverse_is_the_motion(model: IdentifiedModel) -> None:
    """Two integrations: of the gear under the torque of its link, of the arm under its drives."""
    step = 2.5e-4
    wanted = motion(0.8, step)
    drive = model.inverse_elastic(*wanted, step)
    held = 0.5 * (drive.effort[1:] + drive.effort[:-1])
    found = model.rollout(wanted[0, 0], wanted[1, 0], held[None], step,
                          (drive.position[0], drive.velocity[0]))
    twist = drive.position - wanted[0]
    ours = found.motor_position[0] - found.position[0]
    assert np.abs(found.position[0] - wanted[0, 1:]).max() < 3e-4
    assert np.abs(ours - twist[1:]).max() < 2e-3 * np.ptp(twist)


def test_external_torque_and_wrong_motions() -> None:
    q, qd, qdd = motion(0.2, 1e-3)
    push = np.tile([3.0, -2.0], (len(q), 1))
    with_it, without = (WAVY.inverse_elastic(q, qd, qdd, 1e-3, external)
                        for external in (push, None))
    bent = (without.position - with_it.position) * [WAVY.standard['K1'], WAVY.standard['K2']]
    np.testing.assert_allclose(bent[50:], push[50:], rtol=0.02)  # but for the slope of the error
    for wrong in ((q[0], qd[0], qdd[0], 1e-3), (q[:2], qd[:2], qdd[:2], 1e-3), (q, qd, qdd, 0.0)):
        with pytest.raises(UsageError):
            WAVY.inverse_elastic(*wrong)
    back = replace(WAVY, values=np.where([name.startswith('Ks') for name in WAVY.names],
                                         1e3 * WAVY.values, WAVY.values))
    with pytest.raises(ModelError, match='joint joint_1: its kinematic error would reverse the'):
        back.inverse_elastic(q, qd, qdd, 1e-3)


def test_the_command_gives_the_motion_of_the_motors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it is told the time between states; else gears are stiff, and it says so."""
    wanted, model_file, states = motion(0.1, 1e-3), tmp_path / 'm.yaml', tmp_path / 'motion.csv'
    header = ','.join(f'{channel}.{joint}' for channel in ('position', 'velocity', 'acceleration')
                      for joint in WAVY.joints)
    np.savetxt(states, np.hstack(list(wanted)), delimiter=',', fmt='%.17g', header=header,
               comments='')

    def run(model: IdentifiedModel, *words: str) -> dict[str, Any]:
        model.save(model_file)
        assert main(['inverse', str(model_file), str(states), '--json', *words]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    drive, found = WAVY.inverse_elastic(*wanted, 1e-3), run(WAVY, '--dt', '0.001')
    assert found['warnings'] == []
    for name, expected in (('effort', drive.effort), ('motor_position', drive.position),
                           ('motor_velocity', drive.velocity)):
        np.testing.assert_allclose(found[name], expected, rtol=1e-12, atol=1e-12)
    stiff = run(WAVY)
    assert 'motor_position' not in stiff
    assert any('taken as stiff without --dt SECONDS' in text for text in stiff['warnings'])
    true_model(ARM.rigid).save(model_file)
    assert main(['inverse', str(model_file), str(states), '--dt', '0.001']) == 2
    assert 'this model has rigid joints only' in capsys.readouterr().err


def test_the_torque_of_the_gears_is_that_of_the_fit() -> None:
    """The columns of the fit times their values, along a motion of the simulated arm."""
    log = record(Arm(MODEL.robot, TRUTH), Sines(ARM, 1.0), 1000.0)
    x = coordinates(log.position, log.motor_position, MODEL.elastic_motion.gears)
    v = coordinates(log.velocity, log.motor_velocity, MODEL.elastic_motion.gears)
    samples = Samples(MODEL.joints, log.time, x, v, np.zeros_like(x))
    gears, known = MODEL.mechanism.gears, MODEL.standard
    expected = np.zeros((len(x), 2))
    for block in MODEL.torque_model.blocks:
        if type(block).__name__ not in ('Springs', 'KinematicError', 'Hysteresis'):
            continue
        out = np.zeros((4, len(block.names), len(x)))
        block.fill(samples, block.history(samples), np.arange(len(block.names)), out)
        rows = np.einsum('jct,c->tj', out, [known[name] for name in block.names])
        expected += rows[:, 2:] - rows[:, :2]  # what motors bear beside it is in both
    bent = gears.deflection(np.array([x[:, 2:], v[:, 2:]]), np.array([x[:, :2], v[:, :2]]))
    begins = np.arange(len(x)) == 0
    loop, _, width = GearStates(gears).along(bent[0], begins)
    np.testing.assert_allclose(gears.torque(bent) + loop, expected, rtol=1e-9, atol=1e-9)
    assert np.ptp(loop, axis=0) == pytest.approx(2.0 * np.array(LOOP), rel=0.01)
    np.testing.assert_allclose(width[0], LOOP)
    assert (width[-1] < 1e-3 * np.array(LOOP)).all(), 'the past is forgotten'


def test_cautions_and_exports_name_gear_effects_left_out() -> None:
    assert stiff_leaves_out(MODEL) == (
        'Left out: kinematic error of the gears of joint_1, joint_2.',
        'Left out: hysteresis of the gears of joint_1, joint_2.')
    assert states_leave_out(MODEL) == (
        'Left out: hysteresis of the gears of joint_1, joint_2: states by themselves have no '
        'past.',)
    assert set(stiff_leaves_out(MODEL)) <= set(cautions(MODEL))
    assert stiff_leaves_out(true_model()) == () and states_leave_out(WAVY) == ()
    others = list(MODEL.standard.values())[ARM.nominal.size:]
    made = replace(MODEL, feasible=np.array([*ARM.nominal.ravel(), *others]))
    for written in (made.to_mjcf(), made.to_sdf(), made.to_urdf()):
        told = ' '.join(written.warnings)
        assert 'kinematic error of gears: joint_1, joint_2' in told
        assert 'hysteresis of gears: joint_1, joint_2' in told
    with pytest.warns(ExportWarning, match='Left out: kinematic error'):
        made.to_casadi()
