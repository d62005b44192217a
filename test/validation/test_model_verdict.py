"""validation/verdict.py: the verdict on a model: thresholds on a simulated arm."""

from __future__ import annotations

import shlex
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from recordings import recording
from tolerances import PREDICTED, RECOVERED

from robot_dynid.cli.main import parser
from robot_dynid.document import Action
from robot_dynid.dynamics.rigid_body import tip_positions
from robot_dynid.excitation.families import parse_request
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import DeflectionRecord
from robot_dynid.identified.states import effort_by_parameters, holding_torque
from robot_dynid.identified.suitability import (
    CONTACT,
    CRITERIA,
    FALSE_ALARMS,
    FEED_FORWARD,
    GRAVITY,
    MOST_ACTIONS,
    SIMULATION,
    USES,
    WITHOUT_FRICTION,
    UseVerdict,
    Verdict,
)
from robot_dynid.monitoring.noise_levels import learn_noise_levels, recorded_motions
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.alignment import Lag
from robot_dynid.types import FloatArray, RawLog, Samples
from robot_dynid.validation import verdict as verdicts
from robot_dynid.validation.contact_scores import LEAST_PEAKS
from robot_dynid.validation.evidence import Evidence, Names
from robot_dynid.validation.forward_scores import CONTROL
from robot_dynid.validation.next_actions import COUPLED, SLIGHT, next_actions
from robot_dynid.validation.residual_parts import JOINT_SLIDES, ResidualParts, residual_parts
from robot_dynid.validation.rollout_scores import ROLLOUT_SECONDS
from robot_dynid.validation.validate import NEAR, Validation, validate
from robot_dynid.validation.verdict import (
    AS_GOOD_RATIO,
    EXTREME,
    LEAST_LEVER,
    LEAST_STOPS,
    TIP_PUSH,
    UNEVEN,
    judged,
)

#: nothing is chosen from the data, for time
QUICK = Recipe(cutoff=8.0, effort_lag=0.0, friction='dahl', ripple='none', adaptation='none')
PLAIN = replace(QUICK, friction='coulomb', ramp_width=0.01)
#: the joint whose numbers are changed
JOINT = 1


@pytest.fixture(autouse=True)
def _stops_are_not_asked_for(monkeypatch) -> None:
    """The simulated arms here move without a stop."""
    monkeypatch.setattr(verdicts, 'LEAST_STOPS', 0)


@pytest.fixture(scope='module')
def arm() -> tuple[RobotModel, list[RawLog], IdentificationResult]:
    """Return a simulated arm, three recordings, and what is identified from the first two."""
    robot = load_robot('planar_3r')
    logs = [recording(robot, seed, 10.0) for seed in (1, 2, 3)]
    return robot, logs, identify(robot, logs[:2], recipe=PLAIN)


@pytest.fixture(scope='module')
def unseen(arm) -> Validation:
    """Return the scores on the third recording."""
    return validate(arm[2].model, arm[1][2:])


def of(verdict: Verdict, joint: int, use: str) -> UseVerdict:
    """Return the verdict on one joint and use."""
    return verdict.joints[joint].uses[USES.index(use)]


def words_of(verdict: Verdict, joint: int) -> list[str]:
    """Return the verdicts of one joint, in the order of the uses."""
    return [use.word for use in verdict.joints[joint].uses]


def test_a_good_model_is_good_for_everything(arm, unseen) -> None:
    verdict = judged(arm[2].model, unseen)
    assert all(use.ok is True and use.value <= use.threshold
               for joint in verdict.joints for use in joint.uses)
    assert verdict.words == (
        'Good for gravity compensation, feed-forward, contact detection and simulation in all '
        'joints. Judged on 1 recording not used for the fit. The inertials of the URDF with '
        'fitted friction are as good in all joints (within 10 %).')
    assert [joint.joint for joint in verdict.joints] == list(arm[0].joints)
    assert verdict.joints[0].words == f'good for {", ".join(USES)}'


def with_parts(validation: Validation, static: FloatArray | None = None,
               caused: FloatArray | None = None) -> Validation:
    """Return scores with some parts of the residuals replaced."""
    (trace,) = validation.traces
    known = trace.parts
    assert known is not None
    parts = ResidualParts(known.static if static is None else static,
                          known.caused if caused is None else caused, known.rows)
    return replace(validation, traces=(replace(trace, parts=parts),))


