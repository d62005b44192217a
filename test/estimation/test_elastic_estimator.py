"""estimation/elastic.py: the estimator of elastic joints: coarse encoders, gears too stiff to be
seen, feasible gears."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import elastic_arms
import numpy as np
import pytest
from elastic_arms import elastic_arm

from robot_dynid.effects.gears import GEAR
from robot_dynid.estimation import (
    ESTIMATORS,
    Estimate,
    Feasible,
    FeasibleEstimate,
    Status,
    elastic,
)
from robot_dynid.estimation.elastic import Deflected, followed
from robot_dynid.estimation.errors_in_variables.instrumental import (
    WEAK_F,
    InstrumentalVariables,
    fit_weights,
    reduce_with_instruments,
)
from robot_dynid.estimation.errors_in_variables.instruments import motion_cutoff
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import Accumulator
from robot_dynid.identified.structure import Structure
from robot_dynid.plain import to_plain
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.simulation.arm import measured
from robot_dynid.simulation.truth import Noise
from robot_dynid.types import RawLog

#: the gears are so many times as stiff, and encoders have this noise [rad]: a tenth of deflections
STIFFER, NOISE = 10.0, 2e-4
#: speed [rad/s] over which friction falls from rest
FALL = 0.02
JOINTS = range(3)


@cache
def clean() -> RawLog:
    """Return what stiff gears do, without noise."""
    gears = elastic_arms.K, elastic_arms.D
    try:
        elastic_arms.K = tuple(STIFFER * k for k in gears[0])
        elastic_arms.D = tuple(STIFFER**0.5 * d for d in gears[1])
        return elastic_arms.recordings(8.0, Noise())[0]
    finally:
        elastic_arms.K, elastic_arms.D = gears


def experiment(
    log: RawLog, friction: str = 'coulomb', cutoff: float = 20.0, **settings: float
) -> Experiment:
    """Return the experiment of one recording, below a cut-off [Hz]."""
    robot, _ = elastic_arm()
    model = Structure.uniform(robot, True, friction, settings).torque_model(robot)
    return Experiment.of(model, [prepare(robot, repair(robot, log), Preprocessing(cutoff))])


def noisy(seed: int, size: float = NOISE) -> RawLog:
    """Return what coarse encoders see, with noise of a ``size`` [rad]."""
    return with_noise(clean(), seed, size)


def with_noise(log: RawLog, seed: int, size: float) -> RawLog:
    noise = Noise(1e-6, 1e-6, size, 50.0 * size, 1e-3)
    return measured(log, elastic_arm()[0], noise, np.random.default_rng(seed))


@cache
def falling() -> RawLog:
    """Return a motion with friction that falls from rest, without noise."""
    return elastic_arms.recordings(6.0, Noise(), fall=FALL)[0]


def stiffness(estimate: Estimate, joint: int) -> float:
    return float(estimate.values[estimate.names.index(f'K{joint + 1}')])


def test_instruments_correct_the_attenuation_of_stiffness() -> None:
    true = STIFFER * np.array(elastic_arms.K)
    errors, inside = {}, 0
    for method in ('gls', 'elastic'):
        found = []
        for seed in range(3):
            estimate = ESTIMATORS[method].fit(experiment(noisy(seed)))
            assert method == 'gls' or estimate.details.instruments_taken
            found.append([stiffness(estimate, j) / true[j] - 1.0 for j in JOINTS])
            low, high = estimate.interval(0.99)
            if method == 'elastic':
                places = [estimate.names.index(f'K{j + 1}') for j in JOINTS]
                inside += int(np.sum((low[places] < true) & (true < high[places])))
        errors[method] = np.mean(found, axis=0)
    assert errors['gls'][2] < -0.2
    assert np.all(np.abs(errors['elastic']) < 0.04)
    assert inside >= 7  # of 9 intervals, at 99 %


def test_instruments_follow_the_stiffness_that_they_find() -> None:
    """Noise as large as deflections: least squares finds gears a hundred times too soft.

    Instruments that bend so far find rotors ten times too large; those of the stiffness found by
    instruments do not.
    """
    rotor = elastic_arm()[1].rotor_inertia[2]
    for seed in range(2):
        data = experiment(noisy(seed, 10.0 * NOISE))
        plain, ours = (ESTIMATORS[method].fit(data) for method in ('gls', 'elastic'))
        assert stiffness(plain, 2) < 0.01 * STIFFER * elastic_arms.K[2]
        assert ours.details.instruments_taken
        found = ours.values[ours.names.index('Ia3')]
        assert abs(found - rotor) < 2.0 * rotor  # 0.9 and 1.3 of it, 6 and 11 by one fit


@pytest.mark.parametrize('cutoff', [None, 40.0])
def test_friction_that_falls_from_rest_is_its_own_instrument(cutoff: float | None) -> None:
    """Along the smoothed motion it is elsewhere: F is 3 and 12, friction off by 6 and 11 %."""
    data = falling_experiment(falling(), 50.0)
    estimate, details = InstrumentalVariables(cutoff, bent(data)).fit_and_compare(data)
    true = elastic_arm()[1].coulomb
    found = np.array([estimate.values[estimate.names.index(f'fc{j + 1}')] for j in JOINTS])
    assert details.first_stage_f > 10.0 * WEAK_F
    assert np.all(np.abs(found / true - 1.0) < 0.025)


@pytest.mark.parametrize('steep', [False, True])
def test_friction_that_gains_little_is_not_its_own_instrument(steep: bool) -> None:
    """Strong without it (F is 18.6, with it 18.7), or weak with it, too (0.01 and 4)."""
    data = falling_experiment(with_noise(falling(), 0, 6.0 * NOISE), 20.0) if steep \
        else experiment(noisy(0))
    motors = bent(data)
    along_motion, _ = reduce_with_instruments(data, motion_cutoff(data.recordings), motors)
    estimate = InstrumentalVariables(motors=motors).fit(data)
    assert estimate.values == pytest.approx(fit_weights(data, along_motion).values, rel=1e-9)


def falling_experiment(log: RawLog, cutoff: float) -> Experiment:
    return experiment(log, 'stribeck', cutoff, width=1e-3, speed=FALL)


def bent(data: Experiment) -> Deflected:
    """Put motors where least squares says."""
    return Deflected(data.model, ESTIMATORS['gls'].fit(data).values)


def test_with_precise_encoders_instruments_change_little() -> None:
    motion = elastic_arms.recordings(noise=Noise())[0]
    data, again = (experiment(measured(motion, elastic_arm()[0], elastic_arms.NOISE,
                                       np.random.default_rng(seed))) for seed in range(2))
    plain, ours = (ESTIMATORS[m].fit(data) for m in ('gls', 'elastic'))
    assert ours.method == 'elastic'
    assert not ours.details.instruments_taken
    assert not ESTIMATORS['elastic'].fit(again).details.instruments_taken
    for j in JOINTS:
        assert stiffness(ours, j) == pytest.approx(stiffness(plain, j), rel=0.01)


@pytest.mark.parametrize('seed', [0, 2])
def test_a_gear_too_stiff_to_be_seen_is_told(seed: int) -> None:
    """Both encoders of joint 2 see the same but for their noise: 1 / K may be zero.

    The others are found by instruments; by least squares they are off by 15 deviations and 7.
    """
    log = noisy(seed)
    assert log.motor_position is not None and log.motor_velocity is not None
    assert log.velocity is not None
    motor, speed = log.motor_position.copy(), log.motor_velocity.copy()
    rng = np.random.default_rng(5)
    motor[:, 1] = clean().position[:, 1] + NOISE * rng.standard_normal(len(motor))
    speed[:, 1] = log.velocity[:, 1] + 50.0 * NOISE * rng.standard_normal(len(motor))
    estimate = ESTIMATORS['elastic'].fit(
        experiment(replace(log, motor_position=motor, motor_velocity=speed)))
    assert [name for name in estimate.not_excited if name.startswith('K')] == ['K2']
    assert estimate.status is Status.NOT_EXCITED
    assert np.isinf(estimate.std[estimate.names.index('K2')])
    for joint in (0, 2):
        off = stiffness(estimate, joint) - STIFFER * elastic_arms.K[joint]
        assert abs(off) < 3.0 * estimate.std[estimate.names.index(f'K{joint + 1}')]
    expected = 'K2 of joint joint_2 is not distinguishable from infinity: make the joint rigid'
    assert any(expected in w for w in estimate.warnings)


@pytest.mark.parametrize('method', ['feasible', 'sequential-feasible'])
def test_feasible_gears_and_rotors_are_positive(method: str) -> None:
    """Where least squares makes a damping negative, the conic estimators do not."""
    data = next(e for e in map(experiment, map(noisy, range(20)))
                if _negative(ESTIMATORS['wls'].fit(e)))
    estimate = ESTIMATORS[method].fit(data)
    assert isinstance(estimate, FeasibleEstimate)
    standard = dict(zip(data.model.reduction.standard, estimate.standard, strict=True))
    for j in JOINTS:
        for name in ('Ia', *GEAR[:2]):
            assert standard[f'{name}{j + 1}'] > 0.0, name
    assert stiffness(estimate, 0) == pytest.approx(STIFFER * elastic_arms.K[0], rel=0.2)
    assert isinstance(ESTIMATORS[method], Feasible)
    assert to_plain(estimate.details)


def _negative(estimate: Estimate) -> bool:
    values = dict(zip(estimate.names, estimate.values, strict=True))
    return any(values[f'{name}{j + 1}'] < 0.0 for j in JOINTS for name in ('D', 'Ia'))


def test_elastic_estimator_identifies_stiffness_despite_weak_instruments(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a plant apart from our laws, with encoders of 0.3 mrad."""
    pytest.importorskip('pinocchio')
    from strange_gears import recording

    robot, log = recording({1: 700.0}, seconds=4.0, speed=0.7, friction=0.3, seed=1)
    model = Structure.uniform(robot, True, 'coulomb', {}).torque_model(robot)
    data = Experiment.of(model, [prepare(robot, repair(robot, log), Preprocessing(20.0))])
    estimate = ESTIMATORS['elastic'].fit(data)
    assert 'K2' not in estimate.not_excited and not any('K2' in w for w in estimate.warnings)
    assert stiffness(estimate, 1) == pytest.approx(700.0, rel=0.01)
    assert estimate.std[estimate.names.index('K2')] < 0.02 * 700.0
    monkeypatch.setattr(elastic, 'FOLLOWED', 1.0)
    assert 'K2' in ESTIMATORS['elastic'].fit(data).not_excited, 'its instruments are weak'


