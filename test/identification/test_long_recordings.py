"""Identification from a recording in parts: what one piece gives, in memory that does not grow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tolerances import COLUMNS_IN_MEMORY, IN_PARTS, PEAK_GROWTH

from robot_dynid.effects import axes_of
from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.friction_selection.law_request import LawRequest
from robot_dynid.estimation.friction_selection.law_selection import bases, choose_laws
from robot_dynid.estimation.friction_selection.selection_data import FrictionData
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import Prepared, Recordings
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.alignment import take
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import Part, RawLog
from robot_dynid.validation.validate import validate
from robot_dynid_evaluation.bench.long_recordings import mapped, write_recording

RATE = 200.0
FIXED = Recipe(friction='coulomb', cutoff=8.0, effort_lag=0.0, ramp_width=0.01, ripple='none',
               adaptation='none')


@pytest.fixture(scope='module')
def robot() -> RobotModel:
    return load_robot('planar_3r')


@pytest.fixture(scope='module')
def log(robot: RobotModel, tmp_path_factory: pytest.TempPathFactory) -> RawLog:
    """Return two and a half minutes of a simulated arm."""
    folder = tmp_path_factory.mktemp('long')
    write_recording(folder, robot, load_truth(robot), (150.0, RATE))
    channels = {name: np.load(folder / f'{name}.npy')
                for name in ('time', 'position', 'velocity', 'effort')}
    return RawLog('long', robot.joints, **channels)


def found(robot: RobotModel, logs: Sequence[RawLog], method: str = 'wls') -> IdentificationResult:
    return identify(robot, logs, method, FIXED)


@pytest.mark.parametrize('method', ['wls', 'irls', 'iv', 'feasible'])
def test_parts_give_the_parameters_of_one_piece(
    robot: RobotModel, log: RawLog, method: str
) -> None:
    whole = found(robot, [log], method)
    parts = Parts((log,), 3000, 3000)
    assert len(parts) == 10
    cut = found(robot, parts, method)
    apart = np.abs(cut.model.values - whole.model.values) / whole.model.std
    assert apart.max() < IN_PARTS
    assert abs(cut.experiment.information.samples - whole.experiment.information.samples) <= 10
    assert cut.model.record.recordings == ('long',)


def test_a_part_that_cannot_be_used_is_left_out_and_named(robot: RobotModel, log: RawLog) -> None:
    assert log.effort is not None
    effort = log.effort.copy()
    effort[12_000 - 1000:15_000 + 1000, 1] = 0.0
    damaged = RawLog('long', log.joints, log.time, log.position, log.velocity, effort)
    logs = Parts((damaged,), 3000, 3000)
    result = found(robot, logs)
    left_out = [w for w in result.warnings if 'is omitted' in w]
    assert len(left_out) == 1 and '60 to 75 s' in left_out[0]
    scored = validate(result.model, logs)
    assert len(scored.traces) == 9
    assert any('60 to 75 s' in w and 'is omitted' in w for w in scored.warnings)


def test_averaging_joins_parts_or_refuses(
    robot: RobotModel, log: RawLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from robot_dynid.signals import parts

    monkeypatch.setattr(parts, 'WHOLE_ROWS', 1000)
    with pytest.raises(DataError, match='averaging over periods needs a recording in one piece'):
        identify(robot, [log], recipe=Recipe(period=20.0))


def test_a_short_first_recording_does_not_stand_for_long_ones(
    robot: RobotModel, log: RawLog
) -> None:
    logs = Parts((take(log, slice(0, 500)), *(
        take(log, slice(5000 * i, 5000 * (i + 1))) for i in range(1, 6))))
    chosen = Recordings(robot, logs, FIXED).excerpt(rows=10_000)
    assert sum(len(part.time) for one in chosen for part in one.parts) < 10_000


def test_rows_around_samples_count_in_memory(
    robot: RobotModel, log: RawLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    repaired, settings = repair(robot, take(log, slice(0, 3000))), Preprocessing(8.0)
    samples = prepare(robot, repaired, settings)
    assert samples.whole is not None and len(samples.whole) > len(samples)
    for room, kept in ((2 * len(samples), False), (len(samples) + len(samples.whole), True)):
        monkeypatch.setattr('robot_dynid.identification.recordings.CACHED_ROWS', room)
        prepared = Prepared(robot, [repaired], settings, lambda *_: None)
        (once,) = prepared
        (again,) = prepared
        assert (once is again) == kept


def test_parts_that_cannot_be_used_are_left_out_unless_there_is_no_other(
    robot: RobotModel
) -> None:
    time = 0.01 * np.arange(400)
    motion = np.sin(np.outer(time, np.arange(1.0, 1.0 + robot.n)))
    whole = RawLog('long, 0 to 4 s', robot.joints, time, motion, effort=motion,
                   part=Part(-np.inf, np.inf, 0.0, 'long'))
    short, good = (repair(robot, take(whole, slice(0, rows))) for rows in (12, 400))
    settings, stages = Preprocessing(10.0), list[tuple[str, float]]()
    prepared = Prepared(robot, [short, good], settings, lambda *stage: stages.append(stage))
    for _ in range(2):
        assert len(list(prepared)) == 1
    assert list(prepared.unusable) == [0] and 'no stretch is longer' in prepared.notes[0][0]
    assert [stages[i][0] for i in (0, 2)] == [
        'reducing the recordings', 'going through the recordings again']
    (unfiltered,) = prepared.as_recorded.read()
    np.testing.assert_allclose(unfiltered[0].position, good.parts[0].position)
    with pytest.raises(DataError, match='no stretch is longer'):
        list(Prepared(robot, [short, short], settings, lambda *_: None))


def test_choices_need_a_stretch_that_can_be_used(robot: RobotModel, log: RawLog) -> None:
    silent = replace(log, effort=np.full_like(log.position, np.nan))
    with pytest.raises(DataError, match=r'holds no finite value.*is omitted\)'):
        Recordings(robot, Parts((silent,), 5000, 5000), FIXED).excerpt(10_000)


MEASURE = """
import json, sys
from robot_dynid.identification import recordings
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid_evaluation.bench.identify import peak_megabytes
from robot_dynid_evaluation.bench.long_recordings import mapped