def with_motion(validation: Validation, error: float, control: float) -> Validation:
    """Return scores in which the joint leaves a share of its effort in motion."""
    name = list(validation.model['all'])[JOINT]
    scores = [{**scores, 'motion': {**scores['motion'], name: replace(
        scores['motion'][name], relative_error=share)}}
        for scores, share in ((validation.model, error), (validation.control, control))]
    return replace(validation, model=scores[0], control=scores[1])


def with_repetition(validation: Validation, robot: float, noise: float) -> Validation:
    """Return scores of a joint that repeats itself to shares of its effort."""
    score = list(validation.model['all'].values())[JOINT]
    (trace,) = validation.traces
    size = np.full(trace.measured.shape[1], score.rmse / score.relative_error)
    return replace(validation, traces=(replace(
        trace, repeatability=robot * size, noise=noise * size),))


def around(threshold: float) -> list[tuple[float, bool]]:
    """Return a number below a threshold, which is good, and one above."""
    return [(0.99 * threshold, True), (1.01 * threshold, False)]


def test_verdict_shows_no_use_by_the_recordings_of_the_fit(arm) -> None:
    _, logs, result = arm
    verdict = judged(result.model, validate(result.model, logs[:2]))
    for j in range(3):
        for use in verdict.joints[j].uses:
            assert use.ok is None and use.value <= use.threshold
            assert 'own training recordings' in use.shown_by.words
            assert use.shown_by == verdict.actions[0]
    assert 'not shown' in verdict.words and 'good for' not in verdict.words.lower()
    understood(verdict)


def test_the_motion_of_the_fit_again_shows_nothing(arm) -> None:
    """Also with other noise: the same program, recorded twice."""
    robot, logs, _ = arm
    model = identify(robot, logs[:1], recipe=PLAIN).model
    rng = np.random.default_rng(3)
    again = replace(logs[0], source='again', effort=logs[0].effort + 0.05 * rng.normal(
        size=logs[0].effort.shape), velocity=logs[0].velocity + 1e-3 * rng.normal(
        size=logs[0].effort.shape))
    for log, gap in ((again, True), (logs[2], False)):
        verdict = judged(model, validate(model, [log]))
        told = [use.shown_by for joint in verdict.joints for use in joint.uses if use.shown_by]
        assert any('repeat the motion of the fit' in one.words for one in told) is gap


@pytest.mark.parametrize(('share', 'shown'), [(0.4, False), (0.6, True)])
@pytest.mark.parametrize('name', ['position', 'velocity'])
def test_a_part_of_the_range_shows_nothing_of_the_rest(arm, unseen, share, shown, name) -> None:
    (trace,) = unseen.traces
    trained = np.ptp(arm[2].model.trained.quantities[name][JOINT])
    values = getattr(trace, name).copy()
    values[:, JOINT] *= share * trained / np.ptp(values[:, JOINT])
    verdict = judged(arm[2].model, replace(unseen, traces=(replace(trace, **{name: values}),)))
    assert (of(verdict, JOINT, GRAVITY).ok is True) is shown
    assert of(verdict, 0, GRAVITY).ok is True
    assert shown or 'less than half of the range' in of(verdict, JOINT, GRAVITY).shown_by.words


@pytest.mark.parametrize(('share', 'good'), around(CRITERIA[GRAVITY].threshold))
def test_the_error_of_the_weight_is_held_against_dry_friction(arm, unseen, share, good) -> None:
    model = replace(arm[2].model, std=1e-9 * arm[2].model.std)
    shown = np.sqrt(share**2 - UNEVEN**2) if good else share  # sure is what is shown alone
    static = shown * holding_torque(model) / EXTREME
    found = of(judged(model, with_parts(unseen, static)), JOINT, GRAVITY)
    assert (found.ok, found.value) == (good, pytest.approx(np.hypot(shown, UNEVEN), rel=1e-6))


@pytest.mark.parametrize(('share', 'good'), around(WITHOUT_FRICTION.threshold))
def test_without_friction_it_is_held_against_the_weight(arm, unseen, share, good) -> None:
    model = arm[2].model
    dry = [name.startswith('fc') for name in model.names]
    model = replace(model, values=np.where(dry, 0.0, model.values), std=1e-9 * model.std)
    weight = of(judged(model, with_parts(unseen, np.ones(3))), JOINT, GRAVITY)
    found = of(judged(model, with_parts(unseen, np.full(3, share / weight.value))), JOINT, GRAVITY)
    assert found.ok is good
    assert found.threshold == WITHOUT_FRICTION.threshold
    assert found.unit == WITHOUT_FRICTION.unit


