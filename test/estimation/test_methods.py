"""estimation/: methods gls, irls and iv from recipe to report: keys, files, sentences."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from recordings import recording, write_recording

from robot_dynid.cli.main import main
from robot_dynid.errors import UsageError
from robot_dynid.estimation.errors_in_variables.instrumental import InstrumentDetails
from robot_dynid.estimation.irls import RobustDetails
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import recipe_from_dict
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.plain import to_plain
from robot_dynid.report.effects import method
from robot_dynid.robot.robot_file import load_robot

ROBOT = load_robot('planar_3r')
RECIPE = {'cutoff': 12.0, 'friction': 'coulomb', 'ramp_width': 0.01, 'effort_lag': 0.0,
          'ripple': 'none'}
METHODS = ('gls', 'irls', 'iv')


@pytest.fixture(scope='module')
def results() -> dict[str, IdentificationResult]:
    logs = [recording(ROBOT, seed, 15.0) for seed in (0, 1)]
    return {name: identify(ROBOT, logs, name, recipe_from_dict(RECIPE))
            for name in ('wls', *METHODS)}


@pytest.mark.parametrize('name', METHODS)
def test_methods_agree_where_least_squares_holds(
    name: str, results: dict[str, IdentificationResult]
) -> None:
    ours, plain = results[name].estimate, results['wls'].estimate
    assert np.all(np.abs(ours.values - plain.values) < 4.0 * plain.std + 1e-3)


@pytest.mark.parametrize('name', METHODS)
def test_details_of_methods_are_in_model_file_and_report(
    name: str, results: dict[str, IdentificationResult], tmp_path: Path
) -> None:
    model = results[name].model
    model.save(tmp_path / 'model.yaml')
    again = IdentifiedModel.load(tmp_path / 'model.yaml')
    assert type(again.record.details) is type(results[name].estimate.details)
    assert to_plain(again.record) == to_plain(model.record)
    (section,) = method(again)
    assert section.title == f'Method {name}'
    assert {'gls': 'converged after', 'irls': 'Huber weights',
            'iv': 'Instruments from the motion'}[name] in section.text
    assert 'least squares' in section.text or name != 'iv'


def test_least_squares_has_nothing_to_tell(results: dict[str, IdentificationResult]) -> None:
    assert method(results['wls'].model) == ()
    assert results['wls'].model.record.details.sentence(ROBOT.joints) == ''


def test_recipes_choose_weights_and_instruments() -> None:
    logs = [recording(ROBOT, 0, 10.0)]
    recipe = recipe_from_dict({**RECIPE, 'robust': 'tukey'})
    details = identify(ROBOT, logs, 'irls', recipe).estimate.details
    assert isinstance(details, RobustDetails)
    assert details.robust == 'tukey'
    recipe = recipe_from_dict({**RECIPE, 'estimator': {'name': 'iv', 'instrument_cutoff': 3}})
    details = identify(ROBOT, logs, recipe=recipe).estimate.details
    assert isinstance(details, InstrumentDetails)
    assert details.instruments == 'the motion below 3 Hz'


@pytest.mark.parametrize(('key', 'value', 'message'), [
    ('robust', 'cauchy', "robust 'cauchy': choose one of huber, tukey"),
    ('robust', 3, 'robust 3: choose one of huber, tukey'),
    ('instrument_cutoff', -1.0, 'instrument_cutoff must be positive'),
    ('instrument_cutoff', 'wide', 'instrument_cutoff must be a finite number'),
])
def test_impossible_keys_are_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        recipe_from_dict({key: value})


def test_identify_prints_hausman_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_recording(tmp_path, 'one', ROBOT, 0)
    (tmp_path / 'recipe.yaml').write_text('\n'.join(f'{k}: {v}' for k, v in RECIPE.items()))
    common = ['identify', str(data), '--robot', 'planar_3r', '--recipe',
              str(tmp_path / 'recipe.yaml'), '--out', str(tmp_path / 'm.yaml'), '--method', 'iv']
    assert main([*common, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['estimator']['durbin_wu_hausman']['p_value'] >= 0.0
    assert main([*common, '--verbose']) == 0
    assert 'Durbin-Wu-Hausman' in capsys.readouterr().out
