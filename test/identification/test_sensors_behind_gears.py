"""identification/fit.py: efforts of torque sensors behind the gears: rotors they do not see must
not be looked for."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from elastic_arms import elastic_arm, recordings

from robot_dynid.dynamics import rigid_body
from robot_dynid.errors import ModelError
from robot_dynid.estimation import ESTIMATORS, LeastSquares
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification.fit import choose_feasible
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.identification.selection import Choice
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import impossible
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import RawLog

FIXED = Recipe(cutoff=10.0, friction='coulomb', ramp_width=0.05, ripple='none')
#: deviation of the three sensors [N m]; the last one is coarse beside the inertia of its link
NOISE = np.array([0.02, 0.02, 8.0])
#: what is advised where sensors are behind the gears, and `sensor_side` alone knows that they are
WITHOUT = 'rotor_inertia: false', 'sensor: link'


@pytest.fixture(scope='module')
def arm():
    """Return a planar arm of three joints."""
    return load_robot('planar_3r')


@pytest.fixture(scope='module')
def sensed(arm):
    """Return what sensors behind the gears measure: the links alone."""
    rng = np.random.default_rng(1)
    time = np.arange(2000) / 200.0
    motion = random_fourier(motion_limits(arm).scaled(0.9), FourierOptions(10.0, 8), rng)
    motion = motion.sample(time)
    torque = rigid_body.inverse_dynamics(
        arm, motion.position, motion.velocity, motion.acceleration)
    return RawLog('sensors', arm.joints, time, motion.position, velocity=motion.velocity,
                  effort=torque + NOISE * rng.standard_normal(torque.shape))


@pytest.fixture(scope='module')
def with_rotors(arm, sensed):
    """Return the model that looks for rotors all the same, made without a conic solver."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, 'clarabel', None)
        return identify(arm, [sensed], recipe=FIXED).model


def told(model: IdentifiedModel, text: str) -> str:
    """Return the one warning that holds ``text``."""
    warning, = (w for w in model.warnings if text in w)
    return warning


def test_rotors_below_zero_are_named_with_the_remedy(with_rotors):
    assert with_rotors.values[with_rotors.names.index('Ia3')] < 0.0
    warning = told(with_rotors, 'below zero')
    assert 'joint_3 (Ia3: -0.02' in warning and 'joint_2' not in warning
    assert '--method feasible' in warning and not any(text in warning for text in WITHOUT)


def test_an_indefinite_mass_matrix_is_told_with_the_remedy(with_rotors):
    warning = told(with_rotors, 'at 1000 of 1000 random configurations')
    rest = np.zeros(3)
    with pytest.raises(ModelError) as refused:
        with_rotors.forward(rest, rest, rest)
    stopped, = with_rotors.rollout(rest, rest, np.zeros((10, 3)), 0.01).warnings
    for text in (warning, str(refused.value), stopped):
        assert '--method feasible' in text and not any(other in text for other in WITHOUT)


def test_by_default_the_robot_can_exist_and_one_line_says_why(arm, sensed):
    result = identify(arm, [sensed], recipe=FIXED)
    model = result.model
    warning = told(model, 'physically consistent parameters')
    assert 'mass matrix of wls is not positive definite at 1000 of 1000' in warning
    assert 'method feasible' in warning and '% at most' in warning
    assert model.method == 'feasible' and impossible(model) == []
    assert np.array_equal(model.values, model.reduction.base(model.feasible))
    q = np.random.default_rng(5).uniform(-np.pi, np.pi, (2000, 3))
    assert np.linalg.eigvalsh(model.mass_matrix(q)).min() > 0.0
    assert np.isfinite(model.forward(np.zeros(3), np.zeros(3), np.zeros(3))).all()
    loose = LeastSquares().fit(result.experiment)
    assert np.all(result.estimate.noise < 1.05 * loose.noise)
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert again.method == 'feasible' and warning in again.warnings


