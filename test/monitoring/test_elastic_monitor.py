"""monitoring/monitor.py: the monitor of elastic joints with motor states: link side, gear torque,
and without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from elastic_arms import (
    ARM,
    MONITOR_RATE,
    moved,
    recorded,
    transmitted,
    true_model,
    watched_model,
    with_effects,
    with_motor_encoders,
)
from tolerances import COVERAGE, SAME_FORMULA

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.monitoring.deflected_observer import DEFLECTED, GEAR, GEAR_SPREAD
from robot_dynid.monitoring.monitor import Monitor, MonitorSettings, Reading, observer_of
from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.monitoring.motor_states import OLDEST
from robot_dynid.monitoring.noise_levels import learn_noise_levels, recorded_motions
from robot_dynid.monitoring.observer import EXTERNAL, PREDICTED, RESIDUAL, THRESHOLD, Observer
from robot_dynid.monitoring.watched_joints import OBSERVER_CONSTANTS
from robot_dynid.robot.model import LINK
from robot_dynid.signals.turns import TURN
from robot_dynid.simulation.arm import Arm, TorqueStep, measured, record
from robot_dynid.types import FloatArray, RawLog, take

#: at rest the friction of the motor holds up to 5 N m; the push is less
PUSH = TorqueStep(0, 0.8, 0.6, 4.0)


@cache
def log() -> RawLog:
    return recorded(moved(0, 4.0))


@cache
def model() -> IdentifiedModel:
    return watched_model([log()])


@cache
def second() -> RawLog:
    return recorded(moved(1, 2.0))


def other(rows: int) -> RawLog:
    """Return the first rows of another recording."""
    return take(second(), slice(0, rows))


def delivered(k: int) -> tuple[int, ...]:
    """Return the motor states that come behind joint state ``k``: that of the same stamp."""
    return (k,)


def followed(
    monitor: Monitor, log: RawLog, motors: Callable[[int], tuple[int, ...]] = delivered
) -> Iterator[Reading]:
    """Yield the readings of a recording whose messages come one by one."""
    assert log.velocity is not None and log.effort is not None
    assert log.motor_position is not None and log.motor_velocity is not None
    for k, time in enumerate(log.time.tolist()):
        reading = monitor(time, log.position[k], log.velocity[k], log.effort[k])
        assert reading is not None
        yield reading
        for i in motors(k):
            monitor.take_motors(float(log.time[i]), log.motor_position[i], log.motor_velocity[i])


@pytest.mark.parametrize('lag', [0.0, 0.0037, -0.0037])
def test_messages_one_by_one_are_the_recording(lag: float) -> None:
    """Whether a motor state comes before the joint state of its stamp or behind it."""
    own = replace(model(), preprocessing=replace(model().preprocessing, effort_lag=lag))
    part = other(400)
    whole = observer_of(own, MonitorSettings()).along(monitor_input(own, part))
    last = len(part.time) - 1
    before = followed(Monitor(own), part, lambda k: (min(k + 1, last),) if k else (0, 1))
    rows = [EXTERNAL, THRESHOLD, DEFLECTED, GEAR, GEAR_SPREAD]
    for readings in (followed(Monitor(own), part), before):
        found = [(r.external, r.threshold, r.deflected, r.gear, r.gear_spread) for r in readings]
        np.testing.assert_allclose(np.array(found, dtype=np.float64), whole[:, rows],
                                   rtol=SAME_FORMULA, atol=100.0 * SAME_FORMULA)
    assert whole[-1, DEFLECTED].all()


@pytest.mark.parametrize('delays', [(3e-3, 3e-3), (3e-3, -2e-3), (0.0, 1e-3)])
def test_gear_torque_does_not_see_the_delays_of_link_encoders(delays: tuple[float, ...]) -> None:
    """Link encoders that show the past, as the model says: the torque of that time."""
    own, part = model(), other(400)
    assert part.velocity is not None

    def shifted(values: FloatArray) -> FloatArray:
        return np.stack([np.interp(part.time - late, part.time, column)
                         for late, column in zip(delays, values.T, strict=True)], axis=1)

    late = replace(part, position=shifted(part.position), velocity=shifted(part.velocity))
    aware = replace(own, preprocessing=replace(own.preprocessing, encoder_delays=delays))
    wanted, found, unaware = (
        observer_of(of, MonitorSettings()).along(monitor_input(of, log))[20:, GEAR]
        for of, log in ((own, part), (aware, late), (own, late)))
    wanted = shifted(np.concatenate([wanted[:1].repeat(20, axis=0), wanted]))[20:]
    spread = np.sqrt(np.mean(wanted**2, axis=0))
    error, ignored = (np.sqrt(np.mean((one - wanted)**2, axis=0)) / spread
                      for one in (found, unaware))
    # measured 0.003, without the delay in the age of a deflection 0.005; 0.009 for early encoders
    assert np.all(error < np.where(np.array(delays) < 0.0, 0.02, 0.004))
    assert np.all(ignored[np.array(delays) != 0.0] > 2.0 * error[np.array(delays) != 0.0])


def test_late_motor_states_are_done_without_as_if_there_were_none() -> None:
    """The physics counts until the observer has settled anew, with its own thresholds."""
    own, part = model(), other(600)
    stop, again = 300, 400  # rows between which none come
    physics = Observer(own, 30.0).along(monitor_input(own, part))
    monitor, said = Monitor(own), list[str]()
    levels = own.noise_levels
    assert levels is not None and levels.deflected is not None
    for k, reading in enumerate(followed(
            monitor, part, lambda k: () if stop <= k < again else (k,))):
        assert reading.deflected is not None
        age = float(part.time[k] - part.time[min(k, stop) - 1 if k <= again else k - 1])
        if abs(age - OLDEST) < 1e-9:
            continue  # rounding of the stamps decides
        missing = stop < k <= again and age > OLDEST
        settling = again < k and part.time[k] - part.time[again] < OBSERVER_CONSTANTS / 30.0 - 1e-9
        if missing or settling:
            assert not reading.deflected.any(), k
            np.testing.assert_array_equal(reading.external, physics[k, EXTERNAL])
        elif k > 60:
            assert reading.deflected.all() or abs(part.time[k] - part.time[again]) < 0.105, k
        if missing:
            assert monitor.without_motors == own.joints
            assert (reading.threshold >= 2.0 * levels.moving - 1e-12).all()
            said = [text for text in monitor.advice() if 'the deflection is not used' in text]
            assert 'joint_1, joint_2: no motor states of the last 0.03 s' in said[0]
    assert said and not monitor.advice()
    assert reading.deflected is not None and reading.deflected.all()


def test_motor_states_that_go_back_or_say_nothing_are_left_out() -> None:
    own, part = model(), other(200)
    monitor = Monitor(own)
    reading = list(followed(monitor, part, lambda k: (k, k, k - 3) if k > 3 else (k,)))[-1]
    assert monitor.unusable_motor_states == 2 * (len(part.time) - 4)
    expected = list(followed(Monitor(own), part))[-1]
    np.testing.assert_array_equal(reading.external, expected.external)
    nothing = np.full(2, np.nan)
    monitor.take_motors(np.nan, nothing, nothing)
    monitor.take_motors(float(part.time[-1]) + 0.001, nothing, np.full(2, 1e300))
    assert part.velocity is not None and part.effort is not None
    blind = monitor(float(part.time[-1]) + 0.002, part.position[-1], part.velocity[-1],
                    part.effort[-1])
    assert blind is not None and blind.gear is not None
    assert np.isnan(blind.gear).all() and np.isfinite(blind.external).all()


def test_the_offset_of_motor_encoders_holds_no_whole_turns() -> None:
    logs = [replace(log(), position=log().position + TURN * k) for k in (0, 1, -2)]
    for one in with_motor_encoders(model(), logs).record.motor_encoders:
        assert abs(one.offset) < 1e-3 and one.offset_std < 1e-3


def test_no_deflection_is_taken_across_a_pause_of_the_joint_states() -> None:
    monitor, one = Monitor(model()), log()
    assert one.velocity is not None and one.effort is not None
    assert one.motor_position is not None and one.motor_velocity is not None
    known = {}
    for k, time in enumerate(one.time[:604].tolist()):
        if not 300 <= k < 600:
            reading = monitor(time, one.position[k], one.velocity[k], one.effort[k])
            assert reading is not None and reading.gear is not None
            known[k] = np.isfinite(reading.gear).all()
        monitor.take_motors(time, one.motor_position[k], one.motor_velocity[k])
    assert [known[k] for k in (0, 1, 299, 600, 601, 603)] == [False, True, True, False, True, True]


def test_a_push_that_friction_holds_is_seen_behind_the_gear() -> None:
    own = model()
    rest = recorded(moved(0, 1.6, 0.0), pushes=[PUSH])
    (found,) = contact_events(own, [rest])
    assert [one.joint for one in found.contacts] == ['joint_1']
    assert found.contacts[0].start == pytest.approx(PUSH.start, abs=0.05)
    pushed = (found.time > PUSH.start + 0.3) & (found.time < PUSH.start + PUSH.duration)
    assert np.mean(found.torque[pushed, 0]) == pytest.approx(PUSH.torque, abs=0.1)
    (blind,) = contact_events(own, [replace(rest, motor_position=None, motor_velocity=None)])
    assert not blind.contacts
    assert (found.static_friction == 0.0).all() and (blind.static_friction >= [5.0, 2.0]).all()
    assert (found.moving < blind.moving).all()
    assert any('contact detected without the gear deflection' in note for note in blind.notes)
    (free,) = contact_events(own, [recorded(moved(3, 2.0), 3)])
    assert not free.contacts


def test_thresholds_rise_where_the_torque_of_the_gear_is_less_sure() -> None:
    """Beyond the loads of the training the error of the stiffness grows, up to the physics."""
    own = model()
    levels = own.noise_levels
    assert levels is not None and levels.deflected is not None
    assert levels.deflected.variance is not None
    rows, steps = np.zeros((600, 5, 2)), np.full(600, 0.002)
    rows[200:400, 3] = np.array([250.0, 60.0]) / [2.6e4, 1.6e4]  # N m
    rows[400:, 3] = 0.1  # rad
    steps[0] = 0.0
    found = observer_of(own, MonitorSettings())(rows, steps)
    usual = np.sqrt(levels.deflected.variance)
    low, high = (2.0 * one.moving + one.holding for one in (levels.deflected, levels))
    excess = np.maximum(found[:, GEAR_SPREAD] - usual, 0.0)
    assert (excess[199] == 0.0).all() and (excess[399] > 0.05).any()
    for k, expected in ((199, low), (399, np.minimum(low + 2.0 * excess[399], high)),
                        (599, high)):
        np.testing.assert_allclose(found[k, THRESHOLD], expected, rtol=1e-9)


def test_a_known_wrench_is_no_contact() -> None:
    """It acts on the link, and bends the gear as a contact would."""
    own, torque = model(), np.array([6.0, -2.0])
    rest = np.zeros((1, 2))
    bent = (own.gravity(rest)[0] - torque) / [own.standard['K1'], own.standard['K2']]
    time = 0.002 * np.arange(400)
    still = np.zeros((400, 2))
    log = RawLog('held', own.joints, time, still, still, still + own.gravity(rest) - torque,
                 still + bent, still, external_torque=still + torque)
    told, missed = (observer_of(own, MonitorSettings()).along(monitor_input(own, one))[-1]
                    for one in (log, replace(log, external_torque=None)))
    np.testing.assert_allclose(told[EXTERNAL], 0.0, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(missed[EXTERNAL], torque, rtol=1e-6)
    np.testing.assert_allclose(told[GEAR], own.gravity(rest)[0] - torque, rtol=1e-9)


def test_the_effort_of_the_motors_is_predicted_with_their_own_motion() -> None:
    own, part = model(), other(1000)
    along = monitor_input(own, part)
    with_it = observer_of(own, MonitorSettings()).along(along)[200:]
    without = Observer(own, 30.0).along(along)[200:]
    errors = [np.sqrt(np.mean(r[:, RESIDUAL]**2, axis=0)) for r in (with_it, without)]
    assert (errors[0] < 0.95 * errors[1]).all(), errors
    measured = [r[:, PREDICTED] + r[:, RESIDUAL] for r in (with_it, without)]
    np.testing.assert_allclose(*measured, rtol=0.0, atol=1e-9)


@cache
def sensed() -> tuple[FloatArray, RawLog]:
    """Return true torque of the gears and a recording of the same motion."""
    path = moved(2, 2.0)
    return transmitted(path), recorded(path, 5)


@pytest.mark.parametrize(('share', 'draws'), [(5e-3, 20), (1e-9, 1)], ids=['gear', 'encoders'])
def test_the_gear_is_a_torque_sensor_whose_intervals_hold(share: float, draws: int) -> None:
    """Stiffness, damping and offset drawn from their deviations, against MuJoCo's gear torque."""
    truth, own = sensed()[0], replace(model(), std=share * np.abs(model().values))
    along, held, errors = monitor_input(own, sensed()[1]), [], []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        gears = [own.names.index(f'{p}{j}') for p in 'KDs' for j in (1, 2)]
        values = own.values.copy()
        values[gears] += own.std[gears] * rng.standard_normal(len(gears))
        drawn = replace(own, values=values)
        found = observer_of(drawn, MonitorSettings()).along(along)[100:]
        error = found[:, GEAR] - truth[100:]
        held.append(np.abs(error) < 1.96 * found[:, GEAR_SPREAD])
        errors.append(error / found[:, GEAR_SPREAD])
    assert COVERAGE[0] < np.mean(held) < COVERAGE[1]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, abs=0.15)
    assert (found[:, GEAR_SPREAD].max(axis=0) < 0.02 * np.abs(truth).max(axis=0)).all()


