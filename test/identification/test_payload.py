"""Payloads from simulated recordings with known truth, from bad input, and from the UR10e."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from identified_models import nominal_model
from payload_recordings import (
    motion,
    pair,
    random_chain,
    random_payload,
    recording,
    torque_robot,
)
from scipy import stats
from tolerances import (
    COVERAGE,
    LAG,
    PAYLOAD_EXACT,
    PAYLOAD_MASS,
    PAYLOAD_MODEL,
    PAYLOAD_TORQUE,
    SECOND_ORDER,
    SOLVER,
)

from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.effects.links import AttachedBody
from robot_dynid.estimation.drive_gains import DriveGains, GainStatus
from robot_dynid.estimation.feasible.body import fit_body
from robot_dynid.estimation.information import FILTERED, Batch, triangle
from robot_dynid.estimation.least_squares import solve
from robot_dynid.estimation.payload import PayloadStatus
from robot_dynid.estimation.uncertainty.between_recordings import (
    SCATTER_STRETCHES,
    deviations,
    leave_one_out,
)
from robot_dynid.identification.identify import identify
from robot_dynid.identification.payload import (
    Equations,
    Match,
    arm_effort,
    identify_payload,
    moderate_effort,
    reduce_equations,
    set_load,
    set_payload,
    settings_for,
    warnings_of,
)
from robot_dynid.identification.recipe import Recipe
from robot_dynid.io.log import load_log
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.inertia import com_from_parameters, move_parameters, pseudo_inertia
from robot_dynid.robot.model import GAINS_STD
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.alignment import align
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import RawLog, Samples, take

MASS = 2.805
RNG = np.random.default_rng(5)


def torque_error(robot, found, payload, seed=77):
    """Return the error of the payload's torque in a new motion, relative to its largest."""
    body = AttachedBody.on(robot)
    log = recording(robot, motion(robot, seed, 5.0))
    samples = prepare(robot, repair(robot, log), Preprocessing(20.0))
    columns = body.columns(samples)
    wrong = np.einsum('nks,k->ns', columns, found.parameters - payload)
    return np.abs(wrong).max() / np.abs(np.einsum('nks,k->ns', columns, payload)).max()


@pytest.mark.parametrize('name', ['ur10e', 'seven_axis', 'puma560'])
def test_the_difference_gives_the_payload(name):
    robot, payload = torque_robot(name), random_payload(np.random.default_rng(3))
    loaded, unloaded = pair(robot, payload)
    found = identify_payload(robot, [loaded], [unloaded]).estimate
    mass, com, inertia = com_from_parameters(payload)
    assert found.status is PayloadStatus.OK and found.directions == ()
    assert found.mass == pytest.approx(mass, rel=PAYLOAD_EXACT)
    np.testing.assert_allclose(found.centre_of_mass, com, rtol=0.0, atol=PAYLOAD_EXACT)
    np.testing.assert_allclose(found.inertia, inertia, rtol=0.0, atol=PAYLOAD_EXACT * mass)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.0, 0.5))
def test_identify_payload_gives_a_feasible_body_for_any_robot_and_noise(seed, noise):
    robot = random_chain(seed)
    payload = random_payload(np.random.default_rng(seed))
    found = identify_payload(robot, *([log] for log in pair(robot, payload, seed, 10.0, noise)))
    estimate = found.estimate
    least = np.linalg.eigvalsh(pseudo_inertia(estimate.parameters))
    assert least[0] >= -1e-7 * least[-1]
    assert estimate.constrained or estimate.least_eigenvalue > -1e-9
    if noise == 0.0:
        assert torque_error(robot, estimate, payload) < PAYLOAD_TORQUE


@pytest.mark.parametrize('seeds', [8, pytest.param(25, marks=pytest.mark.soak)])
def test_intervals_hold_the_truth(seeds):
    robot, held = torque_robot('ur10e'), []
    for seed in range(seeds):
        payload = random_payload(np.random.default_rng(seed), 5.0)
        loaded, unloaded = pair(robot, payload, seed, 25.0, noise=0.05)
        found = identify_payload(robot, [loaded], [unloaded]).estimate
        _, com, _ = com_from_parameters(payload)
        error = np.array([found.mass - payload[0], *(found.centre_of_mass - com)])
        std = np.array([found.mass_std, *found.centre_of_mass_std])
        held.append(np.abs(error) < found.margins * std)
    assert COVERAGE[0] <= np.mean(held) <= 1.0
    assert found.mass_std < PAYLOAD_MASS * found.mass


