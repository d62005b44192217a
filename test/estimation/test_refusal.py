"""identified/caution.py: joints without a model are refused and it is said wherever they are used;
no healthy one is."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from payload_recordings import motion, random_chain, recording
from scipy.signal import lfilter

from robot_dynid.cli.main import main
from robot_dynid.errors import ModelError, RefusedJointWarning
from robot_dynid.estimation import ESTIMATORS, Status
from robot_dynid.estimation.estimate import Estimate
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import Accumulator, Information
from robot_dynid.estimation.least_squares import LeastSquares
from robot_dynid.estimation.uncertainty.held_out import (
    LARGEST_OUTSIDE,
    explained_share,
    held_out,
    refusals,
)
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.caution import caution, require_every_joint, without_refused
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog

RECIPE = Recipe(cutoff=10.0, ramp_width=0.02, effort_lag=0.0, ripple='none')
LAST = 2
ROBOT = load_robot('planar_3r')


def healthy(seed: int = 0) -> RawLog:
    """Return a recording of planar_3r with friction and 2 % of noise."""
    return recording(ROBOT, motion(ROBOT, seed, 30.0), seed=seed, noise=0.02)


def spoiled(log: RawLog, effort: FloatArray) -> RawLog:
    """Return the recording with another effort (T,) of the last joint."""
    return replace(log, effort=np.column_stack([log.effort[:, :LAST], effort]))


def slow(rng: np.random.Generator, count: int, seconds: float) -> FloatArray:
    """Return noise (count,) of deviation one that is alike for so long."""
    keep = np.exp(-0.01 / seconds)
    white = rng.normal(size=count + 1000)
    return lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], white)[1000:]


def unmodelled(log: RawLog, rng: np.random.Generator) -> FloatArray:
    """Return effort of which about 62 % (root mean square) are a torque no parameter explains."""
    own = log.effort[:, LAST]
    size = 0.62 / np.sqrt(1.0 - 0.62**2) * np.sqrt(np.mean(own**2))
    return own + size * slow(rng, len(own), 0.3)


EFFORTS = {
    'noise': lambda log, rng: rng.normal(size=len(log.time)),
    'slow noise': lambda log, rng: slow(rng, len(log.time), 2.0),
    'forty values': lambda log, rng: 0.05 * rng.integers(-20, 20, len(log.time)) + 0.025,
    'constant': lambda log, rng: np.full(len(log.time), 1.5),
    'unmodelled': unmodelled,
}


@pytest.mark.parametrize(('kind', 'seed'), [
    pytest.param(kind, seed, marks=() if seed == k % 3 else pytest.mark.soak)
    for k, kind in enumerate(EFFORTS) for seed in range(3)])
def test_effort_without_a_model_is_refused(kind: str, seed: int) -> None:
    log = healthy(seed)
    effort = EFFORTS[kind](log, np.random.default_rng(seed))
    meant = replace(RECIPE, accept=('effort_scale',))  # some of these look like another unit
    found = identify(ROBOT, [spoiled(log, effort)], recipe=meant)
    joint = ROBOT.joints[LAST]
    assert found.model.not_identified == found.estimate.not_identified == (joint,)
    assert found.estimate.status is Status.NOT_IDENTIFIED
    assert found.model.status.startswith(f'joint {joint} is refused: ')
    assert any(text.startswith(f'joint {joint} is refused: ') for text in found.warnings)


def test_a_joint_that_rests_is_refused_or_explained() -> None:
    """Held still it shows friction and noise only; what gravity does to it is explained."""
    log = recording(ROBOT, motion(ROBOT, 1, 30.0, moving=[0, 1]), noise=0.02)
    still = spoiled(log, 1.5 + 0.1 * np.random.default_rng(0).normal(size=len(log.time)))
    found = identify(ROBOT, [still], recipe=RECIPE)
    assert found.model.not_identified == (ROBOT.joints[LAST],)
    assert f'fv{LAST + 1}' in found.estimate.not_excited


@pytest.mark.parametrize('seed', range(4))  # of three to six joints
def test_healthy_joints_are_not_refused(seed: int) -> None:
    robot = random_chain(seed, 3 + seed % 4)
    log = recording(robot, motion(robot, seed, 30.0), seed=seed, noise=0.05)
    found = identify(robot, [log], recipe=RECIPE)
    assert found.model.not_identified == () and caution(found.model) == ''


def information(errors: FloatArray) -> Information:
    """Return a joint whose effort is a sine and, in each of five folds, an error of some size."""
    accumulator = Accumulator(('a',), np.ones((1, 1), dtype=bool), 100)
    rng = np.random.default_rng(0)
    for size in errors:
        for _ in range(4):
            column = np.sin(np.linspace(0.0, 2.0 * np.pi, 100, endpoint=False))
            effort = 0.3 * column + size * rng.normal(size=100)
            accumulator.add(column[None, None], effort[:, None], effort[:, None])
    return accumulator.information()


def test_a_joint_is_refused_where_folds_contradict_each_other() -> None:
    """The same mean share, once of equal folds, once of folds that contradict each other."""
    even = held_out(information(np.full(5, 0.3)))
    assert even.share[0] > 0.02 and refusals(even) == {}
    uneven = replace(even, margin=even.share)
    assert 'no better than by its mean' in refusals(uneven)[0]
    assert even.margin[0] < held_out(information(np.array([0.1, 0.5, 0.1, 0.3, 0.3]))).margin[0]


@dataclass(frozen=True)
class Spoiling(LeastSquares):
    """A method whose constraints spoil the friction of the last joint."""

    name = 'spoiling'

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters, then spoil one."""
        found = super().fit(experiment)
        values = found.values.copy()
        values[found.names.index(f'fv{LAST + 1}')] += 50.0
        return replace(found, values=values)