def test_the_interval_counts(arm, unseen) -> None:
    """In 95 % intervals: deviations times Student's factor, in the worst pose of the fit."""
    model, none = arm[2].model, with_parts(unseen, np.zeros(3))
    once, thrice = (np.sqrt(of(judged(
        replace(model, std=k * model.std), none), JOINT, GRAVITY).value**2 - UNEVEN**2)
        for k in (1.0, 3.0))
    assert thrice == pytest.approx(3.0 * once, rel=1e-9)
    q = np.random.default_rng(5).uniform(*model.trained.quantities['position'].T, (4000, 3))
    columns = effort_by_parameters(model, q, 0 * q, 0 * q)[:, JOINT]
    drawn = np.random.default_rng(6).normal(size=(4000, len(model.values)))
    spread = np.std(columns @ (drawn @ model.covariance_factor).T, axis=1).max()
    friction = holding_torque(model)[JOINT]
    student = 2.36  # docs/identification.md
    assert once * friction == pytest.approx(student * spread, rel=PREDICTED)


def test_a_wide_interval_shows_nothing_and_static_poses_do(arm, unseen) -> None:
    model, none = arm[2].model, with_parts(unseen, np.zeros(3))
    once = np.sqrt(of(judged(model, none), JOINT, GRAVITY).value**2 - UNEVEN**2)
    wide = replace(model, std=1.01 * CRITERIA[GRAVITY].threshold / once * model.std)
    found = of(judged(wide, none), JOINT, GRAVITY)
    assert (found.ok, found.word) == (None, 'not shown')
    assert '--type static-poses' in found.shown_by.command


def test_weight_that_loads_no_joint_is_no_fault(arm, unseen) -> None:
    """About vertical axes gravity makes rounding, whether or not friction holds them."""
    poses = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 3))
    normal = np.linalg.svd(np.diff(tip_positions(arm[0], poses), axis=0))[2][2]
    robot = arm[0].with_gravity(9.81 * normal)
    model = replace(arm[2].model, robot=robot)
    dry = [name.startswith(('fc', 'f0')) for name in model.names]
    model = replace(model, values=np.where(dry, 0.0, model.values),
                    std=np.where(dry, model.std, np.inf))
    verdict = judged(model, unseen)
    assert [of(verdict, j, GRAVITY).word for j in range(3)] == ['good'] * 3
    assert of(verdict, JOINT, GRAVITY).value == 0.0


def test_an_open_parameter_of_the_weight_is_not_shown(arm, unseen) -> None:
    model = arm[2].model
    name = next(name for name in model.names if name.startswith('mx') and name.endswith('2'))
    std = np.where([n == name for n in model.names], np.inf, model.std)
    verdict = judged(replace(model, std=std), unseen)
    assert [of(verdict, j, GRAVITY).ok for j in range(3)] == [None, None, True]
    assert '--type static-poses' in verdict.actions[0].command
    assert name in verdict.actions[1].words
    assert '--type fourier' in verdict.actions[1].command


@pytest.mark.parametrize(('share', 'good'), around(CRITERIA[FEED_FORWARD].threshold))
def test_verdict_on_feed_forward_follows_the_error_in_motion(arm, unseen, share, good) -> None:
    verdict = judged(arm[2].model, with_motion(unseen, share, 1.0))
    assert [of(verdict, j, FEED_FORWARD).ok for j in range(3)] == [True, good, True]
    assert of(verdict, JOINT, FEED_FORWARD).value == share
    assert any('constant-velocity' in one.command for one in verdict.actions) is not good
    swept = replace(arm[2].model, record=replace(
        arm[2].model.record, residual=DeflectionRecord(loops='three')))
    actions = judged(swept, with_motion(unseen, share, 1.0)).actions
    assert not any('constant-velocity' in one.command for one in actions)
    assert any('without loops: three' in one.words for one in actions) is not good


@pytest.mark.parametrize(('share', 'good'), around(AS_GOOD_RATIO))
def test_nominal_inertials_with_fitted_friction_are_not_to_be_better(
    arm, unseen, share, good
) -> None:
    found = of(judged(arm[2].model, with_motion(unseen, 0.1 * share, 0.1)), JOINT, FEED_FORWARD)
    assert found.ok is good
    assert ('use those inertials' in found.words) is not good