def test_the_gear_senses_torque_beside_hysteresis_and_kinematic_error() -> None:
    """Of MuJoCo's gears with the same effects; a model without them is off by several times."""
    own, truth = with_effects()
    path = moved(2, 2.0)
    behind = replace(ARM, drive=replace(ARM.drive, elastic=(), sensor=LINK))
    expected = record(Arm(behind, truth), path, MONITOR_RATE).effort
    assert expected is not None
    seen = measured(record(Arm(ARM, truth), path, MONITOR_RATE), ARM, truth.noise,
                    np.random.default_rng(5))
    errors = []
    for one in (own, true_model()):
        known = replace(one, std=5e-3 * np.abs(one.values))
        known = with_motor_encoders(known, [seen])
        encoders = tuple(replace(each, offset=0.0) for each in known.record.motor_encoders)
        known = replace(known, record=replace(known.record, motor_encoders=encoders))
        known = replace(known, noise_levels=learn_noise_levels(
            known, recorded_motions(known, [seen])))
        found = observer_of(known, MonitorSettings()).along(monitor_input(known, seen))[100:]
        error = found[:, GEAR] - expected[100:]
        errors.append(np.sqrt(np.mean(error**2, axis=0)))
        if one is own:
            assert np.mean(np.abs(error) < 1.96 * found[:, GEAR_SPREAD]) > COVERAGE[0]
            assert (np.median(found[:, GEAR_SPREAD], axis=0) < 4.0 * errors[0]).all()
    assert (errors[0] < 0.25 * errors[1]).all(), errors


