"""validation/validate.py: what is scored, with which notes, in which order."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.identified.trained import Outside
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Preprocessing, Repaired
from robot_dynid.types import Part, RawLog, Samples
from robot_dynid.validation.passband import Passbands
from robot_dynid.validation.residual_parts import ResidualParts
from robot_dynid.validation.validate import Trace, Validation, score, validate

MODULE: Any = importlib.import_module('robot_dynid.validation.validate')
ROBOT = load_robot('planar_3r')
JOINTS = ROBOT.joints
PLACE = Part(0.0, 9.0, 0.0, 'long')


def log_of(source: str, place: Part | None = None) -> RawLog:
    return RawLog(source, JOINTS, np.arange(3.0), np.zeros((3, 3)), part=place)


def trace_of(source: str = 'x', **more: Any) -> Trace:
    """Return a trace of efforts whose errors differ by joint: 1, 2 and 3 of 10."""
    measured = np.tile([10.0, -10.0], 4)[:, None] * np.ones(3)
    errors = np.array([0.1, 0.2, 0.3])
    return Trace(source, np.arange(8.0), measured, measured * (1.0 - errors),
                 measured * (1.0 - 2.0 * errors), np.repeat([1.0, 0.0], 4), None,
                 warmed=measured * (1.0 - 3.0 * errors), adapted=measured * (1.0 - 4.0 * errors),
                 **more)


class Lazy(Sequence[RawLog]):
    """A recording that is read when it is needed."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return [log_of('a')][index]


@pytest.mark.parametrize(('rows', 'stride'), [
    (0, 1), (400_000, 1), (400_001, 2), (800_000, 2), (800_001, 3)])
def test_validation_goes_through_recordings_one_by_one(monkeypatch, rows, stride) -> None:
    """Warnings about steps of encoders are given once, for whole recordings."""
    given: list[Any] = []

    def repair(robot: Any, log: Any, rate: Any) -> Any:
        assert (robot, rate) == ('robot', 250.0)
        if 'bad' in log.source:
            raise DataError(f'{log.source}: at rest')
        return log.source

    def scored(model: Any, recordings: Iterator[Any], stride: int, in_full: bool) -> Validation:
        given.append((list(recordings), stride, in_full))
        return Validation({}, {}, (), ('scored',))

    monkeypatch.setattr(MODULE, 'recordings_for', lambda model, robot, logs: (logs, ('found',)))
    monkeypatch.setattr(MODULE, 'repair', repair)
    monkeypatch.setattr(MODULE, 'score', scored)
    monkeypatch.setattr(MODULE, 'scored_contact', lambda model, log: [f'contact {log.source}'])
    monkeypatch.setattr(MODULE, 'ContactScore', SimpleNamespace(merged=lambda scores: [*scores]))
    monkeypatch.setattr(MODULE, 'step_warning', lambda model, log: {
        'a': 'coarse', 'b': None, 'c': 'coarse', 'd': 'coarser'}[log.source])
    monkeypatch.setattr(Parts, 'rows', property(lambda self: rows))
    monkeypatch.setattr(Parts, '__getitem__', lambda self, i: self.recordings[i])
    monkeypatch.setattr(Parts, '__len__', lambda self: len(self.recordings))
    model: Any = SimpleNamespace(robot='robot', preprocessing=Preprocessing(10.0, 250.0))
    logs = [log_of('a'), log_of('bad part', PLACE), log_of('b'), log_of('c'),
            log_of('part', PLACE), log_of('d')]
    found = validate(model, logs)
    assert given == [(['a', 'b', 'c', 'part', 'd'], stride, True)]
    assert found.warnings == (
        'found', 'a, c: coarse', 'd: coarser',
        'bad part: at rest (this part of the recording is omitted)', 'scored')
    assert found.contact == [f'contact {name}' for name in ('a', 'b', 'c', 'part', 'd')]
    with pytest.raises(DataError, match=r'^bad: at rest$'):
        monkeypatch.setattr(MODULE, 'step_warning', lambda model, log: None)
        validate(model, [log_of('bad')])
    given.clear()
    validate(model, Lazy())
    assert given[0][1] == 1