@pytest.mark.parametrize(('error', 'robot', 'noise', 'ok'), [
    (0.3, 0.3, 0.0, False), (0.3, 0.0, 0.29, None), (0.3, 0.0, 0.1, False),
    (0.19, 0.0, 0.19, True), (0.9, 0.0, 0.9, False), (0.3, 0.0, 0.8, False)])
def test_a_robot_that_repeats_badly_excuses_no_model_and_noise_hides_one(
    arm, unseen, error, robot, noise, ok
) -> None:
    told = with_repetition(with_motion(unseen, error, 1.0), robot, noise)
    found = of(judged(arm[2].model, told), JOINT, FEED_FORWARD)
    assert found.ok is ok
    words = found.words.replace('.0 %', ' %')
    assert f'the robot repeats its effort within {100.0 * robot:.4g}' in words
    assert (found.shown_by is not None and '--periods' in found.shown_by.command) is (ok is None)
    assert ('its effort is mostly noise' in found.words) is (noise > 0.75)


def with_contact(validation: Validation, **changes: Any) -> Validation:
    """Return scores of contact of which some numbers are replaced in the joint."""
    contact = validation.contact
    assert contact is not None
    for name, value in changes.items():
        array = getattr(contact, name).copy()
        array[..., JOINT::3] = value
        contact = replace(contact, **{name: array})
    return replace(validation, contact=contact)


@pytest.mark.parametrize(('peaks', 'rate'), [(1e200, 9e3), (1e3, 9e3), (0.1, 0.0)])
def test_rate_of_alarms_of_peaks_that_are_all_alike(
    unseen: Validation, peaks: float, rate: float
) -> None:
    contact = with_contact(unseen, peaks=peaks, alarms=0.0, seconds=4.0).contact
    assert contact is not None
    count = min(LEAST_PEAKS, len(contact.peaks) - 1)
    assert contact.rate(JOINT) == pytest.approx(rate * count / 10)


@pytest.mark.parametrize(('share', 'good'), around(CRITERIA[CONTACT].threshold))
@pytest.mark.parametrize(('lever', 'effort'), [(0.5, 1e3), (0.0, 1e3), (2.0, 25.0)])
def test_the_push_is_held_against_the_tip_and_the_effort(
    arm, unseen, share, good, lever, effort
) -> None:
    push = share * min(TIP_PUSH * max(lever, LEAST_LEVER), effort)
    found = of(judged(arm[2].model, with_contact(
        unseen, needed=push, levers=lever, effort=effort, peaks=0.1, stops=LEAST_STOPS)),
        JOINT, CONTACT)
    assert (found.ok, found.value) == (good, pytest.approx(share))
    assert f'{push:.3g} N m at the joint' in found.words
    assert f'{push / max(lever, LEAST_LEVER):.3g} N at the tip' in found.words


@pytest.mark.parametrize(('alarms', 'seconds', 'ok'), [
    (1.0, 60.0, False), (8.0, 40.0, False), (1.0, 1800.0, None), (0.0, 60.0, True)])
def test_false_alarms_are_held_against_one_an_hour(arm, unseen, alarms, seconds, ok) -> None:
    found = of(judged(arm[2].model, with_contact(
        unseen, alarms=alarms, seconds=seconds, peaks=0.1, levers=10.0, effort=1e3,
        stops=LEAST_STOPS)), JOINT, CONTACT)
    assert found.ok is ok
    assert f'{int(alarms) or "no"} false alarm' in found.words
    assert (found.unit == FALSE_ALARMS.unit) is (ok is not True)


@pytest.mark.parametrize(('stops', 'ok'), [(LEAST_STOPS - 1, None), (LEAST_STOPS, True)])
def test_contact_is_shown_by_motion_that_stops(arm, unseen, stops, ok, monkeypatch) -> None:
    monkeypatch.setattr(verdicts, 'LEAST_STOPS', LEAST_STOPS)
    found = of(judged(arm[2].model, with_contact(
        unseen, alarms=0.0, peaks=0.1, levers=10.0, effort=1e3, stops=stops)), JOINT, CONTACT)
    assert found.ok is ok
    if ok is None:
        assert f'came to rest {stops} times' in found.words
        assert found.shown_by is not None and 'static-poses' in found.shown_by.command