def test_a_share_is_that_of_the_column_that_the_effort_follows() -> None:
    """One column with noise of a share of its variance: least squares is that much too small."""
    accumulator = Accumulator(('a',), np.ones((1, 1), dtype=bool), 1000)
    rng, column = np.random.default_rng(0), np.sin(np.arange(20_000.0))
    noisy_column = column + np.sqrt(0.25 * np.mean(column**2)) * rng.normal(size=len(column))
    accumulator.add(noisy_column[None, None], 3.0 * column[:, None], 3.0 * column[:, None])
    data = accumulator.information()
    value = float(noisy_column @ column / (noisy_column @ noisy_column)) * 3.0
    share = float(followed(data, np.array([value]))[0])
    assert share == pytest.approx(0.8, abs=0.01) and value / share == pytest.approx(3.0, rel=0.01)


@pytest.mark.parametrize(('content', 'kind'), [
    ({}, 'DetailsByLeastSquares lacks rounds'),
    ({'instruments_taken': False}, 'DetailsByLeastSquares lacks rounds'),
    ({'instruments_taken': True}, 'DetailsByInstruments lacks instruments')])
def test_details_are_those_of_the_method_that_was_taken(
    content: dict[str, bool], kind: str
) -> None:
    with pytest.raises(ValueError, match=kind):
        ESTIMATORS['elastic'].read_details(content)
