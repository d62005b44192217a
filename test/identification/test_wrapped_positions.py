"""signals/turns.py: positions that a driver reports within a turn: the model is that of positions
that go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bags import write_bag
from recordings import recording

from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import sentences
from robot_dynid.io.csv import write_csv
from robot_dynid.io.log import load_log
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.types import RawLog
from robot_dynid.validation.validate import validate

#: nothing is chosen from the data, for time
PLAIN = Recipe(cutoff=8.0, effort_lag=0.0, friction='coulomb', ramp_width=0.01, ripple='none',
               adaptation='none')
STATED = load_robot('planar_3r')
TURN = 2.0 * np.pi


def with_limits(width: float) -> RobotModel:
    """Return the arm, but faster, with position limits of +- so many rad."""
    return replace(STATED, limits=replace(
        STATED.limits, lower=np.full(3, -width), upper=np.full(3, width),
        velocity=np.full(3, 14.0), acceleration=np.full(3, 150.0)))


ENDLESS = with_limits(np.nan)


def through_the_seam(seed: int) -> RawLog:
    """Return a recording whose joints pass half a turn."""
    log = recording(with_limits(4.5), seed, 8.0)
    assert np.all(np.abs(log.position).max(axis=0) > np.pi)
    return log


def wrapped(log: RawLog, least: float = -np.pi) -> RawLog:
    """Return a recording as a driver reports it that counts a turn from ``least`` on."""
    return replace(log, position=least + np.mod(log.position - least, TURN))


@pytest.fixture(scope='module')
def logs() -> list[RawLog]:
    return [through_the_seam(seed) for seed in (1, 2)]


@pytest.fixture(scope='module')
def model(logs: list[RawLog]) -> IdentifiedModel:
    return identify(ENDLESS, logs[:1], recipe=PLAIN).model


def in_parts(logs: Sequence[RawLog], _: Path) -> Sequence[RawLog]:
    return Parts(tuple(logs), part_rows=700, longest=1000)


def in_a_bag(logs: Sequence[RawLog], folder: Path) -> Sequence[RawLog]:
    for log in logs:
        write_bag(folder / log.source, log)
    return [load_log(folder / log.source, STATED) for log in logs]


def in_tables(logs: Sequence[RawLog], folder: Path) -> Sequence[RawLog]:
    for log in logs:
        write_csv(folder / f'{log.source}.csv', log)
    return [load_log(folder / f'{log.source}.csv', STATED) for log in logs]


@pytest.mark.parametrize(('given', 'least'), [
    (in_parts, -np.pi), (in_a_bag, 0.0), (in_tables, -np.pi)],
    ids=['in parts within +-pi', 'in a bag within 0 to 2 pi', 'in tables within +-pi'])
def test_the_model_is_that_of_positions_that_go_on(
    given: Callable[[Sequence[RawLog], Path], Sequence[RawLog]], least: float,
    logs: list[RawLog], model: IdentifiedModel, tmp_path: Path,
) -> None:
    logs = logs[:1]
    found = identify(ENDLESS, given([wrapped(log, least) for log in logs], tmp_path), recipe=PLAIN)
    plain = identify(ENDLESS, given(logs, tmp_path), recipe=PLAIN).model \
        if given is in_parts else model
    np.testing.assert_allclose(found.model.values, plain.values, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.model.std, plain.std, rtol=1e-3)
    assert sum('turns over' in text for text in found.warnings) >= 2
    assert not any('unit' in text for text in found.warnings)


@pytest.mark.parametrize('width', [TURN, 2.8], ids='limits of +-{:.3g}'.format)
def test_limits_of_the_joints_are_no_matter(
    width: float, logs: list[RawLog], model: IdentifiedModel,
) -> None:
    """Some are wider than a turn; `init` writes a range of 2.8 rad for joints without limits."""
    found = identify(with_limits(width), [wrapped(logs[0])], recipe=PLAIN).model
    np.testing.assert_allclose(found.values, model.values, rtol=1e-6, atol=1e-7)


def test_positions_alone_will_do(logs: list[RawLog]) -> None:
    bare = [replace(logs[0], velocity=None)]
    one, other = (identify(ENDLESS, given, recipe=PLAIN).model for given in (
        bare, [wrapped(log) for log in bare]))
    np.testing.assert_allclose(other.values, one.values, rtol=1e-6, atol=1e-7)


def test_the_model_predicts_wrapped_positions_as_well(
    logs: list[RawLog], model: IdentifiedModel,
) -> None:
    one, other = validate(model, logs[1:]), validate(model, [wrapped(logs[1])])
    for joint, score in one.model['all'].items():
        assert other.model['all'][joint].rmse == pytest.approx(score.rmse, rel=1e-6)
    assert [sentences(trace.outside) for trace in other.traces] == [
        sentences(trace.outside) for trace in one.traces]


def test_contacts_are_those_of_positions_that_go_on(
    logs: list[RawLog], model: IdentifiedModel,
) -> None:
    one, other = (contact_events(model, [log])[0] for log in (logs[1], wrapped(logs[1])))
    assert len(one.contacts) == len(other.contacts)
    assert any('turns over' in note for note in other.notes)