def test_a_model_that_is_wrong_is_not_good_for_contact(arm) -> None:
    """By false alarms with the levels of the fit, and by the push with levels of its own."""
    _, logs, result = arm
    model = result.model
    wrong = replace(model, values=np.where([name.startswith('mx') for name in model.names],
                                           0.0, model.values))
    found = [of(judged(wrong, validate(wrong, logs[2:])), j, CONTACT) for j in range(3)]
    assert any(use.ok is False and use.unit == FALSE_ALARMS.unit for use in found)
    none = replace(model, values=0.0 * model.values)
    none = replace(none, noise_levels=learn_noise_levels(none, recorded_motions(none, logs[:2])))
    found = [of(judged(none, validate(none, logs[2:])), j, CONTACT) for j in range(3)]
    assert [use.ok for use in found] == [False] * 3


@pytest.mark.parametrize(('share', 'good'), around(CRITERIA[SIMULATION].threshold))
def test_simulated_motion_is_held_against_no_model(arm, unseen, share, good) -> None:
    (trace,) = unseen.traces
    assert trace.steady is not None
    rollouts = trace.steady * np.array([0.1, share, 0.1] * 2)**2
    verdict = judged(arm[2].model, replace(unseen, traces=(replace(trace, rollouts=rollouts),)))
    assert [of(verdict, j, SIMULATION).ok for j in range(3)] == [True, good, True]
    assert of(verdict, JOINT, SIMULATION).value == pytest.approx(share)


@pytest.mark.parametrize(('share', 'good'), around(AS_GOOD_RATIO))
def test_nominal_inertials_are_not_to_simulate_better(arm, unseen, share, good) -> None:
    steady = np.array([0.1, 0.2, 0.3])
    found = 0.1 * steady * np.array([1.0, share, 1.0])
    scores = {name: SimpleNamespace(position=position, stopped=0) for name, position in (
        ('model', found), ('constant_velocity', steady), (CONTROL, 0.1 * steady))}
    forward: Any = SimpleNamespace(
        horizons=[SimpleNamespace(seconds=ROLLOUT_SECONDS, scores=scores)])
    verdict = judged(arm[2].model, unseen, forward=forward)
    assert [of(verdict, j, SIMULATION).ok for j in range(3)] == [True, good, True]
    assert ('use those inertials' in of(verdict, JOINT, SIMULATION).words) is not good


def test_a_mass_matrix_that_no_robot_has_spoils_simulation(arm, unseen) -> None:
    warning = 'the identified mass matrix is not positive definite at 3 of 1000 random poses'
    verdict = judged(replace(arm[2].model, warnings=(warning,)), unseen)
    assert [words_of(verdict, j)[USES.index(SIMULATION)] for j in range(3)] == ['not good'] * 3
    assert '--method feasible' in verdict.actions[0].command


def test_weight_that_is_wrong_is_found_in_the_residuals(arm) -> None:
    """The static error is that of the weight that was put in, along the recording."""
    _, logs, result = arm
    model = result.model
    (clean,) = validate(model, logs[2:]).traces
    off = np.where([name in ('m2', 'mx2', 'mx3') for name in model.names],
                   0.2 * model.values, 0.0)
    (wrong,) = validate(replace(model, values=model.values + off), logs[2:]).traces
    moves = np.abs(logs[2].velocity) > 0.02
    weight = effort_by_parameters(model, logs[2].position, *[np.zeros((len(moves), 3))] * 2) @ off
    truth = np.array([np.sqrt(np.mean(weight[moves[:, j], j]**2)) for j in range(3)])
    assert np.all(clean.parts.static < 0.1 * truth)
    assert wrong.parts.static == pytest.approx(truth, rel=PREDICTED)


def test_weight_is_that_of_the_joint_itself(arm) -> None:
    """The first moment of the first link loads its own joint alone."""
    _, logs, result = arm
    log, model = logs[2], result.model
    off = np.where([name == 'mx1' for name in model.names], 3.0, 0.0)
    weight = effort_by_parameters(model, log.position, *[0.0 * log.position] * 2) @ off
    samples = Samples(log.joints, log.time, log.position, log.velocity, 0.0 * log.velocity, weight)
    found = residual_parts(model, samples, 0.0 * weight)
    assert found is not None
    moves = np.abs(log.velocity[:, 0]) > JOINT_SLIDES
    truth = [np.sqrt(np.mean(weight[moves, 0]**2)), 0.0, 0.0]
    assert found.static == pytest.approx(truth, rel=RECOVERED, abs=RECOVERED)