def test_the_parameters_that_are_served_are_judged_whatever_the_method(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ESTIMATORS, 'spoiling', Spoiling())
    log = healthy()
    assert identify(ROBOT, [log], 'wls', RECIPE).model.not_identified == ()
    found = identify(ROBOT, [log], 'spoiling', RECIPE)
    joint = ROBOT.joints[LAST]
    assert found.model.not_identified == (joint,)
    assert 'worse than by its mean' in found.model.record.refused[joint]
    assert found.training.model['all'][joint].r2 < 0.0


def test_a_share_below_zero_is_refused() -> None:
    held = held_out(information(np.full(5, 0.3)))
    data = information(np.full(5, 0.01))
    shares = [float(explained_share(data, np.array([value]))[0]) for value in (0.3, -0.3)]
    assert shares[0] == pytest.approx(1.0, abs=0.01) and shares[1] == pytest.approx(-3.0, abs=0.1)
    assert refusals(held, served=np.array(shares[:1])) == {}
    assert 'worse than by its mean' in refusals(held, served=np.array(shares[1:]))[0]


@pytest.fixture(scope='module')
def lost() -> IdentificationResult:
    log = healthy()
    return identify(ROBOT, [spoiled(log, unmodelled(log, np.random.default_rng(0)))],
                    recipe=RECIPE)


def test_an_unmodelled_effect_is_told_with_its_share(lost: IdentificationResult) -> None:
    (reason,) = lost.model.record.refused.values()
    share = float(re.findall(r'([\d.]+)%', reason)[0])
    assert 100.0 * LARGEST_OUTSIDE < share < 75.0
    assert 'outside what any parameters explain' in reason


def test_python_warns_once_for_every_model(lost: IdentificationResult, tmp_path: Path) -> None:
    model = identify(ROBOT, [healthy()], recipe=RECIPE).model
    replace(model, not_identified=lost.model.not_identified, method=lost.model.method,
            record=lost.model.record).save(tmp_path / 'm.yaml')
    zeros = np.zeros(3)
    uses = (lambda m: m.inverse(zeros, zeros, zeros), lambda m: m.forward(zeros, zeros, zeros),
            lambda m: m.rollout(zeros, zeros, np.zeros((2, 3)), 0.01), lambda m: m.gravity(zeros),
            lambda m: m.mass_matrix(zeros), lambda m: m.links)
    for use in uses:
        model = IdentifiedModel.load(tmp_path / 'm.yaml')
        with pytest.warns(RefusedJointWarning, match='joint_3 .* outside what any'):
            use(model)
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            use(model)


def test_a_refused_joint_has_no_effort_but_the_others_do(lost: IdentificationResult) -> None:
    effort = np.arange(6.0).reshape(2, ROBOT.n)
    found = without_refused(lost.model, effort)
    assert np.isnan(found[:, LAST]).all()
    np.testing.assert_array_equal(found[:, :LAST], effort[:, :LAST])


def test_require_every_joint_refuses_models_with_refused_joints(
    lost: IdentificationResult
) -> None:
    require_every_joint(lost.model, partial=True)
    require_every_joint(replace(lost.model, not_identified=()))
    with pytest.raises(ModelError, match='all joints move together, and joint joint_3 is refused'):
        require_every_joint(lost.model)
    with pytest.raises(ModelError):
        require_every_joint(replace(lost.model, not_identified=ROBOT.joints), partial=True)


def test_the_result_of_identify_warns_where_it_is_used(lost: IdentificationResult) -> None:
    with pytest.warns(RefusedJointWarning) as told:
        replace(lost.model).inverse(np.zeros(3), np.zeros(3), np.zeros(3))
    assert told[0].filename == __file__


def test_the_command_line_exits_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]
                                         ) -> None:
    log, out = healthy(), tmp_path / 'm.yaml'
    write_csv(tmp_path / 'log.csv', spoiled(log, np.full(len(log.time), 1.5)))
    (tmp_path / 'r.yaml').write_text('{cutoff: 10, ramp_width: 0.02, effort_lag: 0}')
    words = ['identify', str(tmp_path / 'log.csv'), '--robot', 'planar_3r', '--recipe',
             str(tmp_path / 'r.yaml'), '--out', str(out)]
    assert main(words) == 1
    shown = capsys.readouterr().out
    assert shown.startswith('joint joint_3 is refused: its effort is constant')
    assert '--accept-partial' in shown and IdentifiedModel.load(out).not_identified == ('joint_3',)
    assert main([*words, '--json']) == 1
    found = json.loads(capsys.readouterr().out)
    assert list(found)[:2] == ['ok', 'status'] and not found['ok']
    assert found['advice'].startswith('joint joint_3 is refused')
    assert found['refused'] == {'joint_3': 'its effort is constant'}
    assert main([*words, '--accept-partial', '--json']) == 0
    assert json.loads(capsys.readouterr().out)['ok']


def test_the_identify_action_names_refused_joints_first() -> None:
    pytest.importorskip('rclpy')
    job = import_module('robot_dynid.ros.identifier.identification')
    log = healthy()
    recipe = '{cutoff: 10, ramp_width: 0.02, effort_lag: 0}'
    outcome = job.run(job.Job(ROBOT, (spoiled(log, np.full(len(log.time), 1.5)),), recipe=recipe),
                      lambda stage, fraction: None)
    assert outcome.code is job.Code.SUCCESS and outcome.model is not None
    assert outcome.message.startswith('joint joint_3 is refused: its effort is constant')
    assert outcome.warnings[0].startswith('joint joint_3 is refused')