OUTSIDE = Outside('joint_2', 'velocity', 'rad/s', 0.5, 0.25, (-1.0, 1.5))


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that scores recordings, and tells what traces were asked for."""
    def make(recordings: list[Any], slow: bool = False, refused: tuple[str, ...] = (),
             **arguments: Any) -> tuple[Validation, list[Any]]:
        asked: list[Any] = []

        def trace(model: Any, recording: Any, how: Any, changes: Any) -> Trace:
            asked.append((recording.source, *how))
            if 'bad' in recording.source:
                raise DataError(f'{recording.source}: too short')
            return trace_of(recording.source, remark='late' if recording.source == 'a' else '',
                            outside=(OUTSIDE,) if recording.source == 'b' else ())

        monkeypatch.setattr(MODULE, 'trace_recording', trace)
        monkeypatch.setattr(MODULE, 'OpenLoop', lambda model: SimpleNamespace(reason='refused'))
        monkeypatch.setattr(MODULE, 'SlowChanges', lambda model: SimpleNamespace(any=slow))
        monkeypatch.setattr(MODULE, 'caution', lambda model: ', '.join(refused))
        monkeypatch.setattr(MODULE, 'without_inertials', lambda robot: ('no inertials',))
        model: Any = SimpleNamespace(robot=ROBOT, preprocessing=Preprocessing(10.0))
        return score(model, recordings, **arguments), asked

    return make


def repaired(source: str, step: float = 0.01, place: Part | None = None) -> Repaired:
    return Repaired(source, (), step, (f'{source} repaired',), place=place)


def test_scores_are_of_the_model_the_baseline_and_slow_changes(scores) -> None:
    found, asked = scores([repaired('a'), repaired('b')])
    assert asked == [('a', 1, None), ('b', 1, None)]
    for rows, share in ((found.model, 1.0), (found.control, 2.0)):
        assert [rows['all'][joint].relative_error for joint in JOINTS] == pytest.approx(
            [0.1 * share, 0.2 * share, 0.3 * share])
        assert rows['all']['joint_1'].samples == 16 and rows['rest']['joint_1'].samples == 8
    assert found.warm_up == found.adaptive == {} and found.not_simulated == ''
    warm, asked = scores([repaired('a')], slow=True, in_full=True)
    assert warm.warm_up['all']['joint_2'].relative_error == pytest.approx(0.6)
    assert warm.adaptive['all']['joint_2'].relative_error == pytest.approx(0.8)
    assert warm.not_simulated == 'refused'
    assert asked[0][2].reason == 'refused' and [t.source for t in warm.traces] == ['a']


def test_scores_have_notes_remarks_and_warnings_in_order(scores) -> None:
    found, asked = scores([
        repaired('a'), repaired('bad part', 0.04, PLACE), repaired('b', 0.031), repaired('c')],
        stride=3, refused=('joint_1',))
    assert asked == [(name, 3, None) for name in ('a', 'bad part', 'b', 'c')]
    slow = '{}: {} Hz show motion up to {} Hz; scored with this cut-off, the model was fitted ' \
        'with 10 Hz'
    assert found.warnings == (
        'a repaired', 'bad part repaired', slow.format('bad part', '25', '7.5'),
        'bad part: too short (this part of the recording is omitted)', 'b repaired',
        slow.format('b', '32.26', '9.68'), 'c repaired',
        'long recordings: one in 3 samples was scored, evenly spaced', 'a: late',
        'b: velocity exceeds the training range: joint_2 by up to 0.5 rad/s in 25 % of the '
        'samples (trained from -1 to 1.5)', 'joint_1', 'no inertials')
    assert scores([repaired('c')])[0].warnings == ('c repaired', 'no inertials')
    with pytest.raises(DataError, match=r'^bad: too short$'):
        scores([repaired('bad')])
    for none in ([], [repaired('bad part', place=PLACE)]):
        with pytest.raises(DataError, match=r'^no recording to validate on$'):
            scores(none)


def test_validations_pool_what_traces_have() -> None:
    parts = ResidualParts(np.array([3.0, 1.0]), np.eye(2), 10)
    split: Any = SimpleNamespace(friction=np.full((8, 3), 5.0))
    rollouts, steady = np.array([[4.0] * 6]), np.array([[9.0] * 6])
    known = trace_of(parts=parts, split=split, rollouts=rollouts, steady=steady)
    found = Validation({}, {}, (known, trace_of()), ())
    assert found.parts is not None and found.parts.static.tolist() == [3.0, 1.0]
    assert found.rollout is not None and found.rollout.position.tolist() == [2.0] * 3
    assert found.steady is not None and found.steady.velocity.tolist() == [3.0] * 3
    assert known.friction is split.friction and trace_of().friction is None
    none = replace(found, traces=(trace_of(),))
    assert (none.parts, none.rollout, none.steady, none.open_loop) == (None,) * 4
    loop: Any = SimpleNamespace(distances={'model': np.full((1, 2, 4), 3.0)})
    pooled = replace(found, traces=(replace(known, open_loop=loop), trace_of())).open_loop
    assert pooled is not None and pooled.count == 1
    assert pooled.errors['model'].tolist() == [[3.0] * 4] * 2


STAMPS = np.array([0.1, 0.6, 0.6, 1.7, 2.1, 2.4])
#: of the rows that have a measurement, 0, 1, 3, 4 and 5, every second one
ROWS = [0, 3, 5]


def samples_of(raw: bool = True) -> Samples:
    rng = np.random.default_rng(2)
    q, qd, qdd, measured, exact = rng.normal(size=(5, 6, 3))
    return Samples(JOINTS, 0.5 * np.arange(6.0), q, qd, qdd, measured, measured, stamps=STAMPS,
                   raw_position=exact if raw else None)


def wave(order: float, position: Any, velocity: Any, effort: Any) -> Any:
    return np.array([order * position + velocity, effort])


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that gives the trace of samples by a model whose parts are known."""
    def make(samples: Samples, higher: Any = (), slow: bool = True, **arguments: Any) -> Trace:
        ripple = SimpleNamespace(wave=wave)
        record = SimpleNamespace(ripple=[
            SimpleNamespace(joint='joint_1', waves=(SimpleNamespace(order=9.0),)),
            SimpleNamespace(joint='joint_2', waves=()),
            SimpleNamespace(joint='joint_3', waves=(SimpleNamespace(order=4.0),
                                                    SimpleNamespace(order=7.0)))])
        model: Any = SimpleNamespace(
            robot=ROBOT, control=2.0, record=record, preprocessing=Preprocessing(10.0),
            without_ripple=lambda of: 3.0 * of.position,
            ripple_torque=SimpleNamespace(of_samples=lambda of, effort: 0.1 * effort),
            torque_model=SimpleNamespace(effort=lambda of, values: values * of.velocity),
            learnt_effects={'one': SimpleNamespace(note=lambda robot, of: ''),
                            'two': SimpleNamespace(note=lambda robot, of: 'a note')},
            parts_of=lambda key: {'ripple': (None, ripple, ripple)}[key],
            trained=SimpleNamespace(excesses=lambda robot, states: (states,)))

        class Changes:
            """Slow changes of 10 and 20 N m, plus one per row."""

            any = slow

            def __call__(self, recording: Any, of: Any, smooth: Any) -> Any:
                np.testing.assert_array_equal(smooth, 3.0 * samples.position)
                more = np.arange(5.0)[:, None]
                return 10.0 + more, 20.0 + more

        fakes = {
            'Passbands': SimpleNamespace(of=lambda model, one: Passbands(samples, higher)),
            'SlowChanges': lambda model: Changes(), 'caution': lambda model: '',
            'OpenLoop': lambda model: SimpleNamespace(reason='', along=lambda of: 'open loop'),
            'described': lambda robot: np.array([True, False, True]),
            'rollouts_along': lambda model, of: ('rollouts', 'steady'),
            'repeatability': lambda of: (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])),
            'moving': lambda of: np.array([1.0, 1.0, 1.0, 0.6, 1.0, 0.4]),
            'swift': lambda robot, of: np.linspace(0.05, 0.9, 18).reshape(6, 3),
            'check_external': lambda of, left: f'left {left[0, 0]:.6g}',
            'measured': lambda robot, of: 'states', 'sentences': lambda outside: outside,
            'residual_parts': lambda model, of, smooth: ('parts', smooth),
            'effort_parts': lambda model, of, whole: SimpleNamespace(
                part=lambda rows: whole[rows]),
            'without_inertials': lambda robot: ()}
        for name, fake in fakes.items():
            monkeypatch.setattr(MODULE, name, fake)
        (trace,) = score(model, [repaired('run')], 2, **arguments).traces
        return trace

    return make