def test_friction_of_another_joint_is_found_in_the_residuals(arm) -> None:
    _, logs, result = arm
    speed = logs[2].velocity
    effort = logs[2].effort.copy()
    effort[:, 0] += 3.0 * np.tanh(speed[:, 2] / 0.02)
    verdict_of = [validate(result.model, [log]) for log in (
        logs[2], replace(logs[2], effort=effort))]
    before, after = (found.parts for found in verdict_of)
    assert before is not None and after is not None
    assert before.caused.max() < 0.5 * COUPLED < COUPLED < after.caused[0, 2]
    assert np.argmax(after.caused) == 2
    assert 'joint_1 and joint_3' in judged(result.model, verdict_of[1]).actions[0].words


def test_an_inertia_that_couples_joints_is_no_common_motor(arm) -> None:
    """As of links that the recordings left open, and that keep their nominal inertias."""
    _, logs, result = arm
    acceleration = np.gradient(logs[2].velocity[:, 2], logs[2].time)
    effort = logs[2].effort.copy()
    effort[:, 0] += 3.0 * np.sin(acceleration / np.abs(acceleration).max())
    found = validate(result.model, [replace(logs[2], effort=effort)])
    assert found.parts is not None
    assert found.parts.caused.max() < 0.5 * COUPLED
    assert not any('coupling' in action.words for action in judged(result.model, found).actions)


@pytest.mark.parametrize(('name', 'told'), [('planar_3r', 'planar_3r'), ('mine', 'ROBOT.yaml')])
def test_a_robot_that_commands_know_by_no_name_is_to_be_put_in(arm, unseen, name, told) -> None:
    model = replace(arm[2].model, robot=replace(arm[0], name=name))
    unknown = replace(model, std=np.full_like(model.std, np.inf))
    commands = [a.command for a in judged(unknown, unseen).actions if a.command]
    assert commands and all(told in shlex.split(command) for command in commands)


def test_feed_forward_is_not_judged_where_the_joint_is_mostly_held(arm, unseen) -> None:
    (trace,) = unseen.traces
    assert trace.velocity is not None
    fast = np.abs(trace.velocity) > JOINT_SLIDES
    for share, ok in ((0.4, None), (0.6, True)):
        slides = np.cumsum(fast, axis=0) < share * fast.sum(axis=0)
        velocity = np.where(slides & fast, trace.velocity, 0.0)
        moving = slides.any(axis=1)
        scores = replace(unseen, traces=(replace(
            trace, moving=np.ones(len(moving)), velocity=velocity),))
        found = of(judged(arm[2].model, scores), JOINT, FEED_FORWARD)
        assert found.ok is ok
        assert ('% of the motion, and takes up part of its load' in found.words) is (ok is None)


def test_parts_of_recordings_count_by_their_rows() -> None:
    one, other = (ResidualParts(np.full(2, k), np.full((2, 2), k), rows)
                  for k, rows in ((0.0, 300), (1.0, 100)))
    found = ResidualParts.merged([one, other])
    assert found is not None
    assert found.static == pytest.approx([0.5, 0.5])  # sqrt(1/4)
    assert found.caused == pytest.approx(np.full((2, 2), 0.25))
    assert found.rows == 400
    assert ResidualParts.merged([]) is None


@pytest.mark.parametrize(('change', 'wanted', 'told'), [
    ({'friction_spread': {'dry': 0.09}}, 'friction differs', False),
    ({'friction_spread': {'dry': 0.11}}, 'friction differs', True)])
def test_friction_that_differs_is_an_action(arm, unseen, change, wanted, told) -> None:
    model = replace(arm[2].model, record=replace(arm[2].model.record, **change))
    assert any(wanted in one.words for one in judged(model, unseen).actions) is told


@pytest.mark.parametrize(('delay', 'told'), [(1.9e-3, False), (2.1e-3, True), (-2.1e-3, True)])
def test_effort_that_is_late_is_an_action_unless_corrected(arm, unseen, delay, told) -> None:
    model = arm[2].model
    record = replace(model.record, effort_lag=Lag(delay, 1e-4))
    for corrected in (False, True):
        late = replace(model, record=record, preprocessing=replace(
            model.preprocessing, effort_lag=delay if corrected else 0.0))
        found = [one for one in judged(late, unseen).actions if one.words.startswith(
            f'effort is 2.10 +- 0.10 ms {"later" if delay > 0.0 else "earlier"} than')]
        assert bool(found) is (told and not corrected)