def test_least_squares_that_a_robot_may_have_stay_as_they_are(arm, sensed):
    recipe = replace(FIXED, rotor_inertia=False)
    result = identify(arm, [sensed], recipe=recipe)
    assert result.model.method == 'wls' and result.model.feasible is None
    plain = LeastSquares().fit(result.experiment)
    estimator, kept = choose_feasible(LeastSquares(), plain, result.experiment, result.choice)
    assert estimator == LeastSquares() and kept is plain


def test_without_the_solver_least_squares_stay_with_what_is_missing(with_rotors):
    assert with_rotors.method == 'wls' and told(with_rotors, 'pip install clarabel')


def test_without_rotors_the_model_serves(arm, sensed):
    recipe = replace(FIXED, rotor_inertia=recipe_from_dict({'rotor_inertia': False}).rotor_inertia)
    model = identify(arm, [sensed], recipe=recipe).model
    assert not [w for w in model.warnings if 'below zero' in w or 'not positive definite' in w]
    assert not [name for name in model.reduction.standard if name.startswith('Ia')]
    q = np.random.default_rng(2).uniform(-2.0, 2.0, (20, 3))
    np.testing.assert_allclose(model.mass_matrix(q), rigid_body.mass_matrix(arm, q), rtol=0.02,
                               atol=2e-3)
    again = IdentifiedModel.from_yaml(model.to_yaml())
    np.testing.assert_array_equal(again.mass_matrix(q), model.mass_matrix(q))


@pytest.mark.parametrize('rotors', [True, False])
def test_feasible_parameters_serve(arm, sensed, rotors):
    recipe = replace(FIXED, rotor_inertia=rotors)
    model = identify(arm, [sensed], 'feasible', recipe).model
    assert not [w for w in model.warnings if 'below zero' in w or 'not positive definite' in w]
    assert np.isfinite(model.forward(np.zeros(3), np.zeros(3), np.zeros(3))).all()


def test_impossible_advises_no_rotor_inertia_when_it_does_not_help(with_rotors, arm):
    plain = identified_without(with_rotors)
    warning, = impossible(plain)
    assert 'not positive definite' in warning and '--method feasible' in warning
    assert 'rotor_inertia' not in warning


def identified_without(model: IdentifiedModel) -> IdentifiedModel:
    """Return a model without rotors whose last link is impossible."""
    structure = replace(model.structure, rotor_inertia=False)
    reduction = structure.torque_model(model.robot).reduction
    values = np.array([0.0 if name.startswith('I') else 1.0 for name in reduction.names])
    return replace(model, structure=structure, reduction=reduction, values=values,
                   std=np.zeros_like(values), control=values)


def test_a_motor_of_several_joints_is_named():
    robot = load_robot('tx40')
    from robot_dynid.identified.structure import Structure
    structure = Structure.uniform(robot, True, 'coulomb', {})
    reduction = structure.torque_model(robot).reduction
    links = np.concatenate([robot.nominal.ravel(),
                            np.full(len(reduction.standard) - 10 * robot.n, 10.0)])
    links[reduction.standard.index('Iam6')] = -0.01
    values = reduction.base(links)
    model = IdentifiedModel(robot, structure, reduction, values, np.zeros_like(values), values,
                            None)
    warning, = impossible(model)
    assert 'motor of joint_6 (Iam6: -0.01' in warning


@pytest.mark.parametrize('method', ['wls', 'elastic'])
def test_choose_feasible_counts_for_elastic_joints_too(method: str) -> None:
    """Parameters of a robot that cannot be are replaced, whichever method gave them."""
    robot, _ = elastic_arm()
    structure = Structure.uniform(robot, True, 'coulomb', {'width': 0.01})
    settings = Preprocessing(30.0, decimate=False)
    torque, log = structure.torque_model(robot), recordings(2.0)[0]
    experiment = Experiment.of(torque, [prepare(torque.robot, repair(robot, log), settings)])
    free = LeastSquares().fit(experiment)
    chosen, found = choose_feasible(ESTIMATORS[method], replace(free, values=-free.values),
                                    experiment, Choice(settings, structure))
    assert chosen.name == found.method == 'feasible'
    assert any('is not positive definite' in one for one in found.warnings)