def test_traces_hold_predictions_at_the_stamps_of_measurements(traced) -> None:
    samples = samples_of()
    found = traced(samples)
    smooth, moved = 3.0 * samples.position, samples.moved
    np.testing.assert_array_equal(found.time, STAMPS[ROWS])
    np.testing.assert_array_equal(found.measured, samples.measured[ROWS])
    np.testing.assert_allclose(found.predicted, 1.1 * smooth[ROWS])
    np.testing.assert_allclose(found.control[:, [0, 2]], 2.2 * samples.velocity[ROWS][:, [0, 2]])
    assert np.isnan(found.control[:, 1]).all()
    more = np.array([[0.0], [2.0], [4.0]])
    np.testing.assert_allclose(found.warmed, 1.1 * smooth[ROWS] + 10.0 + more)
    np.testing.assert_allclose(found.adapted, 1.1 * smooth[ROWS] + 20.0 + more)
    np.testing.assert_array_equal(found.moving, [1.0, 0.6, 0.4])
    np.testing.assert_array_equal(found.near, (np.linspace(0.05, 0.9, 18) < 0.5).reshape(
        6, 3)[ROWS])
    assert found.repeatability.tolist() == [1.0, 2.0, 3.0] and found.noise[2] == 6.0
    assert found.remark == f'a note; left {samples.measured[0, 0] - smooth[0, 0]:.6g}'
    assert found.outside == ('states',)
    np.testing.assert_array_equal(found.position, moved.position[ROWS])
    np.testing.assert_array_equal(found.velocity, moved.velocity[ROWS])
    np.testing.assert_allclose(found.split, 1.1 * smooth[ROWS])
    speed = samples.at_stamps(samples.velocity)
    np.testing.assert_allclose(found.waves[:, :, 2], wave(
        4.0, samples.raw_position[ROWS, 2], speed[ROWS, 2], smooth[ROWS, 2]))
    assert not found.waves[:, :, :2].any()
    assert (found.rollouts, found.steady, found.parts, found.open_loop) == (None,) * 4