@pytest.mark.parametrize('seeds', [6, pytest.param(15, marks=pytest.mark.soak)])
def test_intervals_hold_the_truth_under_friction_that_grows_with_the_load(seeds):
    """As much of it as the UR10e has; the estimator does not know of it."""
    robot, errors = torque_robot('ur10e'), []
    for seed in range(seeds):
        payload = random_payload(np.random.default_rng(seed), 5.0)
        same = motion(robot, seed, 30.0)
        loaded, unloaded = (recording(robot, same, p, 2 * seed + k, 0.02, grip=0.085)
                            for k, p in enumerate((payload, None)))
        found = identify_payload(robot, [loaded], [unloaded]).estimate
        errors.append((found.mass - 5.0) / (found.margins[0] * found.mass_std))
    assert np.mean(np.abs(errors) < 1.0) > 0.8
    assert abs(np.mean(errors)) < 0.5


@pytest.mark.parametrize(('kind', 'stated', 'share'), [
    ('torque', None, 0.0), ('torque', 0.01, 0.01), ('current', None, GAINS_STD),
    ('current', 0.05, 0.05)])
def test_the_mass_is_as_uncertain_as_the_drive_gains(kind, stated, share):
    robot = load_robot('ur10e')
    given = None if stated is None else np.full(robot.n, stated)
    robot = replace(robot, drive=replace(robot.drive, kind=kind, gains_std=given))
    found = identify_payload(robot, *([log] for log in pair(
        robot, random_payload(np.random.default_rng(3)), noise=0.02))).estimate
    assert found.mass_std_gains == pytest.approx(share * found.mass, rel=SECOND_ORDER)
    assert found.mass_std > found.mass_std_gains
    if not share:
        assert found.degrees_of_freedom.tolist() == 4 * [SCATTER_STRETCHES - 1]


def test_gains_of_single_joints_move_the_centre_of_mass():
    robot = torque_robot('ur10e')
    logs = pair(robot, random_payload(np.random.default_rng(3)), noise=0.02)
    wrist = np.where(np.arange(robot.n) == 4, 0.05, 0.0)
    both = [identify_payload(replace(robot, drive=replace(robot.drive, gains_std=std)),
                             *([log] for log in logs)).estimate
            for std in (wrist, np.full(robot.n, 0.05))]
    assert np.all(both[0].mass_std_gains < 0.5 * both[1].mass_std_gains)
    without = identify_payload(robot, *([log] for log in logs)).estimate
    assert np.all(both[0].centre_of_mass_std > without.centre_of_mass_std)


def test_a_model_of_the_arm_gives_the_payload():
    arm = nominal_model('ur10e', kind='torque')
    payload = random_payload(np.random.default_rng(8))
    _, q, qd, qdd = same = motion(arm.robot, 4, 20.0)
    log = recording(arm.robot, same, payload, friction=0.0)
    bare = recording(arm.robot, same, friction=0.0)
    drifted = 1.3 * arm.friction(q, qd) + 0.5  # friction and offsets of another day
    measured = log.effort - bare.effort + arm.inverse(q, qd, qdd) - arm.friction(q, qd) + drifted
    lag = np.clip(log.time - 0.001, 0.0, None)  # the model says that effort is 1 ms late
    late = np.stack([np.interp(lag, log.time, c) for c in measured.T], axis=1)
    found = identify_payload(arm.robot, [replace(log, effort=late)], model=arm).estimate
    assert found.mass == pytest.approx(payload[0], rel=PAYLOAD_MODEL)
    np.testing.assert_allclose(found.centre_of_mass, payload[1:4] / payload[0],
                               rtol=0.0, atol=PAYLOAD_MODEL)


def test_identify_payload_names_what_a_planar_arm_cannot_show():
    robot = torque_robot('planar_3r')
    loaded, unloaded = pair(robot, random_payload(RNG))
    found = identify_payload(robot, [loaded], [unloaded]).estimate
    assert found.status is PayloadStatus.NOT_EXCITED
    assert {'mz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz'} <= set(found.not_excited)
    assert 'mz' in found.directions and np.isnan(found.centre_of_mass[2])
    assert np.isfinite(found.parameters_std[9]) and set_load(found) is None


