"""validation/forward_scores.py: accelerations, their floor and rollouts, from known numbers."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError, ModelError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, Part, RawLog, Samples
from robot_dynid.validation.forward_scores import (
    HORIZONS,
    ForwardValidation,
    forward_accelerations,
    validate_forward,
)

MODULE: Any = importlib.import_module('robot_dynid.validation.forward_scores')
ROBOT, ELASTIC = load_robot('planar_3r'), load_robot('elastic_2r')


def states(count: int, coordinates: int, rows: int, **more: Any) -> Samples:
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.normal(size=(3, count, coordinates))
    effort = rng.normal(size=(count, rows))
    return Samples(('a', 'b', 'c')[:min(coordinates, 3)], np.arange(float(count)), q, qd, qdd,
                   effort, effort, **more)


@pytest.mark.parametrize('external', [None, np.arange(15.0).reshape(5, 3)])
def test_accelerations_are_those_under_the_effort_of_the_drives(monkeypatch, external) -> None:
    """Known external torque acts beside it; rows without a definite mass matrix have none."""
    mask = np.array([True, False, True, True, False])
    monkeypatch.setattr(MODULE, 'definite', lambda model, q: mask)
    samples = states(5, 3, 3, external=external)

    def forward(q: Any, qd: Any, effort: Any, outside: Any) -> FloatArray:
        return q + 10.0 * qd + 100.0 * effort + (0.0 if outside is None else 1000.0 * outside)

    model: Any = SimpleNamespace(robot=ROBOT, elastic_joints=(), forward=forward)
    found = forward_accelerations(model, samples)
    assert np.isnan(found[~mask]).all()
    outside = 0.0 if external is None else external
    np.testing.assert_allclose(found[mask], (
        samples.position + 10.0 * samples.velocity + 100.0 * (samples.effort - outside)
        + 1000.0 * outside)[mask])


def test_accelerations_of_elastic_joints_are_followed_by_those_of_motors(monkeypatch) -> None:
    monkeypatch.setattr(MODULE, 'definite', lambda model, q: np.array([True, True, False]))
    coordinates = ELASTIC.coordinates
    samples = states(3, coordinates, ELASTIC.rows)

    def forward(q: Any, qd: Any, effort: Any, theta: Any, theta_d: Any, outside: Any) -> Any:
        return q + 10.0 * qd + 100.0 * effort, theta + 10.0 * theta_d

    model: Any = SimpleNamespace(robot=ELASTIC, elastic_joints=('x',), forward_elastic=forward)
    found = forward_accelerations(model, samples)
    assert found.shape == (3, coordinates) and np.isnan(found[2]).all()
    q, qd = samples.position[:2], samples.velocity[:2]
    np.testing.assert_allclose(found[:2, :2], q[:, :2] + 10.0 * qd[:, :2]
                               + 100.0 * samples.effort[:2, :2])
    np.testing.assert_allclose(found[:2, 2:], q[:, 2:] + 10.0 * qd[:, 2:])


def log_of(source: str, rows: int = 8, part: Part | None = None) -> RawLog:
    time = np.arange(float(rows))
    return RawLog(source, ROBOT.joints, time, np.zeros((rows, 3)), None, np.zeros((rows, 3)),
                  part=part)


@dataclass
class Recorded:
    """Recordings of which measured accelerations are known.

    Those of whole recordings are 1, 2 and 3; the model is off by a tenth of them, nominal
    inertials by a half. Those of the rows with even stamps are 3, 4 and 5 beside a line through
    the odd ones, and far off before these begin. Rollouts are as long as ``longest`` [s].
    """

    indefinite: tuple[int, ...] = ()
    control: bool = True
    rows: int = 0
    elastic: bool = False
    linkage: Any = None
    few: tuple[str, ...] = ()
    longest: float = 1.0
    asked: list[float] = field(default_factory=list)

    def repair(self, robot: Any, log: Any, rate: Any) -> Any:
        if 'bad' in log.source or (len(log.time) < 8 and log.source in self.few):
            raise DataError(f'{log.source}: at rest')
        return SimpleNamespace(log=log, step=0.02)

    def prepare(self, robot: Any, one: Any, settings: Any) -> Any:
        assert settings.cutoff == 10.0
        time, whole = one.log.time, np.array([1.0, 2.0, 3.0])
        measured = np.outer(2.0 * time + 1.0, whole)
        if len(time) == 8:
            measured = np.tile(whole, (8, 1)) * np.where(time % 2, 1.0, -1.0)[:, None]
        elif time[0] % 2 == 0.0:
            measured += np.where(time[:, None] < 1.0, 1e6, [3.0, 4.0, 5.0])
        zero = np.zeros_like(measured)
        return SimpleNamespace(gridded=Samples(
            ROBOT.joints, time, zero + len(time), zero, measured, zero, zero,
            external=zero if self.elastic else None))

    def accelerations(self, model: Any, samples: Any) -> FloatArray:
        if len(samples.time) != 8:
            return np.zeros_like(samples.acceleration)
        found = samples.acceleration * {'model': 0.9, 'control': 0.5}[model.name]
        if model.name == 'model':
            found[list(self.indefinite)] = np.nan
        return np.asarray(found)

    def along(self, robot: Any, samples: Any, seconds: float) -> Any:
        self.asked.append(seconds)
        if seconds > self.longest:
            return None
        return SimpleNamespace(
            rollouts=lambda model: model.name, at_constant_velocity=lambda: 'steady',
            errors=lambda motion, s: np.full((2, 6), s * {
                'model': 1.0, 'control': 4.0, 'steady': 9.0}[motion]))

    @property
    def fakes(self) -> dict[str, Any]:
        """What takes the place of the functions of the module."""
        nominal = (SimpleNamespace(name='control'), '') if self.control else (None, 'no nominal')
        return {
            'warn': lambda model: None, 'require_any_joint': lambda model: None,
            'recordings_for': lambda model, robot, logs: (logs, ('found',)),
            'control_model': lambda model: nominal, 'repair': self.repair,
            'prepare': self.prepare, 'forward_accelerations': self.accelerations,
            'swift': lambda robot, samples: np.where(
                np.arange(8)[:, None] < 6, 0.6, 0.4) * np.ones(3),
            'moving': lambda samples: np.array([0.6] * 7 + [0.4]),
            'Stretches': SimpleNamespace(along=self.along)}


@pytest.fixture
def forward(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that scores recordings, and tells the lengths of rollouts."""
    def make(logs: list[RawLog], **options: Any) -> tuple[ForwardValidation, list[float]]:
        recorded = Recorded(**options)
        monkeypatch.setattr(Parts, 'rows', property(lambda self: recorded.rows))
        monkeypatch.setattr(Parts, '__getitem__', lambda self, i: self.recordings[i])
        monkeypatch.setattr(Parts, '__len__', lambda self: len(self.recordings))
        for name, fake in recorded.fakes.items():
            monkeypatch.setattr(MODULE, name, fake)
        model: Any = SimpleNamespace(
            name='model', preprocessing=Preprocessing(10.0), not_identified=(),
            elastic_joints=('joint_1',) if recorded.elastic else (), robot=SimpleNamespace(
                linkage=recorded.linkage, coordinates=3, row_names=(*ROBOT.joints, 'motor'), n=3))
        return validate_forward(model, logs), recorded.asked

    return make


