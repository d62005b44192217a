"""Damping of gears with hysteresis and kinematic error, whose law is another than the model's."""

from __future__ import annotations

from dataclasses import replace

import closed_form_gear
import numpy as np
import pytest
from elastic_arms import NOISE, D, K, elastic_arm, recordings
from tolerances import (
    EQUAL_DEVIATION,
    FOREIGN_DAMPING,
    GEAR_DAMPING,
    GEAR_LOOP,
    GEAR_WAVE,
    LEAST_ERROR,
    SWIFT_DAMPING,
    WIDER_DEVIATION,
)

from robot_dynid import ESTIMATORS, IdentifiedModel, identify
from robot_dynid.effects import GearEffects
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification.gear_effects import (
    allow_for_other_hysteresis,
    gear_effects,
    omitted_effects,
)
from robot_dynid.identification.identify import IdentificationResult
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.structure import Structure
from robot_dynid.report.effects import elastic_joints
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare, repair
from robot_dynid.simulation.arm import measured
from robot_dynid.simulation.truth import Noise, load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import RawLog, Samples, channels
from robot_dynid_evaluation.bench import gears as gear_plant
from robot_dynid_evaluation.bench.gears import ForeignGears

ERROR, LOOP, SWIFT = 4e-5, 8e-5, 1.25e-4


def check(result: IdentificationResult, error: float, factor: float) -> None:
    """Hold gears against the truth; without their effects D is ``factor`` times too large."""
    structure = result.choice.structure
    plain = replace(structure, gears=()).torque_model(result.experiment.model.robot)
    without = ESTIMATORS['elastic'].fit(Experiment.of(plain, result.experiment.recordings))
    wrong = [without.values[without.names.index(f'D{j + 1}')] / D[j] for j in range(3)]
    assert max(wrong) > factor
    degrees = result.estimate.degrees_of_freedom
    for gear, k, d in zip(result.model.record.gears, K, D, strict=True):
        assert gear.stiffness == pytest.approx(k, rel=0.01)
        assert gear.damping == pytest.approx(d, rel=GEAR_DAMPING)
        assert abs(gear.damping - d) < interval_factor(degrees) * gear.damping_std
        assert gear.kinematic_error == pytest.approx(error, rel=GEAR_WAVE)
        assert (gear.kinematic_error_std > 0.0) == (error > 0.0)
        assert gear.hysteresis == pytest.approx(LOOP * k, rel=GEAR_LOOP)
        assert 0.0 < gear.hysteresis_std < 0.2 * gear.hysteresis


def check_deviations(result: IdentificationResult, logs: list[Repaired]) -> None:
    """Hold deviations from both sides: by the truth, and by those without random amplitudes.

    With the changes under other cut-offs. The law of these gears is near to that of the model, so
    random amplitudes leave their damping about as sure, and what they do not touch as it is.
    """
    structure, settings = result.choice.structure, result.choice.preprocessing
    robot, reduction = result.model.robot, result.experiment.model.reduction
    model = structure.torque_model(robot, reduction)

    def values(share: float) -> np.ndarray:
        changed = replace(settings, cutoff=share * settings.cutoff)
        return ESTIMATORS['gls'].fit(Experiment.of(
            model, [prepare(robot, log, changed) for log in logs],
            result.experiment.reversal_weights)).values

    best = values(1.0)
    low, high = ((values(share) - best)**2 for share in (1.0 / 1.5, 1.5))
    plain = ESTIMATORS['elastic'].fit(result.experiment).std**2
    found, changed = result.estimate.std**2, (low + high) / 2.0
    of = dict(zip(result.estimate.names, np.sqrt(found / (plain + changed)), strict=True))
    beside = dict(zip(result.estimate.names, (found - changed) / plain, strict=True))
    for name in ('D1', 'D2', 'D3'):
        assert 1.0 / WIDER_DEVIATION**2 < beside[name] < WIDER_DEVIATION**2
    assert [value for name, value in of.items() if name.startswith((
        'h', 'Ks', 'Kc', 'Ds', 'Dc'))] == pytest.approx([1.0] * 18, rel=EQUAL_DEVIATION)
    errors = [((gear.damping - d) / gear.damping_std, (gear.stiffness - k) / gear.stiffness_std)
              for gear, k, d in zip(result.model.record.gears, K, D, strict=True)]
    assert LEAST_ERROR < np.sqrt(np.mean(np.square(errors))) < 1.0 / LEAST_ERROR