def test_identify_payload_leaves_inertias_open_when_one_joint_moves():
    robot = torque_robot('ur10e')
    same = motion(robot, 1, 20.0, moving=[5])
    payload = random_payload(RNG)
    found = identify_payload(robot, [recording(robot, same, payload, 1, 0.01)],
                             [recording(robot, same, None, 2, 0.01)]).estimate
    assert found.status is PayloadStatus.NOT_EXCITED
    assert {'Ixx', 'Ixy', 'Iyy'} <= {*found.not_excited} and 'Izz' not in found.not_excited
    assert found.constrained or found.least_eigenvalue > 0.0


def test_the_payload_of_a_planar_arm_is_found_within_seconds():
    robot, payload = torque_robot('planar_3r'), random_payload(np.random.default_rng(4), 5.0)
    loaded, unloaded = pair(robot, payload, seconds=4.0)
    tool = identify_payload(robot, [loaded], [unloaded]).estimate
    assert tool.mass == pytest.approx(5.0, rel=PAYLOAD_EXACT)
    # it turns about z alone, along which the centre of mass makes no torque
    np.testing.assert_allclose(tool.centre_of_mass[:2], payload[1:3] / 5.0, rtol=0.0,
                               atol=PAYLOAD_EXACT)
    assert np.isnan(tool.centre_of_mass[2])


def test_an_arm_without_payload_is_reported():
    robot = torque_robot('ur10e')
    found = identify_payload(robot, *([log] for log in pair(robot, None, noise=0.02))).estimate
    assert found.status is PayloadStatus.NO_PAYLOAD
    assert np.isnan(found.centre_of_mass).all() and set_payload(found) is None


def test_clocks_may_differ_by_a_fraction_of_a_sample_and_drift():
    robot = torque_robot('ur10e')
    lag, drift = 1234.56789, 1e-4
    time, q, qd, qdd = motion(robot, 1, 30.0)
    loaded = recording(robot, (time, q, qd, qdd), random_payload(RNG), 1)
    unloaded = recording(robot, (time, q, qd, qdd), None, 2)
    middle = 0.5 * (time[0] + time[-1])
    late = replace(take(unloaded, slice(300, None)),
                   time=unloaded.time[300:] * (1.0 + drift) + lag - drift * middle)
    a, b = (prepare(robot, repair(robot, log), Preprocessing(6.5, decimate=False))
            for log in (loaded, late))
    found = align(a, b)
    assert found.lag == pytest.approx(lag, abs=LAG)
    assert found.drift == pytest.approx(drift, abs=LAG / 30.0)
    assert found.first.time[0] >= 3.0


def test_motions_whole_turns_apart_are_aligned():
    """As a driver reports them that wraps, where the motion begins near the seam."""
    robot = torque_robot('ur10e')
    loaded, unloaded = pair(robot, random_payload(RNG))
    a, b = (prepare(robot, repair(robot, log), Preprocessing(6.5)) for log in (loaded, unloaded))
    turned = replace(b, position=b.position + 2.0 * np.pi * np.array([1, 0, -1, 0, 2, 0]))
    assert align(a, turned).lag == pytest.approx(align(a, b).lag, abs=1e-9)


def test_the_frame_may_be_any_link_behind_the_last_joint():
    robot = torque_robot('ur10e')
    tool = replace(robot.links[-1], name='tool', placement=np.array([
        [0.0, -1.0, 0.0, 0.1], [1.0, 0.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.0, 1.0]]))
    robot = replace(robot, links=(*robot.links, tool))
    payload = random_payload(RNG)
    loaded, unloaded = pair(robot, payload, link='tool')
    inside = identify_payload(robot, [loaded], [unloaded], link='tool')
    flange = identify_payload(robot, [loaded], [unloaded])
    assert (inside.link, flange.link) == ('tool', robot.bodies[-1])
    np.testing.assert_allclose(inside.estimate.parameters, payload,
                               rtol=0.0, atol=PAYLOAD_EXACT * 10.0)
    np.testing.assert_allclose(move_parameters(inside.estimate.parameters, tool.placement),
                               flange.estimate.parameters, rtol=0.0, atol=PAYLOAD_EXACT * 10.0)


