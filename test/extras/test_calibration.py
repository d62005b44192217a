"""health/calibration.py, health/verb.py: the friction of a session, with the links unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_recordings import recording

from robot_dynid import identify, load_log, load_robot
from robot_dynid.cli.main import main
from robot_dynid.effects import JointFriction
from robot_dynid.errors import DataError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import write_csv
from robot_dynid.types import FloatArray, RawLog
from robot_dynid.validation.validate import validate
from robot_dynid_extras.health.calibration import CALIBRATED, calibrate

ROBOT = load_robot('planar_3r')
#: change of the friction of joint_2 in the session
MORE = 0.15
#: UR10e: recordings of the fit without one, and that one or another of its day, in halves
HALVES = (('20_01_17', ':25', '25:'), ('20_02_05', ':11', '11:'), ('20_02_06', ':11', '11:'),
          ('20_02_10', ':16', '16:'), ('20_02_12', ':21', '21:'), ('20_02_19_15', ':26', '26:'))


@pytest.fixture(scope='module')
def model() -> IdentifiedModel:
    """A model of recordings with the friction of two days."""
    return identify(ROBOT, [recording(ROBOT, seed) for seed in (1, 2)]).model


def session(model: IdentifiedModel, seed: int, more: float = MORE) -> RawLog:
    """Return a recording in which joint_2 has more friction."""
    log = recording(ROBOT, seed, 40.0)
    assert log.velocity is not None and log.effort is not None
    effort = log.effort.copy()
    effort[:, 1] += more * model.friction(log.position, log.velocity)[:, 1]
    return replace(log, effort=effort)


def errors(model: IdentifiedModel, log: RawLog) -> FloatArray:
    """Return the RMSE (n,) [N m] of a model on a recording."""
    return np.array([one.rmse for one in validate(model, [log]).model['all'].values()])


def test_changed_friction_is_found_and_nothing_else(model: IdentifiedModel) -> None:
    found = calibrate(model, [session(model, 3)])
    changes = {(one.axis, one.kind): one for one in found.changes}
    for kind in ('viscous', 'dry'):
        one = changes['joint_2', kind]
        assert one.used and abs(one.share - MORE) < one.half_interval + 0.03
        assert one.half_interval < 0.05
    friction = model.torque_model.base_of(JointFriction)
    np.testing.assert_array_equal(found.model.values[~friction], model.values[~friction])
    assert found.seconds == pytest.approx(40.0, abs=1.0)
    before, after = (errors(one, session(model, 4)) for one in (model, found.model))
    assert after[1] < 0.75 * before[1]
    np.testing.assert_allclose(after[[0, 2]], before[[0, 2]], rtol=0.02)


def test_changes_are_bounded_by_what_days_differ(model: IdentifiedModel) -> None:
    alike = replace(model, record=replace(
        model.record, friction_spread={'viscous': 0.0, 'dry': 0.0, 'offset': 0.0},
        recordings=tuple(map(str, range(200)))))
    log = session(model, 3)
    free, bound = ({(one.axis, one.kind): one.share for one in calibrate(m, [log]).changes}
                   for m in (model, alike))
    assert abs(bound['joint_2', 'viscous']) < 0.8 * free['joint_2', 'viscous']


def test_axes_whose_halves_disagree_keep_their_friction(model: IdentifiedModel) -> None:
    one, other = (session(model, 3, more) for more in (MORE, -MORE))
    time = one.time < one.time.mean()
    log = replace(one, effort=np.where(time[:, None], one.effort, other.effort))
    found = calibrate(model, [log])
    assert not any(one.used for one in found.changes if one.axis == 'joint_2')
    columns = model.torque_model.structure[1] & model.torque_model.base_of(JointFriction)
    np.testing.assert_array_equal(found.model.values[columns], model.values[columns])


def test_calibrated_model_is_marked_once(model: IdentifiedModel) -> None:
    once = calibrate(model, [session(model, 3)]).model
    twice = calibrate(once, [session(model, 5)]).model
    assert [text.startswith(CALIBRATED) for text in twice.warnings].count(True) == 1
    assert '39.5 s' in twice.warnings[-1]


def test_rest_calibrates_nothing(model: IdentifiedModel) -> None:
    log = session(model, 3)
    assert log.velocity is not None
    rest = replace(log, position=np.tile(log.position[:1], (len(log.time), 1)),
                   velocity=np.zeros_like(log.velocity))
    with pytest.raises(DataError, match='no joint slides for long'):
        calibrate(model, [rest])


def test_the_command_writes_the_model_and_prints_the_changes(
    model: IdentifiedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / 'M.yaml')
    write_csv(tmp_path / 'today.csv', session(model, 3))
    words = ['calibrate', str(tmp_path / 'M.yaml'), str(tmp_path / 'today.csv'),
             '--robot', 'planar_3r', '--out', str(tmp_path / 'N.yaml')]
    assert main([*words, '--json']) == 0
    told = json.loads(capsys.readouterr().out)
    again = calibrate(model, [load_log(tmp_path / 'today.csv', ROBOT)])
    assert [one['share'] for one in told['changes']] == pytest.approx(
        [one.share for one in again.changes], rel=1e-3)
    np.testing.assert_allclose(IdentifiedModel.load(tmp_path / 'N.yaml').values,
                               again.model.values, rtol=1e-6, atol=1e-9)
    (tmp_path / 'N.yaml').unlink()
    assert main(words) == 0
    lines = capsys.readouterr().out
    share = next(one['share'] for one in told['changes'] if one['axis'] == 'joint_2')
    assert f'{100.0 * share:.3g}'[:3] in lines and 'joint_2' in lines


@pytest.mark.soak
def test_gain_on_the_second_half_of_real_sessions(shared_data: Path) -> None:
    """Plain causal: the model is fitted to other days, calibrated by the first half."""
    import sys

    robot = load_robot('ur10e')
    paths = sorted([*(shared_data / 'ur10e' / 'train').iterdir(),
                    *(shared_data / 'ur10e' / 'test').iterdir()], key=lambda path: path.name)
    train = [path for path in paths if path.parent.name == 'train']
    gains = []
    for name, first, second in HALVES:
        (path,) = [path for path in paths if path.name.startswith(name)]
        day = path.name[:8]
        model = identify(robot, [load_log(one, robot) for one in train
                                 if not one.name.startswith(day)]).model
        begin, end = (load_log(f'{path}[{part}]', robot) for part in (first, second))
        gains.append(1.0 - errors(calibrate(model, [begin]).model, end) / errors(model, end))
        sys.stdout.write(f'{name}: {np.round(100.0 * gains[-1], 1).tolist()} % less\n')
    sys.stdout.write(f'mean: {np.round(100.0 * np.mean(gains, axis=0), 1).tolist()} % less\n')
    assert np.mean(gains) > 0.0