def test_damping_is_found_beside_hysteresis_and_kinematic_error() -> None:
    effects = {'error': ERROR, 'loop': LOOP, 'length': 1.5e-4}
    robot, _ = elastic_arm(**effects)
    result = identify(robot, recordings(**effects), 'elastic',
                      Recipe(friction='coulomb', cutoff=50.0, ripple='none'))
    check(result, ERROR, 2.0)
    check_deviations(result, [repair(robot, log) for log in recordings(**effects)])
    without = replace(result.choice.structure, gears=())
    (warning,) = omitted_effects(robot, without, result.experiment.recordings, 'latent')
    assert warning.startswith('joint_1, joint_2, joint_3: the method latent omits')
    assert result.estimate.method == 'elastic' and not result.estimate.details.instruments_taken
    model = result.model
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert (again.structure, again.record.gears) == (model.structure, model.record.gears)
    words = model.torque_model.words
    assert words['Ks1'].words == 'sine of the kinematic error times stiffness'
    assert (words['ha2'].part, words['ha2'].unit) == ('joint_2', 'N m')
    table = elastic_joints(model)[0].tables[0]
    assert all('±' in cell for row in table.rows for cell in row.cells[-2:])
    q = np.zeros((1, 3))
    assert np.isfinite(np.array(model.forward_elastic(q, q, q, q, q))).all()


def closed_form(
    error: tuple[float, float] = closed_form_gear.ERROR, loop: float = closed_form_gear.LOOP
) -> tuple[RobotModel, Structure, list[Samples]]:
    """Return the arm in closed form, a structure without effects, and its only recording."""
    robot, settings = closed_form_gear.arm(), Preprocessing(50.0, decimate=False)
    samples = prepare(robot, repair(robot, closed_form_gear.recording(error, loop)), settings)
    return robot, Structure.uniform(robot, True, 'coulomb', {}), [samples]


def test_effects_are_those_of_the_closed_form() -> None:
    robot, structure, samples = closed_form()
    (effects,) = gear_effects(robot, structure, samples)
    assert effects.states == 'dahl' and 6e-5 in effects.lengths
    assert effects.error == pytest.approx(closed_form_gear.ERROR, rel=4e-3)


def test_effects_that_a_method_omits_are_told() -> None:
    robot, structure, samples = closed_form(loop=0.0)
    (warning,) = omitted_effects(robot, structure, samples, 'latent')
    assert warning.startswith('joint_2: the method latent omits kinematic error and hysteresis')
    assert omitted_effects(*closed_form((0.0, 0.0), 0.0), 'latent') == []


def test_a_bounded_estimate_keeps_its_values_and_gets_the_change_as_covariance() -> None:
    robot, structure, samples = closed_form(loop=0.0)
    structure = replace(structure, gears=(GearEffects(closed_form_gear.ERROR, (6e-5,)),))
    experiment = Experiment.of(structure.torque_model(robot), samples)
    estimate = ESTIMATORS['gls'].fit(experiment)
    recordings = [repair(robot, closed_form_gear.recording(loop=0.0))]
    settings = Preprocessing(50.0, decimate=False)
    free, bounded = (allow_for_other_hysteresis(one, experiment, recordings, structure, settings)
                     for one in (estimate, replace(estimate, standard=estimate.values)))
    change = free.values - estimate.values
    assert np.abs(change).max() > 0.0
    np.testing.assert_array_equal(bounded.values, estimate.values)
    np.testing.assert_allclose(bounded.covariance - free.covariance, np.outer(change, change),
                               rtol=1e-6, atol=1e-12)


def test_gears_without_effects_get_none() -> None:
    robot, _ = elastic_arm(ERROR)  # for its gear ratios
    log = recordings(4.0)[0]
    structure = Structure.uniform(robot, True, 'coulomb', {})
    for cutoff in (15.0, 50.0):
        samples = [prepare(robot, repair(robot, log), Preprocessing(cutoff))]
        assert gear_effects(robot, structure, samples) == ()


@pytest.mark.parametrize(('error', 'seconds', 'joints'), [
    (ERROR, 6.0, ['joint_2', 'joint_3']), (0.0, 4.0, [])])