def test_services_take_the_result():
    robot, payload = torque_robot('ur10e'), random_payload(np.random.default_rng(2))
    found = identify_payload(robot, *([log] for log in pair(robot, payload))).estimate
    mass, com, inertia = com_from_parameters(payload)
    ur, franka = set_payload(found), set_load(found)
    assert ur['mass'] == franka['mass'] == pytest.approx(mass, rel=PAYLOAD_EXACT)
    assert list(ur['center_of_gravity'].values()) == franka['center_of_mass']
    np.testing.assert_allclose(franka['center_of_mass'], com, rtol=0.0, atol=PAYLOAD_EXACT)
    np.testing.assert_allclose(np.reshape(franka['load_inertia'], (3, 3), order='F'), inertia,
                               rtol=0.0, atol=PAYLOAD_EXACT * mass)
    assert set(ur) == {'mass', 'center_of_gravity'}  # ros2 service call refuses further fields
    assert set(ur['center_of_gravity']) == set('xyz')


def test_the_constrained_body_is_the_best_one():
    """Against random feasible bodies near it: none fits better."""
    rng = np.random.default_rng(0)
    design = rng.normal(size=(40, 10))
    target = design @ np.array([1.0, 0.5, 0.0, 0.0, 0.01, 0.0, 0.1, 0.0, 0.0, 0.1])
    body = fit_body(np.column_stack([design, target]))

    def cost(p):
        return float(np.sum((design @ p - target) ** 2))

    assert body.active and np.linalg.eigvalsh(pseudo_inertia(body.values))[0] > -1e-8
    for _ in range(2000):
        other = body.values + rng.normal(size=10) * 10.0 ** rng.uniform(-6.0, -1.0)
        if np.linalg.eigvalsh(pseudo_inertia(other))[0] >= 0.0:
            assert cost(other) >= cost(body.values) * (1.0 - SOLVER)


def test_leave_one_out_of_batches_is_that_of_their_rows():
    rng = np.random.default_rng(1)
    blocks = [rng.normal(size=(9, 4)) for _ in range(5)]
    batches = [Batch((triangle(np.asfortranarray(b)),), 9) for b in blocks]
    estimates = []
    for i, (factor,) in enumerate(leave_one_out(batches)):
        rest = np.vstack([b for k, b in enumerate(blocks) if k != i])
        np.testing.assert_allclose(factor.T @ factor, rest.T @ rest, rtol=1e-10)
        estimates.append(np.linalg.lstsq(rest[:, :3], rest[:, 3], rcond=None)[0])
    centred = np.array(estimates) - np.mean(estimates, axis=0)
    np.testing.assert_allclose(deviations(estimates), np.sqrt(0.8 * np.sum(centred**2, axis=0)))


@pytest.fixture(scope='module')
def measured(ur10e_data):
    """Return the loaded recording of the UR10e and the unloaded one of the same motion."""
    robot = load_robot('ur10e')
    (loaded,) = (ur10e_data / 'payload_2.805kg').iterdir()
    return robot, load_log(loaded, robot), load_log(
        ur10e_data / 'train' / '20_02_19_14harm50sec.csv.gz', robot)


def holds(found):
    """Check mass and interval of the weighed payload."""
    assert found.mass == pytest.approx(MASS, rel=PAYLOAD_MASS)
    half = found.margins[0] * found.mass_std
    scatter = np.sqrt(found.mass_std**2 - found.mass_std_gains**2)
    assert stats.t.ppf(0.975, SCATTER_STRETCHES - 1) * scatter < 0.03 * MASS
    assert found.mass_std_gains == pytest.approx(GAINS_STD * found.mass, rel=SECOND_ORDER)
    assert abs(found.mass - MASS) < half < 0.05 * MASS
    assert np.linalg.eigvalsh(pseudo_inertia(found.parameters))[0] > -1e-9


def test_ur10e_payload_from_the_difference(measured):
    robot, loaded, unloaded = measured
    result = identify_payload(robot, [loaded], [unloaded])
    holds(result.estimate)
    assert result.matches[0].lag == pytest.approx(-1.17998, abs=LAG)


def test_ur10e_payload_from_a_model_of_the_arm(measured, ur10e_data):
    robot, loaded, _ = measured
    logs = [load_log(f, robot) for f in sorted((ur10e_data / 'train').iterdir())
            if '14harm' not in f.name]
    model = identify(robot, logs, recipe=Recipe(cutoff=6.5, ramp_width=0.01)).model
    holds(identify_payload(robot, [loaded], model=model).estimate)