recordings.CACHED_ROWS = 40_000
robot = load_robot('planar_3r')
logs = Parts((mapped(sys.argv[1], robot.joints),), 20_000, 20_000)
result = identify(robot, logs, recipe=Recipe(friction='coulomb', cutoff=8.0, effort_lag=0.0))
print(json.dumps([len(logs), peak_megabytes()]))
"""


def test_peak_memory_does_not_grow_with_the_length(robot: RobotModel, tmp_path: Path) -> None:
    peaks = []
    for seconds, parts in ((80.0, 4), (240.0, 12)):  # noise levels are learnt from 60 s at most
        folder = tmp_path / str(parts)
        folder.mkdir()
        write_recording(folder, robot, load_truth(robot), (seconds, 1000.0))
        done = subprocess.run(
            [sys.executable, '-c', MEASURE, str(folder)], check=True, capture_output=True,
            text=True, env={**os.environ, 'OPENBLAS_NUM_THREADS': '1'})
        count, peak = json.loads(done.stdout)
        assert count == parts
        peaks.append(peak)
    assert peaks[1] < peaks[0] + PEAK_GROWTH, peaks


def test_arrays_are_read_part_by_part(robot: RobotModel, tmp_path: Path) -> None:
    write_recording(tmp_path, robot, load_truth(robot), (60.0, RATE))
    logs = Parts((mapped(str(tmp_path), robot.joints),), round(15.0 * RATE), round(15.0 * RATE))
    assert len(logs) == 4
    assert found(robot, logs).experiment.information.samples > 1000


def test_laws_are_chosen_without_the_columns_of_all_axes_in_memory(tmp_path: Path) -> None:
    arm = load_robot('seven_axis')
    write_recording(tmp_path, arm, load_truth(arm), (15.0, 1000.0))
    samples = prepare(arm, repair(arm, mapped(str(tmp_path), arm.joints)), Preprocessing(110.0))
    assert len(samples) > 14_000  # so high a cut-off leaves every row
    structure = Structure.uniform(arm, Recipe().rotor_inertia, 'coulomb', {'width': 0.01})
    links = TorqueModel.of(arm, structure.blocks(arm)[:-1])
    data = FrictionData(links, axes_of(arm), [samples])
    tracemalloc.start()
    try:
        choose_laws(data, 'auto', structure.laws, load=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    candidates = [bases(LawRequest(), law, alone=True) for law in structure.laws]
    columns = len(data.factors(candidates, None).friction.names)
    assert peak < COLUMNS_IN_MEMORY * columns * samples.time.nbytes


@pytest.mark.parametrize(('rows', 'chosen'), [
    (3500, range(7)), (3499, [0, 2, 4, 6]), (1200, [0, 3, 6]), (1, [0])])
def test_an_excerpt_is_evenly_spaced_and_of_about_so_many_rows(
    robot: RobotModel, log: RawLog, rows: int, chosen: Sequence[int]
) -> None:
    logs = [replace(take(log, slice(500 * i, 500 * (i + 1))), source=f'{i}') for i in range(7)]
    for some in (logs, Parts(tuple(logs))):
        assert [one.source for one in Recordings(robot, some, FIXED).excerpt(rows)] == [
            f'{i}' for i in chosen]