def test_traces_in_full_have_simulations_and_parts_of_the_residual(traced) -> None:
    samples = samples_of(raw=False)
    found = traced(samples, slow=False, in_full=True)
    assert (found.rollouts, found.steady, found.open_loop) == ('rollouts', 'steady', 'open loop')
    name, smooth = found.parts
    assert name == 'parts' and smooth.tolist() == (3.0 * samples.position).tolist()
    assert (found.waves, found.warmed, found.adapted) == (None, None, None)


def test_traces_use_the_passband_of_each_joint(traced) -> None:
    samples = samples_of()
    other = replace(samples, position=samples.position + 1.0, velocity=samples.velocity - 1.0)
    found = traced(samples, ((other, np.array([2])),))
    np.testing.assert_allclose(found.predicted[:, :2], 3.3 * samples.position[ROWS, :2])
    np.testing.assert_allclose(found.predicted[:, 2], 3.3 * other.position[ROWS, 2])
    np.testing.assert_allclose(found.control[:, 2], 2.2 * other.velocity[ROWS, 2])
    np.testing.assert_allclose(found.control[:, 0], 2.2 * samples.velocity[ROWS, 0])


def test_scores_near_reversals_are_of_the_joints_and_rows_that_are(scores, monkeypatch) -> None:
    """A trace without such rows has none; joints move from one half on."""
    near = np.zeros((8, 3), dtype=bool)
    near[:3, 1] = near[6, 2] = True  # the last is at rest
    moving = np.array([0.6] * 3 + [0.4] * 5)
    given = iter([trace_of(near=near), replace(trace_of(), moving=moving)])

    def both() -> Validation:
        monkeypatch.setattr(MODULE, 'trace_recording', lambda *_: next(given))
        model: Any = SimpleNamespace(robot=ROBOT, preprocessing=Preprocessing(10.0))
        return score(model, [repaired('c'), repaired('d')])

    assert 'near reversals' not in scores([repaired('c')])[0].model
    found = both().model
    assert {joint: one.samples for joint, one in found['near reversals'].items()} == {'joint_2': 3}
    assert found['motion']['joint_1'].samples == 7 and found['rest']['joint_3'].samples == 9
