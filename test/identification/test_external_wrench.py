"""identification/identify.py: a simulated arm pushed by a known wrench is identified as if nothing
pushed it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tolerances import PARAMETER_ERROR
from wrist_plant import pushed, write_pushed

from robot_dynid import IdentifiedModel, RawLog, Recipe, identify, load_log, load_robot, validate
from robot_dynid.cli.main import main
from robot_dynid.errors import UsageError
from robot_dynid.estimation.drive_gains import KnownLoad
from robot_dynid.identification.payload import identify_drive_gains
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.simulation.truth import distance, load_truth, true_base
from robot_dynid.types import FloatArray

RECIPE = Recipe(cutoff=20.0, friction='coulomb', effort_lag=0.0, ramp_width=0.01, ripple='none',
                adaptation='none')


@pytest.fixture(scope='module')
def robot() -> RobotModel:
    return load_robot('planar_3r')


@pytest.fixture(scope='module')
def known(robot: RobotModel) -> tuple[RawLog, FloatArray]:
    return pushed(robot, robot.bodies[-1], 1)


@pytest.fixture(scope='module')
def path(
    robot: RobotModel, known: tuple[RawLog, FloatArray], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return write_pushed(
        tmp_path_factory.mktemp('pushed') / 'run.csv', known[0], robot.bodies[-1], known[1])


@pytest.fixture(scope='module')
def found(robot: RobotModel, path: Path) -> IdentifiedModel:
    result = identify(robot, [load_log(path, robot)], 'wls', RECIPE)
    assert not result.warnings
    return result.model


def error(robot: RobotModel, model: IdentifiedModel) -> float:
    """Return the distance from the true parameters, offsets left out, relative."""
    true = true_base(robot, load_truth(robot), model.reduction)
    return distance(model.values, true)


def test_truth_is_recovered_with_the_wrench_alone(
    robot: RobotModel, path: Path, found: IdentifiedModel
) -> None:
    assert error(robot, found) < PARAMETER_ERROR
    without = replace(load_log(path, robot), external_torque=None)
    assert error(robot, identify(robot, [without], 'wls', RECIPE).model) > 10.0 * PARAMETER_ERROR


@pytest.mark.parametrize('method', ['irls', 'feasible'])
def test_irls_and_feasible_use_the_wrench(robot: RobotModel, path: Path, method: str) -> None:
    model = identify(robot, [load_log(path, robot)], method, RECIPE).model
    assert error(robot, model) < PARAMETER_ERROR


def test_validation_scores_what_the_wrench_leaves(
    robot: RobotModel, path: Path, found: IdentifiedModel
) -> None:
    log = load_log(path, robot)
    good = validate(found, [log])
    assert all(score.nrmse < 0.05 for score in good.model['all'].values())
    assert not any('external torque' in text for text in good.warnings)
    bad = validate(found, [replace(log, external_torque=None)])
    assert all(score.nrmse > 0.2 for score in bad.model['all'].values())


@pytest.mark.parametrize(('factor', 'told'), [(-1.0, '-1 times'), (1e-3, 'e+03 times'),
                                              (50.0, '0.02 times')])
def test_a_wrench_that_the_effort_contradicts_is_named(
    robot: RobotModel, path: Path, found: IdentifiedModel, factor: float, told: str
) -> None:
    log = load_log(path, robot)
    assert log.external_torque is not None
    # with that of 50 times the torque efforts are beyond what the robot can do
    wrong = replace(log, external_torque=factor * log.external_torque,
                    accepted=('effort_scale',))
    said = [text for text in validate(found, [wrong]).warnings
            if 'times the external torque' in text]
    assert len(said) == 1 and told in said[0] and 'sign' in said[0]


def test_a_fit_to_a_wrench_of_the_wrong_sign_says_so_first(robot: RobotModel, path: Path) -> None:
    """Though the links take up a part of it; a refused joint alone would be blamed on its effort.
    """
    log = load_log(path, robot)
    assert log.external_torque is not None
    result = identify(
        robot, [replace(log, external_torque=-log.external_torque)], 'wls', RECIPE)
    assert 'times the external torque: check the sign' in result.warnings[0]
    assert result.model.warnings == result.warnings


def test_gaps_and_lost_numbers_of_the_wrench_cost_samples_only(
    robot: RobotModel, known: tuple[RawLog, FloatArray], tmp_path: Path
) -> None:
    log, wrench = known
    rng = np.random.default_rng(5)
    spoiled = wrench.copy()
    spoiled[rng.random(len(wrench)) < 0.05, 2] = np.nan
    spoiled[700:900] = np.nan  # 0.8 s
    damaged = load_log(write_pushed(tmp_path / 'x.csv', log, robot.bodies[-1], spoiled), robot)
    result = identify(robot, [damaged], 'wls', RECIPE)
    assert error(robot, result.model) < PARAMETER_ERROR
    whole = replace(damaged, external_torque=None)
    kept, of = (prepare(robot, repair(robot, one), Preprocessing(20.0))
                for one in (damaged, whole))
    gone = (of.time > 2.8) & (of.time < 3.6)
    assert not np.any((kept.time > 2.8) & (kept.time < 3.6)) and gone.any()
    assert len(kept) > len(of) - 1.5 * gone.sum()


def test_inverse_and_forward_commands_take_an_external_wrench(
    path: Path, robot: RobotModel, found: IdentifiedModel, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = tmp_path / 'm.yaml'
    found.save(model)
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 4, 3))
    wrench = np.random.default_rng(1).normal(size=(4, 6)) * 20.0
    names = [f'{c}.{j}' for c in ('position', 'velocity', 'acceleration') for j in robot.joints]
    link = robot.bodies[-1]

    def table(columns: list[str], values: FloatArray) -> str:
        own = tmp_path / 's.csv'
        np.savetxt(own, np.hstack([values, wrench]), fmt='%.17g', delimiter=',', comments='',
                   header=','.join([*columns, *(f'wrench.{link}.{c}' for c in (
                       'fx', 'fy', 'fz', 'tx', 'ty', 'tz'))]))
        return str(own)

    assert main(['inverse', str(model), table(names, np.hstack([q, v, a])), '--json']) == 0
    effort = np.array(json.loads(capsys.readouterr().out)['effort'])
    assert np.abs(effort - found.inverse(q, v, a)).max() > 1.0
    names = [name.replace('acceleration', 'effort') for name in names]
    assert main(['forward', str(model), table(names, np.hstack([q, v, effort])), '--json']) == 0
    assert np.allclose(json.loads(capsys.readouterr().out)['acceleration'], a)


def test_drive_gains_are_not_found_from_pushed_arms(robot: RobotModel, path: Path) -> None:
    log = load_log(path, robot)
    with pytest.raises(UsageError, match='omit recordings with an external wrench'):
        identify_drive_gains(robot, [log], [log], KnownLoad(1.0))
