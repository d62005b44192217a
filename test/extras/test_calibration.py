"""health/calibration.py, health/verb.py: the friction of a session, with the links unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from everyday_arm import EverydayArm, cut, errors, known_model, taken
from everyday_samples import MODEL, STEP, stretches
from identified_models import feasible_model, random_links
from recordings import recording

from robot_dynid import identify, load_log, load_robot
from robot_dynid.cli.main import main
from robot_dynid.effects import JointFriction
from robot_dynid.errors import DataError, ModelError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import write_csv
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_extras.health.calibration import (
    CALIBRATED,
    Calibration,
    FrictionChange,
    FrictionSession,
    calibrate,
)

#: in use, calibration is seen here only
pytestmark = pytest.mark.always

ROBOT = load_robot('planar_3r')
#: change of the friction of joint_2 in the session
MORE = 0.15


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


def calibrated(model: IdentifiedModel, arm: EverydayArm, stretches: int) -> Calibration:
    """Return the model calibrated by so many stretches of everyday motion of an arm."""
    friction = FrictionSession(model)
    for _ in range(stretches):
        friction.take(arm.stretch())
    return friction.calibrated()


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


def test_friction_of_one_joint_is_found_in_everyday_motion() -> None:
    rng = np.random.default_rng(3)
    model = feasible_model(ROBOT, random_links(rng, 3), rng)
    model = replace(model, record=replace(model.record, friction_spread=dict.fromkeys(
        ('viscous', 'dry', 'offset'), 0.1), recordings=('day',) * 1000))
    arm = EverydayArm(model, model.values, noise=0.05).scaled(('fv2', 'fc2'), 1.2)
    found = calibrated(model, arm, 12)
    names = [model.names.index(name) for name in ('fv2', 'fc2')]
    np.testing.assert_allclose(found.model.values[names], arm.truth[names], rtol=0.05)
    for one in found.changes:
        truth = 0.2 if one.axis == 'joint_2' and one.kind != 'offset' else 0.0
        assert abs(one.share - truth) < 1.6 * one.half_interval < 0.1  # one of nine, 3 deviations
        assert one.used or truth == 0.0
    friction = model.torque_model.base_of(JointFriction)
    np.testing.assert_array_equal(found.model.values[~friction], model.values[~friction])
    assert model.feasible_links is not None and found.model.feasible_links is not None
    np.testing.assert_array_equal(found.model.feasible_links, model.feasible_links)
    again = IdentifiedModel.from_yaml(found.model.to_yaml())
    assert again.standard['fv2'] == pytest.approx(again.values[names[0]])


@pytest.mark.parametrize('stretches', [3, 8])
def test_intervals_hold_the_friction_of_days(stretches: int) -> None:
    """Forty seconds, and fifteen, which tell little of how large the noise is."""
    model = known_model(spread=0.05)
    rng, held = np.random.default_rng(0), []
    for seed in range(60):
        arm = EverydayArm(model, model.values, seed=seed, noise=1.0, pool=2)
        days = 0.05 * rng.normal(size=6)
        for name, day in zip(('fv1', 'fc1', 'fv2', 'fc2', 'fv3', 'fc3'), days, strict=True):
            arm = arm.scaled((name,), 1.0 + day)
        shares = {(one.axis[-1], one.kind): one for one in calibrated(
            model, arm, stretches).changes if one.kind != 'offset'}
        for k, day in enumerate(days):
            one = shares[str(1 + k // 2), ('viscous', 'dry')[k % 2]]
            held.append(abs(one.share - day) < one.half_interval)
    assert 0.92 < np.mean(held) < 0.98


def test_stretches_of_a_session_show_what_its_recording_shows(model: IdentifiedModel) -> None:
    log = session(model, 3)
    friction = taken(model, [cut(log, log.time // 5.0 == number) for number in range(8)])
    for one, other in zip(friction.calibrated().changes, calibrate(model, [log]).changes,
                          strict=True):
        assert abs(one.share - other.share) < one.half_interval


def test_seconds_of_motion_calibrate_nothing() -> None:
    model = known_model()
    with pytest.raises(DataError, match=r'10 s of motion are too short .*: move every joint'):
        calibrated(model, EverydayArm(model, model.values), 2)


def test_only_the_latest_motion_counts() -> None:
    model = known_model(spread=0.1)
    latest, arm = FrictionSession(model, 30), EverydayArm(model, model.values)
    for one in (arm, arm.scaled(('fc1',), 1.1)):
        for _ in range(6):
            latest.take(one.stretch())
    made = latest.calibrated()
    change = next(one for one in made.changes if (one.axis, one.kind) == ('joint_1', 'dry'))
    assert made.seconds == pytest.approx(30.0)
    assert abs(change.share - 0.1) < change.half_interval


def test_the_sentence_tells_changes_that_are_not_used_apart() -> None:
    used, other = (FrictionChange('joint_2', kind, 0.1234, 0.05, kind == 'dry')
                   for kind in ('dry', 'viscous'))
    both = Calibration(known_model(), (other, used), 60.0)
    assert both.sentence == ('joint_2 dry 12.3 ± 5.0 %; '
                             'predicting no better: joint_2 viscous 12.3 ± 5.0 %')
    assert replace(both, changes=(used,)).sentence == 'joint_2 dry 12.3 ± 5.0 %'


def test_a_model_without_friction_has_none_to_calibrate() -> None:
    rng = np.random.default_rng(3)
    with pytest.raises(ModelError, match='has no friction to calibrate'):
        FrictionSession(feasible_model(ROBOT, random_links(rng, 3)))


def test_changes_are_bounded_by_what_days_differ() -> None:
    shares = []
    for spread in (0.1, 0.01):
        model = known_model(spread)
        arm = EverydayArm(model, model.values, noise=3.0).scaled(('fv2', 'fc2'), 1.2)
        shares.append([one.share for one in calibrated(model, arm, 6).changes
                       if one.axis == 'joint_2' and one.kind != 'offset'])
    free, bound = np.mean(shares, axis=1)
    assert 0.08 < free < 0.3 and abs(bound) < 0.3 * free


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


def test_calibration_refuses_recordings_at_rest(model: IdentifiedModel) -> None:
    log = session(model, 3)
    assert log.velocity is not None
    rest = replace(log, position=np.tile(log.position[:1], (len(log.time), 1)),
                   velocity=np.zeros_like(log.velocity))
    with pytest.raises(DataError, match='0 s of motion are too short'):
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


@pytest.mark.parametrize('latest', [None, 17])
def test_friction_of_a_session_is_that_of_weighted_least_squares(latest: int | None) -> None:
    """Four parts of the batches predict each other; their squared sums weigh, in four rounds."""
    parts, session = stretches(5), FrictionSession(MODEL, latest)
    for one in parts:
        session.take(one.motion)
    found, scales = session.calibrated(), session.scales
    batches = [(one.columns[:, :, k:k + 50], one.effort[k:k + 50], one.sliding / 5.0)
               for one in parts for k in range(0, 250, 50)][-(latest or 25):]
    y = np.array([effort.T - np.einsum('b,jbn->jn', MODEL.values, columns)
                  for columns, effort, _ in batches])
    design = np.array([np.einsum('jbn,bm->jnm', columns, scales.directions)
                       for columns, *_ in batches])
    time = sum(sliding for *_, sliding in batches)
    spread = np.array([MODEL.record.daily_spread(kind, 3)[0] for kind in scales.kinds])

    def fitted(rows: list[int], weights: FloatArray, spread: FloatArray
               ) -> tuple[FloatArray, FloatArray]:
        weighted = design[rows] * (STEP * weights)[:, None, None]
        normal = np.diag(spread**-2.0) + np.einsum('bjna,bjnc->ac', weighted, design[rows])
        return np.linalg.inv(normal), np.einsum('bjna,bjn->a', weighted, y[rows])

    left = y
    for _ in range(4):
        weights = time / np.sum((STEP * left.sum(axis=2))**2, axis=0)
        rests = []
        for part in np.array_split(np.arange(len(batches)), 4):
            others = sorted(set(range(len(batches))) - set(part.tolist()))
            covariance, right = fitted(others, weights, 10.0 * spread)
            rests.append(y[part] - design[part] @ (covariance @ right))
        left = np.concatenate(rests)
    covariance, right = fitted(list(range(len(batches))), weights, spread)
    share = np.sum(left**2, axis=(0, 2)) / np.sum(y**2, axis=(0, 2))
    assert found.seconds == pytest.approx(len(batches)) and share.min() < 1.0
    assert [(one.axis, one.kind) for one in found.changes] == [
        (f'joint_{axis + 1}', kind) for axis, kind in zip(scales.axes, scales.kinds, strict=True)]
    np.testing.assert_allclose([one.share for one in found.changes], covariance @ right, rtol=1e-5)
    np.testing.assert_allclose([one.half_interval for one in found.changes],
                               1.959964 * np.sqrt(np.diag(covariance)), rtol=1e-5)
    assert [one.used for one in found.changes] == [bool(share[axis] < 1.0) for axis in scales.axes]
    np.testing.assert_allclose(found.model.values - MODEL.values, scales.directions @ [
        one.share * one.used for one in found.changes], rtol=1e-6, atol=1e-12)
    assert found.model.warnings[-1] == f'friction calibrated by {len(batches)} s of motion'


def test_a_session_needs_fifteen_seconds() -> None:
    for batches, enough in ((14, False), (15, True)):
        session = FrictionSession(MODEL, batches)
        for one in stretches(3):
            session.take(one.motion)
        if enough:
            assert session.calibrated().seconds == pytest.approx(15.0)
        else:
            with pytest.raises(DataError, match=r'^14 s of motion are too short'):
                session.calibrated()