def test_the_nominal_arm_has_no_weight_where_drives_compensate_it():
    robot = torque_robot('planar_3r')
    q, still = np.array([[0.3, -0.5, 0.8]]), np.zeros((1, 3))
    at_rest = Samples(robot.joints, np.zeros(1), q, still, still)
    weight = inverse_dynamics(robot, q, still, still)
    assert np.abs(weight).max() > 1.0
    for kind, expected in (('torque', weight), ('gravity_compensated_torque', still)):
        stated = replace(robot, drive=replace(robot.drive, kind=kind))
        np.testing.assert_allclose(arm_effort(stated, None, at_rest), expected,
                                   rtol=0.0, atol=1e-12)


def equations(seconds: float, *notes: str, count: int = 50) -> Equations:
    """Return equations of a torque of 2 and 3 N m per parameter, the second in joint 2 only."""
    robot = load_robot('planar_3r')
    time, rest = np.linspace(0.0, seconds, count), np.zeros((count, 3))
    columns = np.zeros((3, 2, count))
    columns[:, 0], columns[1, 1] = 2.0, 3.0 * np.sign(np.arange(count) - 10)
    effort = np.einsum('jkt,k->tj', columns, [5.0, 7.0])
    return Equations(Samples(robot.joints, time, rest, rest, rest), columns, effort, 2.0 * effort,
                     Match('a'), notes)


def test_equations_count_in_the_joints_where_their_columns_are_not_zero() -> None:
    information = reduce_equations(('p', 'q'), [equations(4.0), equations(5.0)])
    assert information.structure.tolist() == [[True, False], [True, True], [True, False]]
    assert solve(information, np.ones(3)).values == pytest.approx([5.0, 7.0])
    assert information.samples == 100
    assert information.size() == pytest.approx(2.0 * information.size(FILTERED))


def test_repairs_and_short_recordings_are_told() -> None:
    short = ('{} s of motion give few independent stretches, so the standard deviations may be '
             'too small: record 10 s')
    one, other = equations(4.9, 'gap'), equations(4.9, 'gap', 'spike')
    assert warnings_of([one, other]) == ('gap', 'gap', 'spike')  # 50 rows each 0.1 s apart
    assert warnings_of([one, equations(1.0, count=1)]) == ('gap', short.format('5'))
    assert warnings_of([equations(4.8), other])[-1] == short.format('9.9')


@pytest.mark.parametrize(('step', 'cutoff'), [(0.01, 6.5), (0.1, 3.0), (0.0, 0.3)])
def test_the_cutoff_of_a_payload_is_as_high_as_the_recording_allows(
    step: float, cutoff: float
) -> None:
    log = RawLog('a', ('a',), step * np.arange(5.0), np.zeros((5, 1)))
    assert settings_for(None, log).cutoff == pytest.approx(cutoff)
    assert settings_for(None, take(log, slice(0, 1))).cutoff == pytest.approx(0.3)
    model = nominal_model('planar_3r')
    assert settings_for(model, log) is model.preprocessing


def test_moderate_effort_is_that_of_states_at_one_radian_per_second() -> None:
    robot = load_robot('planar_3r')
    body = AttachedBody.on(robot)
    found, states = moderate_effort(body), random_states(robot, 50, np.random.default_rng(0))
    speed = np.sqrt(np.mean(states.velocity**2))
    slow = replace(states, velocity=states.velocity / speed,
                   acceleration=states.acceleration / speed)
    assert found.shape == (3, 10)
    assert found == pytest.approx(np.sqrt(np.mean(body.columns(slow)**2, axis=2)), rel=1e-9)


@pytest.mark.parametrize('level', [0.95, 0.5])
def test_intervals_of_gains_are_those_of_their_logarithms(level: float) -> None:
    gains = DriveGains(np.array([2.0, 5.0]), np.array([0.1, np.inf]), np.array([True, False]), 4,
                       np.zeros(3), np.ones(2), GainStatus.NOT_DETERMINED)
    factor = np.exp(0.1 * stats.t.ppf(0.5 + level / 2.0, 4))
    low, high = gains.interval(level)
    assert (low[0], high[0]) == pytest.approx((2.0 / factor, 2.0 * factor))
    assert (low[1], high[1]) == (0.0, np.inf)
    np.testing.assert_array_equal(gains.values, [2.0, np.nan])
