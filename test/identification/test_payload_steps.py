"""identification/payload.py: what is fitted from which recordings, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError, UsageError
from robot_dynid.identification import payload
from robot_dynid.identification.payload import identify_drive_gains, identify_payload
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.inertia import PARAMETERS
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, RawLog, Samples

ROBOT = load_robot('planar_3r')
#: number of each recording
NUMBERS = {'a': 1.0, 'b': 2.0, 'c': 4.0}
LAG = {'a': 0.25, 'b': 0.5, 'c': 0.75}


def log_of(source: str, **more: Any) -> RawLog:
    return RawLog(source, ROBOT.joints, 0.002 * np.arange(5.0), np.zeros((5, 3)), **more)


LOADED, UNLOADED = [log_of('a'), log_of('b')], [log_of('c')]


class Body:
    """Stands for a body on a link: its columns are twice the position of the first joint."""

    link = 'tool'
    robot = ROBOT

    def columns(self, samples: Any) -> FloatArray:
        return np.full((3, 10, len(samples.time)), 2.0 * samples.position[0, 0])


def samples_of(log: Any, settings: Any) -> Samples:
    """Return samples of the number of a recording; efforts are 10 and 20 times that."""
    number = NUMBERS[log.source] * np.array([1.0, 10.0, 100.0]) + np.zeros((4, 3))
    return Samples(ROBOT.joints, 0.01 * np.arange(4.0), number, number, number, 10.0 * number,
                   20.0 * number, cutoff=settings.cutoff)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is fitted: names, equations, and settings of preparations."""
    asked: list[Any] = []

    def prepare(robot: Any, repaired: Any, settings: Any) -> Samples:
        asked.append((repaired.log.source, settings.cutoff, settings.decimate))
        return samples_of(repaired.log, settings)

    def reduce_equations(names: Any, parts: Any) -> Any:
        asked.append((names, parts))
        return SimpleNamespace(samples=77)

    class Repaired(SimpleNamespace):
        """A repaired recording of 100 Hz."""

        step = 0.01

    for name, fake in {
            'repair': lambda robot, log, rate: Repaired(log=log, notes=(f'note {log.source}',)),
            'prepare': prepare, 'reduce_equations': reduce_equations,
            'recordings_for': lambda model, robot, logs, *accept: (
                logs, tuple(f'found {log.source} {accept}' for log in logs)),
            'warnings_of': lambda parts: tuple(note for one in parts for note in one.notes),
            'AttachedBody': SimpleNamespace(on=lambda robot, link: Body()),
            'moderate_effort': lambda body: 'effort',
            'fit_payload': lambda *given: ('payload', *given),
            'fit_drive_gains': lambda *given: ('gains', *given),
            'caution': lambda model: 'refused'}.items():
        monkeypatch.setattr(payload, name, fake)
    return asked


def friction() -> Any:
    """Return friction of two parameters, that fills its columns with ones and threes."""
    def fill(samples: Any, history: Any, chosen: Any, columns: FloatArray) -> None:
        assert history == 'history' and chosen.tolist() == [0, 1]
        columns[:, 0], columns[:, 1] = 1.0, 3.0

    return SimpleNamespace(names=('fv1', 'fc1'), fill=fill, history=lambda samples: 'history')


def model_of(**more: Any) -> Any:
    """Return a model that predicts three times the position."""
    return SimpleNamespace(**{
        'robot': ROBOT, 'not_identified': (), 'require': lambda robot: None,
        'preprocessing': Preprocessing(40.0, 250.0), 'predicted': lambda of: 3.0 * of.position,
        **more})