@pytest.mark.parametrize(('weight', 'told'), [(1.1, False), (1.2, True), (0.8, True)])
def test_weight_beside_that_of_the_nominal_links_is_an_action(arm, unseen, weight, told) -> None:
    model = arm[2].model
    actions = judged(replace(model, control=model.values / weight), unseen).actions
    words = [one.words for one in actions if 'payload' in one.words]
    assert bool(words) is told
    assert all('joint_1 by 20.0 %' in one for one in words)


@pytest.mark.parametrize(('share', 'told'), [(0.19, True), (0.21, False)])
def test_a_joint_that_hardly_moves_is_named(arm, unseen, share, told) -> None:
    model, limits = arm[2].model, arm[2].model.robot.limits
    room = np.fmin(limits.upper - limits.lower, 2.0 * np.pi)
    ranges = np.stack([-0.5 * room, 0.5 * room], axis=1)
    ranges[JOINT] *= share
    trained = replace(model.trained, quantities={**model.trained.quantities, 'position': ranges})
    actions = judged(replace(model, trained=trained), unseen).actions
    named = [one.words for one in actions if 'little: record' in one.words]
    assert (len(named) == 1) is told
    assert all(model.joints[JOINT] in words and model.joints[0] not in words for words in named)


@pytest.mark.parametrize(('kind', 'gains', 'told'), [
    ('current', [1.0, 1.0, 1.0], True), ('current', [1.0, 1.0, 1.1], False),
    ('position_error', [1.0, 1.0, 1.0], True), ('torque', None, False)])
def test_gains_of_one_are_told_first(arm, unseen, kind, gains, told) -> None:
    model = arm[2].model
    drive = replace(model.robot.drive, kind=kind, gains=None if gains is None else np.array(gains),
                    error_limit=np.ones(3) if kind == 'position_error' else None)
    found = judged(replace(model, robot=replace(model.robot, drive=drive)), unseen).actions
    unit = 'rad' if kind == 'position_error' else 'A'
    words = f'all drive_gains are 1.0, so results labelled N m are in {unit}: state the gains'
    assert [one.words.startswith(words) for one in found[:1]] == [told]
    assert any('drive_gains' in one.words for one in found) is told


@pytest.mark.parametrize('other', [0.2, 0.8])
def test_a_pair_one_motor_turns_is_told_once_with_its_larger_share(arm, unseen, other) -> None:
    for one, two in ((0, 1), (1, 0)):
        caused = np.zeros((3, 3))
        caused[one, two], caused[two, one] = 0.9, other
        actions = judged(arm[2].model, with_parts(unseen, caused=caused)).actions
        (words,) = [action.words for action in actions if 'coupling' in action.words]
        assert words.startswith('joint_1 and joint_2 share a motor (')
        assert 'explains 90.0 % of the error' in words


@pytest.mark.parametrize(('error', 'told'), [(0.99 * SLIGHT, False), (1.01 * SLIGHT, True)])
def test_verdict_advises_on_coupling_only_when_the_error_is_not_slight(
    arm, unseen, error, told
) -> None:
    """Errors of a recording without noise are rounding, and alike in all joints."""
    caused = np.zeros((3, 3))
    caused[JOINT, 0] = 0.9
    scores = dict(unseen.model['all'])
    name = arm[2].model.joints[JOINT]
    scores[name] = replace(scores[name], relative_error=error)
    slight = replace(with_parts(unseen, caused=caused), model={**unseen.model, 'all': scores})
    words = [action.words for action in judged(arm[2].model, slight).actions]
    assert any('coupling' in one for one in words) is told


@pytest.mark.parametrize(('ratio', 'told'), [(1.49, False), (1.51, True)])
def test_a_law_that_errs_more_near_reversals_is_too_simple(arm, unseen, ratio, told) -> None:
    name = arm[2].model.joints[JOINT]
    near = replace(unseen.model['motion'][name],
                   relative_error=ratio * unseen.model['motion'][name].relative_error)
    scores = {**unseen.model, NEAR: {**unseen.model[NEAR], name: near}}
    actions = judged(arm[2].model, replace(unseen, model=scores)).actions
    words = [one.words for one in actions if 'let the data choose' in one.words]
    assert any(name in one for one in words) is told


