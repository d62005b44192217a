"""estimation/staged/joint_effort.py: friction laws from recordings of single joints: each from its
own motion, then the links."""

from __future__ import annotations

import numpy as np
import pytest
from motions import torque_model
from single_joint_recordings import planned

from robot_dynid.effects import axes_of
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.staged.joint_effort import (
    JointEffort,
    JointLoad,
    joint_efforts,
    joint_motions,
    single_joint_errors,
    single_joint_mask,
)
from robot_dynid.friction import Coulomb, Dahl, law_from
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog, Samples
from robot_dynid.validation.validate import validate

ROBOT = load_robot('planar_3r')
#: presliding over a length, friction that grows with the load, plain friction
LAWS = [('dahl', Dahl(length=0.02)), ('coulomb+load', law_from('coulomb+load', {'width': 0.05})),
        ('coulomb', Coulomb(width=0.05))]
VALUES = {'fv1': 0.3, 'fc1': 2.0, 'f01': 0.1, 'fv2': 0.2, 'fc2': 0.3, 'f02': 0.0, 'fw2': 0.25,
          'fv3': 0.1, 'fc3': 0.2, 'f03': 0.0}
NOISE = 0.01


def truth() -> tuple[TorqueModel, FloatArray]:
    """Return a model with these laws, and base parameters."""
    rng = np.random.default_rng(2)
    links = ROBOT.nominal * rng.uniform(0.8, 1.2, (ROBOT.n, 10))
    model = Structure.of(True, LAWS, links).torque_model(ROBOT)
    values = dict.fromkeys(model.reduction.standard, 0.2) | dict(
        zip(model.blocks[0].names, links.ravel())) | VALUES
    return model, model.reduction.base(list(values.values()))


def recorded(states: Samples, source: str) -> RawLog:
    """Return the recording of a motion."""
    model, parameters = truth()
    effort = model.effort(states, parameters)
    effort = effort + NOISE * np.random.default_rng(3).standard_normal(effort.shape)
    return RawLog(source, ROBOT.joints, states.time, states.position, effort=effort)


def together() -> Samples:
    """Return a motion of all joints at once."""
    time = np.arange(0.0, 20.0, 0.01)
    rate, size = np.array([0.9, 1.3, 1.7]), np.array([0.9, 1.1, 0.8])
    phase = np.outer(time, rate)
    return Samples(ROBOT.joints, time, size * np.sin(phase), size * rate * np.cos(phase),
                   -size * rate**2 * np.sin(phase))


@pytest.fixture(scope='module')
def swings() -> RawLog:
    """Return a recording of a sine sequence."""
    return recorded(planned(torque_model(ROBOT)), 'swings')


@pytest.fixture(scope='module')
def found(swings: RawLog) -> IdentificationResult:
    """Return what is identified with laws chosen joint by joint."""
    return identify(ROBOT, [swings], 'staged', Recipe(cutoff=20.0, effort_lag=0.0))


def errors(result: IdentificationResult) -> FloatArray:
    """Return the relative errors of the joints on a motion of all at once."""
    scores = validate(result.model, [recorded(together(), 'together')]).model['all']
    return np.array([one.relative_error for one in scores.values()])


def test_every_joint_gets_the_law_of_its_own_motion(found):
    laws = found.model.structure.friction
    assert laws[0].split('+')[0] in ('dahl', 'maxwell')
    assert 'load' in laws[1]
    assert laws[2] == 'coulomb'
    assert [one.axis for one in found.choice.friction] == ['1', '2', '3']
    values = found.model.standard
    sliding = sum(v for name, v in values.items() if name.startswith('fc') and name[-1] == '1')
    assert sliding == pytest.approx(VALUES['fc1'], rel=0.05)
    assert values['fw2'] == pytest.approx(VALUES['fw2'], rel=0.1)


def test_the_laws_predict_a_motion_of_all_joints(found, swings):
    plain = identify(ROBOT, [swings], 'staged', Recipe(cutoff=20.0, effort_lag=0.0,
                                                       friction='coulomb'))
    assert found.estimate.rank == len(found.estimate.values)
    assert np.all(errors(found) < 0.05)
    assert np.all(errors(found)[:2] < 0.6 * errors(plain)[:2])


def test_a_law_that_is_named_is_kept(swings):
    result = identify(ROBOT, [swings], 'staged', Recipe(
        cutoff=20.0, effort_lag=0.0, friction={'joint_1': 'dahl', 'others': 'coulomb'}))
    assert result.model.structure.friction == ('dahl', 'coulomb', 'coulomb')


def test_the_control_row_and_the_score_know_only_joints_that_move():
    """What holds a joint at rest is no friction that a fit may learn from."""
    model, parameters = truth()
    states = planned(torque_model(ROBOT))
    effort = model.effort(states, parameters)
    own = single_joint_mask(ROBOT, states)
    assert np.all(own.sum(axis=1) <= 1)
    assert own.any(axis=0).all()
    spoiled = effort + np.where(own, 0.0, 5.0)
    clean, dirty = (Samples(ROBOT.joints, states.time, states.position, states.velocity,
                            states.acceleration, y, y) for y in (effort, spoiled))
    for batch in (joint_efforts(Experiment.of(model, [one])).total for one in (clean, dirty)):
        wide = [factor[:, -2] - factor[:, :-3] @ parameters[row]
                for factor, row in zip(batch.factors, model.structure)]
        assert max(np.abs(one).max() for one in wide) < 1e-8
    assert single_joint_errors(model, [clean]) == pytest.approx(
        single_joint_errors(model, [dirty]), abs=1e-6)


def test_joint_effort_has_the_parameters_that_the_moving_joint_separates():
    model = torque_model(ROBOT)
    last = joint_motions(ROBOT, [planned(model)])[-1]
    own = JointEffort.during(model, last)
    assert last.joint == 2
    assert own.reduction.names == ('mx3', 'my3', 'Izz3', 'fv3', 'fc3', 'f03')
    place = [model.reduction.names.index(name) for name in own.reduction.names]
    assert own.combination[:, place] == pytest.approx(np.eye(6), abs=1e-9)
    assert own.combination[2, model.reduction.names.index('Ia3')] == pytest.approx(1.0)
    assert not own.structure[:2].any()


def test_a_joint_is_loaded_by_its_own_torque():
    rng = np.random.default_rng(4)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 5, 3))
    axes = axes_of(ROBOT)
    whole = Structure.of(True, LAWS, ROBOT.nominal).load_of(ROBOT)(q, qd, qdd)
    for j in range(3):
        load = JointLoad(ROBOT, axes, ROBOT.nominal, j)(q, qd, qdd)
        assert load == pytest.approx(whole[:, [j]])


def test_springs_that_only_the_past_tells_apart_are_all_found():
    """Sliding shows one sum of their amplitudes; the swings that were recorded show each."""
    laws = [('coulomb', Coulomb()), ('coulomb', Coulomb()), (
        'maxwell', law_from('maxwell', {'lengths': (0.01, 0.1)}))]
    model = Structure.of(True, laws, None).torque_model(ROBOT)
    own = JointEffort.during(model, joint_motions(ROBOT, [planned(model)])[-1])
    assert {'fca3', 'fcb3'} <= set(own.reduction.names)
    friction = model.blocks[-1]
    rest = friction.separable(Samples(ROBOT.joints, np.arange(5.0), *np.zeros((3, 5, 3))))
    assert not rest[[i for i, name in enumerate(friction.names) if name[:2] == 'fc']].any()