@pytest.mark.parametrize('refused', [(), ('joint_1',)])
def test_without_other_recordings_the_error_of_the_model_is_explained(
    fits, monkeypatch, refused
) -> None:
    """By the payload and a change of friction."""
    monkeypatch.setattr(payload, 'rigid_equivalent', lambda model: model)
    monkeypatch.setattr(payload, 'friction_of', lambda model: friction())
    told: list[Any] = []
    found = identify_payload(ROBOT, LOADED, model=model_of(not_identified=refused),
                             progress=lambda *one: told.append(one))
    *prepared, (names, parts) = fits
    assert prepared == [('a', 30.0, True), ('b', 30.0, True)]  # what a rate of 100 Hz shows
    assert names == ('fv1', 'fc1', *PARAMETERS)
    for part, number in zip(parts, (1.0, 2.0), strict=True):
        assert part.columns.shape == (3, 12, 4)
        np.testing.assert_array_equal(part.columns[1, :, 2], [1.0, 3.0, *[2.0 * number] * 10])
        place = number * np.array([1.0, 10.0, 100.0])
        np.testing.assert_array_equal(part.effort[0], 7.0 * place)
        np.testing.assert_array_equal(part.measured[0], 17.0 * place)
    assert [(one.loaded, one.unloaded, one.lag, one.drift, one.difference)
            for one in found.matches] == [('a', '', 0.0, 0.0, None), ('b', '', 0.0, 0.0, None)]
    assert found.warnings == (*(['refused'] if refused else []), 'found a ()', 'found b ()',
                              'note a', 'note b')
    information, effort, uncertainty = found.estimate[1:]
    assert (information.samples, effort, uncertainty) == (77, 'effort',
                                                          ROBOT.drive.gain_uncertainty)
    assert (found.link, found.samples) == ('tool', 77)
    assert told == [('prepared a', 0.4), ('prepared b', 0.8), ('fitting', 0.8)]


def pair_of(first: Samples, second: Samples) -> Any:
    """Return two motions that differ by the ratio of their numbers."""
    ratio = second.position[0, 0] / first.position[0, 0]
    if ratio > 3.0:
        raise DataError('they differ')
    return SimpleNamespace(first=first, second=second, lag=ratio, drift=2.0 * ratio,
                           difference=np.array([ratio, 1.0, 1.0]))


@pytest.mark.parametrize('with_model', [False, True])
def test_with_other_recordings_the_change_of_effort_is_explained(
    fits, monkeypatch, with_model
) -> None:
    """Of the nearest motion; the model accounts for the difference of the motions."""
    monkeypatch.setattr(payload, 'rigid_equivalent', lambda model: model)
    monkeypatch.setattr(payload, 'align', pair_of)
    monkeypatch.setattr(payload, 'arm_effort', lambda robot, model, samples: (
        (3.0 if model else 5.0) * samples.position))
    model = model_of() if with_model else None
    found = identify_payload(ROBOT, [log_of('b')], [log_of('c'), log_of('a')], model)
    *prepared, (names, (part,)) = fits
    cutoff = 40.0 if with_model else 6.5
    assert prepared == [('c', cutoff, False), ('a', cutoff, False), ('b', cutoff, True)]
    assert names == PARAMETERS
    change = np.array([1.0, 10.0, 100.0])  # of 2 less 1
    share = 3.0 if with_model else 5.0
    np.testing.assert_array_equal(part.effort[0], (10.0 - share) * change)
    np.testing.assert_array_equal(part.measured[0], (20.0 - share) * change)
    assert (part.columns == 4.0).all()
    (match,) = found.matches
    assert (match.loaded, match.unloaded, match.lag, match.drift) == ('b', 'a', 0.5, 1.0)
    assert part.notes == ('note c', 'note a', 'note b')
    fits.clear()
    identify_payload(ROBOT, [log_of('b'), log_of('b')], [log_of('a')])
    *_, (_, parts) = fits
    assert [one.notes for one in parts] == [('note a', 'note b'), ('note b',)]
    with pytest.raises(DataError, match=r'^a and c: they differ$'):
        identify_payload(ROBOT, [log_of('a')], [log_of('c')], model)
    with pytest.raises(DataError, match=r'^a and a: the efforts are the same: give two different'):
        identify_payload(ROBOT, [log_of('a')], [log_of('a')], model)


def test_efforts_are_the_same_that_differ_by_a_billionth(fits, monkeypatch) -> None:
    monkeypatch.setattr(payload, 'align', lambda first, second: SimpleNamespace(
        first=first, second=replace(second, effort=first.effort * (1.0 - SHARE[0])), lag=0.0,
        drift=0.0, difference=np.zeros(3)))
    for share, same in ((0.9e-9, True), (1.1e-9, False)):
        SHARE[0] = share
        if same:
            with pytest.raises(DataError, match='the efforts are the same'):
                identify_payload(ROBOT, [log_of('a')], [log_of('c')])
        else:
            identify_payload(ROBOT, [log_of('a')], [log_of('c')])


SHARE = [0.0]