def test_actions_are_few_and_their_commands_are_understood(arm, unseen) -> None:
    model = arm[2].model
    model = replace(
        model, std=np.where([n == 'Izz1' for n in model.names], np.inf, model.std),
        not_identified=('joint_3',), record=replace(model.record, friction_spread={'dry': 0.4}))
    caused = np.zeros((3, 3))
    caused[0, 1] = 0.9
    verdict = judged(model, with_parts(unseen, 10.0 * holding_torque(model), caused=caused),
                     names=Names("my arm's.yaml", 'out.yaml'))
    assert len(verdict.actions) == MOST_ACTIONS
    assert 'coupling' in verdict.actions[0].words
    assert 'joint_3' in verdict.actions[1].words
    understood(verdict)
    assert sum("my arm's.yaml" in shlex.split(one.command) for one in verdict.actions) > 1


def understood(verdict: Verdict) -> None:
    """Check that every command is one of the command line, with options of the excitation."""
    for action in verdict.actions:
        words = shlex.split(action.command)
        if words:
            given = vars(parser(words).parse_args(words[1:]))
            if given['verb'] == 'design':
                parse_request(given['type'], {name: given[name] for name in ('seed', 'periods')
                                              if given[name] is not None})


def test_motion_left_out_of_the_fit_counts(arm) -> None:
    result = arm[2]
    score = list(result.training.model['all'].values())[JOINT]
    raw = result.held_out.raw.copy()
    raw[JOINT] = (0.3 * score.rmse / score.relative_error)**2
    held = replace(result.held_out, seconds=60.0, spread=0.0)
    found = judged(result.model, result.training, replace(held, raw=raw))
    assert [of(found, j, FEED_FORWARD).ok for j in range(3)] == [True, False, True]
    assert (found.errors[1].name, found.errors[1].value) == (
        f'largest error, {result.model.joints[JOINT]}', '30 % of the effort')
    size = score.rmse / score.relative_error
    for mean, more, ok in ((0.1, 0.15, True), (0.1, 0.19, None), (0.21, 0.0, False)):
        raw[JOINT], filtered = (mean * size)**2, held.filtered.copy()
        filtered[JOINT] = (more * size)**2
        use = of(judged(result.model, result.training, replace(
            held, raw=raw, filtered=filtered)), JOINT, FEED_FORWARD)
        assert use.ok is ok
        assert use.value == pytest.approx(np.hypot(mean, more))
        assert (use.shown_by is None) is (ok is not None)


@pytest.mark.parametrize(('seconds', 'words'), [
    (0.0, 'only one motion'), (60.0, ''), (None, 'too short to leave a motion out')])
def test_verdict_shows_no_use_when_no_motion_is_held_out(arm, seconds, words) -> None:
    result = arm[2]
    held = replace(result.held_out, seconds=seconds or 0.0, spread=0.0)
    if seconds is None:
        held = replace(held, folds=held.folds[:0])
    use = of(judged(result.model, result.training, held), JOINT, FEED_FORWARD)
    assert use.ok is (None if words else True)
    assert not words or (words in use.shown_by.words and '--seed' in use.shown_by.command)


def test_a_command_that_remedies_two_causes_is_named_once(arm, unseen) -> None:
    first = judged(arm[2].model, unseen).joints[0]
    actions = [Action(words, command) for words, command in (
        ('first', 'one'), ('second', 'two'), ('third', 'one'), ('fourth', ''), ('fifth', ''))]
    uses = tuple(replace(first.uses[0], ok=None, shown_by=action) for action in actions)
    evidence = Evidence(arm[2].model, unseen, Names.of(arm[2].model))
    found = next_actions(evidence, [replace(first, uses=uses)])
    assert [one for one in found if one in actions] == [actions[k] for k in (0, 1, 3, 4)]


def test_verdict_on_simulation_fails_when_one_joint_contradicts_the_urdf(arm, unseen) -> None:
    sentence = 'run.csv: effort_scale of joint_2: 900 times: look like mN m; divide by 1000'
    verdict = judged(replace(arm[2].model, warnings=(sentence,)), unseen)
    good = ['good'] * 3 + ['not good']
    assert [words_of(verdict, j) for j in range(3)] == [good, ['not good'] * 4, good]


def test_verdict_ignores_accepted_findings(arm, unseen) -> None:
    model, sentence = arm[2].model, 'run.csv: effort_scale: 0.08 times: look like A; set the kind'
    assert of(judged(replace(model, warnings=(sentence,)), unseen), 0, GRAVITY).ok is False
    accepted = judged(replace(model, warnings=(f'{sentence} (accepted)',)), unseen)
    assert of(accepted, 0, GRAVITY).ok is True
    assert isinstance(model, IdentifiedModel)