def test_motors_bear_the_slope_of_the_kinematic_error() -> None:
    """At rest they hold the weight times one and the slope, and nothing is left."""
    own = replace(with_effects(loop=(0.0, 0.0))[0], record=model().record)
    encoders = tuple(replace(one, offset=0.0) for one in own.record.motor_encoders)
    own = replace(own, record=replace(own.record, motor_encoders=encoders))
    rest, gears = np.zeros((1, 2)), own.elastic_motion.gears
    weight = own.gravity(rest)
    bent = np.stack([weight / gears.stiffness, rest])
    motor = gears.motor(bent)[0]
    time, still = 0.002 * np.arange(400), np.zeros((400, 2))
    effort = (1.0 + gears.error(motor)[1]) * weight
    log = RawLog('held', own.joints, time, still, still, still + effort, still + motor, still)
    found = observer_of(own, MonitorSettings()).along(monitor_input(own, log))[-1]
    np.testing.assert_allclose(found[[EXTERNAL, RESIDUAL]], 0.0, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(found[GEAR], weight[0], rtol=1e-9)
    assert (np.abs(effort - weight) > 0.1).all()


def test_encoders_of_recordings_are_in_the_model() -> None:
    """Also where the motor states are not divided by the gear ratio."""
    first, last = log(), other(1000)
    assert first.motor_position is not None and last.motor_position is not None
    turned = [replace(one, motor_position=100.0 * (one.motor_position + offset),
                      motor_velocity=100.0 * one.motor_velocity)
              for one, offset in ((first, 0.02), (last, 0.04))]
    encoders = watched_model(turned).record.motor_encoders
    assert [one.joint for one in encoders] == list(ARM.joints)
    for one in encoders:
        assert one.factor == 100.0
        assert one.offset == pytest.approx(0.03, abs=3e-3), 'weight and friction blur it'
        assert one.offset_std == pytest.approx(0.02 / np.sqrt(2.0), rel=0.15)
        assert one.noise == pytest.approx(5.0265e-6 / np.sqrt(6.0), rel=0.1)
        assert one.rate_noise == pytest.approx(1e-3 * np.sqrt(2.0), rel=0.1)


def test_levels_and_encoders_come_back_from_the_file() -> None:
    again = IdentifiedModel.from_yaml(model().to_yaml())
    assert again.record.motor_encoders == model().record.motor_encoders
    levels, read = model().noise_levels, again.noise_levels
    assert levels is not None and read is not None
    assert levels.deflected is not None and read.deflected is not None
    np.testing.assert_array_equal(read.deflected.moving, levels.deflected.moving)
    assert (levels.deflected.holding < 0.05).all(), 'friction of the motor is not in between'
    assert (levels.holding >= [5.0, 2.0]).all()


def test_a_model_that_does_not_know_its_encoders_says_so() -> None:
    own = replace(model(), record=replace(model().record, motor_encoders=()))
    monitor = Monitor(own)
    assert not monitor.follows_motors
    assert 'no calibration of its motor encoders' in monitor.advice()[0]
    reading = next(followed(monitor, log()))
    assert reading.deflected is None