def test_payloads_need_a_model_or_other_recordings(fits) -> None:
    with pytest.raises(UsageError, match=r'^a payload needs a model of the arm without it, or'):
        identify_payload(ROBOT, LOADED)
    with pytest.raises(UsageError, match=r'^no recording with the payload$'):
        identify_payload(ROBOT, [], UNLOADED)
    unknown = replace(ROBOT, drive=replace(ROBOT.drive, kind=''))
    with pytest.raises(UsageError, match=r'^planar_3r: the kind of its effort is not stated: put'):
        identify_payload(unknown, LOADED, UNLOADED)
    load: Any = SimpleNamespace(link='tool')
    with pytest.raises(UsageError, match=r'^drive gains need recordings with and without the pay'):
        identify_drive_gains(ROBOT, LOADED, [], load)
    pushed = log_of('a', external_torque=np.zeros((5, 3)))
    for loaded, unloaded in (([pushed], UNLOADED), (LOADED, [pushed])):
        with pytest.raises(UsageError, match=r'^drive gains are identified from the payload only'):
            identify_drive_gains(ROBOT, loaded, unloaded, load)


@pytest.mark.parametrize(('equal', 'groups'), [
    ((), [0, 1, 2]), ([['joint_3', 'joint_2']], [0, 1, 1]), ([['joint_3', 'joint_1']], [0, 1, 0]),
    ([['joint_2', 'joint_1'], ['joint_3']], [0, 0, 1])])
def test_gains_are_fitted_in_the_unit_of_the_recordings(fits, monkeypatch, equal, groups) -> None:
    """Only loaded ones have the payload; findings about the unit are accepted."""
    gains = np.array([2.0, 4.0, 5.0])
    robot = replace(ROBOT, drive=replace(ROBOT.drive, kind='current', gains=gains))
    torque = SimpleNamespace(
        robot=robot, columns=lambda samples: np.full((3, 2, 4), samples.position[0, 0]),
        reduction=SimpleNamespace(names=('p', 'q')))
    monkeypatch.setattr(payload, 'rigid_equivalent', lambda model: model)
    load: Any = SimpleNamespace(link='tool')
    found = identify_drive_gains(robot, LOADED, UNLOADED, load, model_of(
        robot=robot, torque_model=torque), equal)
    *_, (names, parts) = fits
    assert names == ('p', 'q', *PARAMETERS)
    for part, number, share in zip(parts, (1.0, 2.0, 4.0), (1.0, 1.0, 0.0), strict=True):
        np.testing.assert_array_equal(part.columns[2, :, 1], [
            number, number, *[2.0 * number * share] * 10])
        place = number * np.array([1.0, 10.0, 100.0]) / gains
        np.testing.assert_allclose(part.effort[0], 10.0 * place)
        np.testing.assert_allclose(part.measured[0], 20.0 * place)
    kind, information, known, numbers = found.gains
    assert (kind, information.samples, known) == ('gains', 77, load)
    assert numbers.tolist() == groups
    accepted = "(['effort_scale'],)"
    assert found.warnings == (*(f'found {name} {accepted}' for name in 'abc'), 'note a', 'note b',
                              'note c')
    for twice, words in (([['joint_1', 'joint_2'], ['joint_2', 'joint_3']], 'joint_2 is'),
                         ([['joint_1', 'joint_2', 'joint_3'], ['joint_3', 'joint_2']],
                          'joint_3 and joint_2 are')):
        with pytest.raises(UsageError) as refused:
            identify_drive_gains(robot, LOADED, UNLOADED, load, None, twice)
        assert str(refused.value) == f'equal gains: {words} in two groups: list each joint once'


def test_gains_without_a_model_are_fitted_beside_links_and_coulomb_friction(fits) -> None:
    load: Any = SimpleNamespace(link='tool')
    identify_drive_gains(ROBOT, LOADED, UNLOADED, load)
    *prepared, (names, parts) = fits
    torque = Structure.uniform(ROBOT, True, 'coulomb', {'width': 0.01}).torque_model(ROBOT)
    assert names == (*torque.reduction.names, *PARAMETERS)
    assert prepared == [(name, 6.5, True) for name in 'abc']
    expected = torque.columns(samples_of(LOADED[1], Preprocessing(6.5)))
    np.testing.assert_array_equal(parts[1].columns[:, :-10], expected)