def test_a_wrong_gear_ratio_is_named_by_the_waves_there_are(
    error: float, seconds: float, joints: list[str]
) -> None:
    """Motor states on the joint side show no ratio; waves do, not surely for every gear."""
    robot, _ = elastic_arm(error)
    robot = replace(robot, drive=replace(robot.drive, gear_ratios=np.full(3, 160.0)))
    logs = [thinned(log, 4) for log in recordings(seconds, error=error)]
    found = identify(robot, logs, 'elastic', Recipe(
        friction='coulomb', cutoff=30.0, ripple='none', residual='none', adaptation='none'))
    told = [text for text in found.warnings if 'correct gear_ratios' in text]
    assert [text.split(':')[0] for text in told] == joints, told
    assert all('one of 200 waves' in text and 'about 100 has:' in text for text in told), told


def thinned(log: RawLog, stride: int) -> RawLog:
    """Return every so many rows of a recording."""
    return replace(log, time=log.time[::stride], **{
        name: values[::stride] for name, values in channels(log).items()})


@pytest.mark.parametrize('seed', [1, 3])  # of noise by which waves or states lower the error
def test_noise_of_encoders_is_no_effect_of_gears(seed: int) -> None:
    robot, _ = elastic_arm(ERROR)
    log = recordings()[0]
    rng = np.random.default_rng(seed)
    noisy = [one + 5e-4 * rng.standard_normal(one.shape)
             for one in (log.position, log.motor_position)]
    log = replace(log, position=noisy[0], motor_position=noisy[1], velocity=None,
                  motor_velocity=None)
    samples = [prepare(robot, repair(robot, log), Preprocessing(6.5, decimate=False))]
    assert gear_effects(robot, Structure.uniform(robot, True, 'coulomb', {}), samples) == ()


def test_damping_beside_waves_as_fast_as_those_of_a_swift_wrist() -> None:
    """Thinned to a cut-off of 15 Hz they would fold; at 75 Hz they would look like a lag."""
    robot, _ = elastic_arm(SWIFT)
    logs = recordings(5.0, error=SWIFT)
    for cutoff in (15.0, 75.0):
        result = identify(robot, logs, 'elastic', Recipe(
            friction='coulomb', cutoff=cutoff, ripple='none'))
        assert [gear.damping for gear in result.model.record.gears] == pytest.approx(
            D, rel=SWIFT_DAMPING)
        assert abs(result.choice.preprocessing.effort_lag) < 1e-4


@pytest.mark.parametrize(('sharp', 'share'), [
    pytest.param(3.0, 0.7, marks=pytest.mark.soak), (1.0, 0.5)])
def test_intervals_hold_beside_hysteresis_of_another_kind(
    monkeypatch: pytest.MonkeyPatch, sharp: float, share: float
) -> None:
    monkeypatch.setattr(gear_plant, 'SHARP', sharp)
    monkeypatch.setattr(gear_plant, 'SHARE', share)
    robot, _ = elastic_arm()
    gears = ForeignGears(np.array(K), np.array(D), 7e-5 * np.array(K), np.full(3, 2e-4))
    logs = []
    for number in range(2):
        path = random_fourier(motion_limits(robot).scaled(0.7), FourierOptions(8.0, 5),
                              np.random.default_rng(20 + number))
        truth = replace(load_truth(robot), noise=Noise())
        logs.append(measured(gears.recorded(robot, truth, path, 1000.0), robot, NOISE,
                             np.random.default_rng(number)))
    result = identify(robot, logs, 'elastic', Recipe(friction='coulomb', cutoff=50.0))
    factor = interval_factor(result.estimate.degrees_of_freedom)
    for gear, d in zip(result.model.record.gears, D, strict=True):
        assert abs(gear.damping - d) < min(factor * gear.damping_std, FOREIGN_DAMPING * d)


@pytest.mark.soak
@pytest.mark.parametrize(('length', 'error'), [(8e-5, 0.0), (4e-4, 0.0), (1.5e-4, ERROR)])
@pytest.mark.parametrize('seed', [0, 1, 2])
def test_damping_by_default_settings(length: float, error: float, seed: int) -> None:
    effects = {'error': error, 'loop': LOOP, 'length': length}
    robot, _ = elastic_arm(**effects)
    check(identify(robot, recordings(seed=10 * seed, **effects), 'elastic'), error, 2.0)
