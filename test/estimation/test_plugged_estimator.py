"""estimation/estimate.py: an estimator that exists only here: one class and one line in the
registry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from recordings import recording, write_recording

from robot_dynid.cli.main import main
from robot_dynid.document import Row, Table, number
from robot_dynid.errors import UsageError
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.estimate import Details, Estimate, Estimator
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.least_squares import LeastSquares, joint_weights, weighted_factor
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import recipe_from_dict
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.numbers import NumberRange
from robot_dynid.plain import to_plain
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray

ROBOT = load_robot('planar_3r')
RECIPE = {'cutoff': 12.0, 'friction': 'coulomb', 'ramp_width': 0.01, 'effort_lag': 0.0,
          'ripple': 'none'}


@dataclass(frozen=True, eq=False)
class RidgeDetails(Details):
    """``penalty`` and ``shrinkage`` (b,) of the parameters by it."""

    penalty: float
    shrinkage: FloatArray

    def sentence(self, rows: Sequence[str]) -> str:
        """Return the penalty."""
        return f'ridge with a penalty of {number(self.penalty)}'

    def tables(self, rows: Sequence[str]) -> tuple[Table, ...]:
        """Return the largest shrinkage."""
        return (Table(('largest shrinkage',), (Row((number(float(self.shrinkage.max())),)),)),)


@dataclass(frozen=True)
class Ridge(Estimator):
    """Weighted least squares with a penalty on the size of the parameters."""

    penalty: float = setting(
        0.0, NumberRange(0.0, 1e6), 'weight of the squared parameters')
    name = 'ridge'
    summary = 'least squares that shrinks parameters'
    details_type = RidgeDetails

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters."""
        plain = LeastSquares().fit(experiment)
        tall = weighted_factor(experiment.information, joint_weights(experiment.information))
        design, target = tall[:, :-1], tall[:, -1]
        square = design.T @ design
        size = self.penalty * np.trace(square) / len(square)
        values = np.linalg.solve(square + size * np.eye(len(square)), design.T @ target)
        shrinkage = np.abs(values - plain.values)
        return replace(plain, values=values, method=self.name,
                       details=RidgeDetails(self.penalty, shrinkage))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the estimator into the registry."""
    monkeypatch.setitem(ESTIMATORS, 'ridge', Ridge())
    yield


def test_plugged_estimator_takes_its_setting_from_the_recipe() -> None:
    logs = [recording(ROBOT, 0, 10.0)]
    named = recipe_from_dict({**RECIPE, 'estimator': {'name': 'ridge', 'penalty': 1e-3}})
    found = identify(ROBOT, logs, recipe=named)
    beside = identify(ROBOT, logs, 'ridge', recipe_from_dict({**RECIPE, 'penalty': 1e-3}))
    plain = identify(ROBOT, logs, 'wls', recipe_from_dict(RECIPE))
    assert found.model.method == 'ridge'
    assert np.array_equal(found.model.values, beside.model.values)
    assert np.abs(found.model.values - plain.model.values).max() > 1e-6
    with pytest.raises(UsageError, match='penalty is a setting of the method ridge, not of wls'):
        identify(ROBOT, logs, 'wls', recipe_from_dict({**RECIPE, 'penalty': 1e-3}))


def test_command_line_model_file_and_report_know_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_recording(tmp_path, 'one', ROBOT, 0)
    (tmp_path / 'recipe.yaml').write_text('\n'.join(f'{k}: {v}' for k, v in RECIPE.items()))
    words = ['identify', str(data), '--robot', 'planar_3r', '--method', 'ridge', '--penalty',
             '1e-2', '--recipe', str(tmp_path / 'recipe.yaml'), '--out',
             str(tmp_path / 'm.yaml'), '--report', str(tmp_path / 'r.html')]
    assert main([*words, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['method'] == 'ridge' and found['estimator']['penalty'] == 0.01
    assert main([*words, '--verbose']) == 0
    shown = capsys.readouterr().out
    assert 'Ridge with a penalty of 0.01' in shown and 'largest shrinkage' in shown
    details = IdentifiedModel.load(tmp_path / 'm.yaml').record.details
    assert isinstance(details, RidgeDetails)
    assert to_plain(details) == found['estimator']
    report = (tmp_path / 'r.html').read_text(encoding='utf-8')
    assert 'Method ridge' in report and 'Ridge with a penalty of 0.01.' in report
    with pytest.raises(SystemExit):
        main(['identify', '--help'])
    told = capsys.readouterr().out
    assert 'least squares that shrinks parameters' in told
    assert '--penalty' in told and 'weight of the squared parameters' in told


@dataclass(frozen=True)
class OneJointUnknown(Ridge):
    """The same, which says that it predicts nothing of the second joint."""

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters."""
        return replace(super().fit(experiment), shares=np.array([1.0, 0.0, 1.0]))


def test_shares_of_plugged_estimator_decide_which_joints_are_refused(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ESTIMATORS, 'ridge', OneJointUnknown())
    found = identify(ROBOT, [recording(ROBOT, 0, 10.0)], 'ridge', recipe_from_dict(RECIPE))
    assert found.model.not_identified == ('joint_2',)
    assert 'predicted no better than by its mean' in found.model.record.refused['joint_2']


def test_model_of_plugged_estimator_loads_when_it_is_not_registered(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_from_dict({**RECIPE, 'penalty': 1e-3})
    model = identify(ROBOT, [recording(ROBOT, 0, 10.0)], 'ridge', recipe).model
    monkeypatch.delitem(ESTIMATORS, 'ridge')
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert np.array_equal(again.values, model.values)
    assert to_plain(again.record.details) == {}