def test_accelerations_are_scored_by_subset_with_their_floor(forward) -> None:
    found, asked = forward([log_of('a'), log_of('b')])
    assert found.warnings == ('found',)
    for scores, share in ((found.model, 0.1), (found.control, 0.5)):
        assert [one.rmse for one in scores['all'].values()] == pytest.approx(
            [share, 2.0 * share, 3.0 * share])
    counts = {subset: rows['joint_2'].samples for subset, rows in found.model.items()}
    assert counts == {'all': 16, 'motion': 14, 'rest': 2, 'near reversals': 2}
    assert list(found.model['all']) == list(ROBOT.joints)
    np.testing.assert_allclose(found.floor, [1.5, 2.0, 2.5])
    assert asked == [1.0, 1.0] and HORIZONS == (0.1, 0.5, 1.0)
    assert [one.seconds for one in found.horizons] == [0.1, 0.5, 1.0]
    for one in found.horizons:
        assert list(one.scores) == ['model', 'control', 'constant_velocity']
        assert {(score.count, score.seconds) for score in one.scores.values()} == {
            (4, one.seconds)}
        assert one.scores['control'].position == pytest.approx([np.sqrt(4.0 * one.seconds)] * 3)


def test_rollouts_are_as_long_as_the_recordings_allow(forward) -> None:
    found, asked = forward([log_of('a')], control=False, longest=0.6)
    assert asked == [1.0, 0.5] and [one.seconds for one in found.horizons] == [0.1, 0.5]
    assert list(found.horizons[0].scores) == ['model', 'constant_velocity']
    assert found.control == {} and found.warnings == ('found', 'no nominal')
    short, asked = forward([log_of('a')], longest=0.05)
    assert asked == [1.0, 0.5, 0.1] and short.horizons == ()
    linked, asked = forward([log_of('a')], linkage='linkage')
    assert asked == [] and linked.horizons == ()
    pushed, asked = forward([log_of('a')], elastic=True)
    assert asked == [] and pushed.warnings == (
        'found', 'a: rollouts of elastic joints take no external wrench: there are none along it')


@pytest.mark.parametrize(('rows', 'count'), [
    (400_000, 8), (400_001, 4), (800_001, 3)])
def test_every_so_many_acceleration_of_long_recordings_is_scored(forward, rows, count) -> None:
    found, _ = forward([log_of('a')], rows=rows)
    assert found.model['all']['joint_1'].samples == count


def test_accelerations_without_a_definite_mass_matrix_are_left_out(forward) -> None:
    found, _ = forward([log_of('a')], indefinite=(1, 2))
    assert found.model['all']['joint_1'].samples == 6
    assert found.control['all']['joint_1'].samples == 8
    (_, note) = found.warnings
    assert note.startswith('the mass matrix is not positive definite in 25 % of the samples, '
                           'whose accelerations are not scored; ')
    with pytest.raises(ModelError, match=r'^the mass matrix is not positive definite in any'):
        forward([log_of('a')], indefinite=tuple(range(8)))


def test_parts_that_cannot_be_used_are_left_out_and_named(forward) -> None:
    place = Part(0.0, 9.0, 0.0, 'long')
    found, _ = forward([log_of('bad', part=place), log_of('a')])
    assert found.warnings == ('found', 'bad: at rest (this part of the recording is omitted)')
    with pytest.raises(DataError, match=r'^bad: at rest$'):
        forward([log_of('bad')])
    with pytest.raises(DataError, match=r'^no recording to validate on$'):
        forward([log_of('bad', part=place)])


def test_the_floor_is_unknown_where_half_of_the_rows_are_too_few(forward) -> None:
    found, _ = forward([log_of('a')], few=('a',))
    assert found.floor.shape == (3,) and np.isnan(found.floor).all()
    assert found.model['all']['joint_1'].samples == 8
