"""What is told of a fleet made by hand, robot_dynid_extras/fleet/report.py, reduced.py, verb.py:
facts, words, pictures, the command, recordings that are left out, models of arms."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model
from motions import torque_model
from report_pages import unpacked

from robot_dynid import load_robot
from robot_dynid.cli.main import main
from robot_dynid.cli.terminal import Terminal
from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.information import Batch, Information
from robot_dynid.identification.by_recording import Recorded, RecordedInformation, Reduced
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import FitRecord
from robot_dynid.signals.parts import Parts
from robot_dynid.types import Progress
from robot_dynid.workers import ThisProcess
from robot_dynid_extras.fleet import reduced as reducing
from robot_dynid_extras.fleet import verb as command
from robot_dynid_extras.fleet.changes import OUTLIER, STEP, TREND
from robot_dynid_extras.fleet.characteristics import (
    Characteristic,
    Characteristics,
    Reading,
)
from robot_dynid_extras.fleet.fleet import DAY, Arm, Finding, Fleet, Session
from robot_dynid_extras.fleet.recordings import ArmRecording
from robot_dynid_extras.fleet.reduced import (
    KeptRecording,
    ReducedFleet,
    choosing,
    models,
    pooled,
    reduce_fleet,
    reduced,
    write_models,
)
from robot_dynid_extras.fleet.report import (
    ArmStatus,
    along,
    arm_facts,
    arm_statuses,
    finding_facts,
    findings_report,
    fleet_report,
    spread_facts,
    status_facts,
)
from robot_dynid_extras.fleet.scatter import DayToDay, Levels

ROBOT = load_robot('planar_3r')
DRY = Characteristic('dry_2', 'joint_2', 'dry', 'dry friction', '')
MOMENT = Characteristic('mx3', 'link_3', 'link', 'mass times x', 'kg m')
#: s since 1970 at which 2026-03-01 begins
MARCH = 1772323200.0
#: of the first arm, by day: the step, another thing, and the other arm, which is off
CHANGED = Finding('SN0', DRY, STEP, 0.2, 0.04, MARCH + 2.0 * DAY, 1e-4, 'wear')
OFF = Finding('SN1', MOMENT, OUTLIER, -0.5, 0.1, None, 0.002, 'part taken off')
PERHAPS = Finding('SN1', DRY, TREND, 0.1, 0.3, MARCH, 0.04, 'run in', 12)


def session(arm: str, day: int, dry: float, moment: float = np.nan) -> Session:
    """Return what a day tells, of the moment where it is given; deviations are 0.03 and 0.4."""
    told = np.array([True, np.isfinite(moment)])
    reading = Reading(np.array([dry, moment]), np.diag([0.03**2, 0.4**2]), np.ones(2), told)
    return Session(arm, MARCH + day * DAY + 60.0, (f'{arm}/{day}.csv', 'b.csv'), reading, reading)


@cache
def fleet_of_two() -> Fleet:
    """Return a fleet of two arms of four and of three days."""
    model = torque_model(ROBOT)
    directions = np.zeros((len(model.reduction.names), 2))
    directions[3, 0], directions[5, 0], directions[7, 1] = 2.0, 1.0, 1.0
    characteristics = Characteristics(
        model, (DRY, MOMENT), np.arange(float(len(directions))), directions, np.zeros((0, 2)),
        np.ones(3), np.ones(3))
    arms = tuple(Arm(name, sessions, np.array(values), np.diag([0.01, 0.04]),
                     np.array([values[0], np.nan]), np.array([0.2, np.inf]))
                 for name, values, sessions in (
        ('SN0', [0.21, 0.1], tuple(session('SN0', day, dry, moment) for day, dry, moment in (
            (0, 0.0, 1.0), (1, 0.01, 1.5), (2, 0.21, np.nan), (3, 0.2, 1.2)))),
        ('SN1', [0.02, 0.3], tuple(session('SN1', 5 * day, -0.01) for day in (0, 1, 2)))))
    return Fleet(characteristics, arms, (DayToDay(0.04, 9.0), DayToDay(np.inf, 0.0)),
                 (Levels(0.05, 0.01, 0.08), None), (CHANGED, OFF), (PERHAPS,), 24, 0.1)


def test_facts_of_a_finding_hold_the_days_that_tell_it() -> None:
    """Their intervals are by what the day knows and what days differ by: 5 % of 3 and 4."""
    facts = finding_facts(fleet_of_two(), CHANGED)
    days = facts.pop('by_session')
    assert facts == {
        'arm': 'SN0', 'part': 'joint_2', 'characteristic': 'dry_2', 'kind': 'dry',
        'words': 'dry friction', 'unit': '1', 'pattern': 'step', 'size': 0.2,
        'half_interval': 0.04, 'since': '2026-03-03', 'probability': 1e-4, 'cause': 'wear'}
    assert [(one['day'], one['value']) for one in days] == [
        ('2026-03-01', 0.0), ('2026-03-02', 0.01), ('2026-03-03', 0.21), ('2026-03-04', 0.2)]
    assert [one['half_interval'] for one in days] == pytest.approx(4 * [1.95996 * 0.05], rel=1e-4)
    other = finding_facts(fleet_of_two(), replace(OFF, arm='SN0'))
    assert other['since'] is None and other['unit'] == 'kg m'
    assert [one['day'] for one in other['by_session']] == [
        '2026-03-01', '2026-03-02', '2026-03-04']


def test_facts_of_arms_are_pooled_ones_beside_their_own() -> None:
    fleet = fleet_of_two()
    facts = arm_facts(fleet, fleet.arms[0])
    assert list(facts) == ['dry_2', 'mx3']
    assert facts['dry_2'] == pytest.approx({
        'value': 0.21, 'half_interval': 0.195996, 'alone': 0.21, 'alone_half_interval': 0.391993},
        rel=1e-5)
    assert facts['mx3'] == pytest.approx({
        'value': 0.1, 'half_interval': 0.391993, 'alone': np.nan, 'alone_half_interval': np.inf},
        rel=1e-5, nan_ok=True)
    assert spread_facts(fleet) == {
        'dry_2': {'between_arms': 0.08, 'day_to_day': 0.04, 'unit': '1'},
        'mx3': {'between_arms': None, 'day_to_day': np.inf, 'unit': 'kg m'}}


def test_conditions_of_arms_say_what_was_found() -> None:
    changed, off = arm_statuses(fleet_of_two())
    assert changed == ArmStatus('SN0', True, 'joint_2: dry friction +20 ± 4 %', {
        'joint_2: dry friction': 'step since 2026-03-03, +20 ± 4 %, by chance 0.0001, perhaps '
                                 'wear',
        'sessions': '4', 'last session': '2026-03-04',
        'false alarms among the arms listed': '10 % at most'})
    assert off.message == 'link_3: mass times x -0.5 ± 0.1 kg m'
    assert off.values['link_3: mass times x'] == (
        'outlier, -0.5 ± 0.1 kg m, by chance 0.002, perhaps part taken off')
    assert off.values['last session'] == '2026-03-11'
    usual = arm_statuses(replace(fleet_of_two(), findings=(OFF,)))[0]
    assert (usual.changed, usual.message) == (False, 'as expected')
    assert status_facts(changed)['level'] == 'warn' and status_facts(usual)['level'] == 'ok'
    assert status_facts(usual)['values'] == dict(usual.values)
    assert status_facts(usual)['name'] == status_facts(usual)['hardware_id'] == 'SN0'


def test_the_report_lists_findings_spread_and_sessions() -> None:
    left_out = {'a.csv': 'a.csv: is a copy of b.csv'}
    report = fleet_report(fleet_of_two(), left_out)
    assert report.title == 'planar_3r: fleet' and report.subtitle == '2 arms, 7 sessions'
    [[found], [spread], [sessions]] = [chapter.sections for chapter in report.chapters]
    assert found.status is not None and found.status.kind == 'fair'
    assert 'at most 10 % of the arms listed' in found.text
    named, watched = found.tables
    assert [row.cells for row in named.rows] == [
        ('SN0', 'joint_2', 'dry friction', 'step', '+20 ± 4 %', '2026-03-03', '0.0001', 'wear'),
        ('SN1', 'link_3', 'mass times x', 'outlier', '-0.5 ± 0.1 kg m', '', '0.002',
         'part taken off')]
    assert [row.cells for row in watched.rows] == [
        ('SN1', 'joint_2', 'dry friction', 'trend', '+10 ± 30 %', '2026-03-01', '0.04', 'run in',
         '12')]
    assert found.warnings == ('left out: a.csv: is a copy of b.csv',)
    assert [figure.title for figure in found.figures] == [
        'SN0: dry friction of joint_2', 'SN1: mass times x of link_3',
        'SN1: dry friction of joint_2']
    assert [row.cells for row in spread.tables[0].rows] == [
        ('joint_2: dry friction', '8', '4', '%'), ('link_3: mass times x', '–', '–', 'kg m')]
    assert [row.cells for row in sessions.tables[0].rows] == [
        ('SN0', '4', '8', '2026-03-01', '2026-03-04'),
        ('SN1', '3', '6', '2026-03-01', '2026-03-11')]
    known = replace(fleet_of_two(), usual=(DayToDay(0.04, 9.0), DayToDay(0.56789, 9.0)), spread=(
        Levels(0.05, 0.01, 0.08), Levels(0.1, 0.1, 0.012345)))
    [[spread]] = [fleet_report(known, {}).chapters[1].sections]
    assert spread.tables[0].rows[1].cells == (
        'link_3: mass times x', '0.0123', '0.568', 'kg m')
    quiet, = findings_report(replace(fleet_of_two(), findings=(), watched=(
        replace(PERHAPS, sessions=None),)), {}).chapters[0].sections
    assert quiet.status is not None and quiet.status.kind == 'good' and not quiet.warnings
    [only] = quiet.tables
    assert only.rows[0].cells[-1] == ''


def test_a_finding_is_drawn_before_the_other_arms() -> None:
    """Friction in percent, by milliseconds since 1970, as Plotly counts time."""
    other, own = along(fleet_of_two(), CHANGED)['data']
    assert other['name'] == 'other arms' and own['name'] == 'SN0'
    day = 1e3 * (MARCH + 60.0)
    assert unpacked(own['x']) == pytest.approx(
        [day, day + 864e5, day + 2 * 864e5, day + 3 * 864e5], rel=1e-7)  # two minutes
    assert unpacked(own['y']) == pytest.approx([0.0, 1.0, 21.0, 20.0])
    assert own['error_y']['array'] == pytest.approx(4 * [1.95996 * 5.0], rel=1e-4)
    assert unpacked(other['y']) == pytest.approx(3 * [-1.0]) and other['showlegend'] is True
    layout = along(fleet_of_two(), CHANGED)['layout']
    [mark] = layout['shapes']
    assert mark['x0'] == mark['x1'] == 1e3 * (MARCH + 2.0 * DAY)
    assert (mark['y0'], mark['y1'], mark['yref']) == (0, 1, 'paper')
    assert layout['yaxis']['title']['text'] == 'difference from the fleet mean [%]'
    off = along(fleet_of_two(), replace(OFF, arm='SN0'))
    assert unpacked(off['data'][-1]['y']) == pytest.approx([1.0, 1.5, 1.2])
    assert off['layout']['shapes'] == [] == along(fleet_of_two(), PERHAPS)['layout']['shapes']
    assert off['layout']['yaxis']['title']['text'] == 'mx3 [kg m]'


def test_probabilities_and_sizes_are_told_with_few_digits() -> None:
    fine = replace(CHANGED, probability=1.2345e-4, size=0.23456, half_interval=0.034567)
    fleet = replace(fleet_of_two(), findings=(fine,))
    words = '+23.5 ± 3.5 %'
    assert arm_statuses(fleet)[0].values['joint_2: dry friction'] == (
        f'step since 2026-03-03, {words}, by chance 0.00012, perhaps wear')
    [found] = findings_report(fleet, {}).chapters[0].sections
    assert found.tables[0].rows[0].cells[4:7] == (words, '2026-03-03', '0.00012')
    other = replace(OFF, size=-0.54321, half_interval=0.12345)
    assert arm_statuses(replace(fleet, findings=(other,)))[1].message.endswith(
        '-0.543 ± 0.12 kg m')


def test_a_page_of_many_arms_has_24_figures_of_30_others_and_a_folded_table() -> None:
    fleet = fleet_of_two()
    arms = tuple(replace(fleet.arms[0], name=f'SN{i}') for i in range(33))
    for count, drawn in ((20, 19), (21, 20), (31, 30), (32, 30)):
        many = replace(fleet, arms=arms[:count])
        assert len(along(many, CHANGED)['data']) == drawn + 1
        [sessions] = fleet_report(many, {}).chapters[2].sections
        assert sessions.tables[0].folded is (count > 20)
    for count, figures in ((23, 24), (24, 24), (30, 24)):
        many = replace(fleet, findings=(CHANGED,) * count)
        [found] = findings_report(many, {}).chapters[0].sections
        assert (len(found.figures), len(found.tables[0].rows)) == (figures, count)


def run_command(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str, listened: bool = True
) -> tuple[int, dict[str, Any]]:
    """Run the command on a fleet made by hand; return its code, and what it did."""
    table = folder / 'table.csv'
    table.write_text('path,robot,time\n' + ''.join(
        f'{name}.csv,SN{i},5\n' for i, name in enumerate('abc')))
    made = SimpleNamespace(model='a model', recordings=(1, 2, 3, 4, 5), left_out={'c': 'a copy'})
    done: dict[str, Any] = {'stages': []}

    @contextmanager
    def progress(_: Terminal, title: str, lines: bool = False) -> Iterator[Progress]:
        yield lambda *stage: done['stages'].append((title, *stage))

    def reduce_fleet(robot: Any, listed: Sequence[ArmRecording], *rest: Any) -> Any:
        done['listed'] = [Path(one.source).name for one in listed]
        return made

    def found(model: object, recordings: object, rate: float) -> Fleet:
        assert model == 'a model' and recordings is made
        return replace(fleet_of_two(), rate=rate)

    def published(statuses: Sequence[ArmStatus]) -> bool:
        done['published'] = [one.arm for one in statuses]
        return listened

    monkeypatch.setattr(Terminal, 'progress', progress)
    monkeypatch.setattr(reducing, 'reduce_fleet', reduce_fleet)
    monkeypatch.setattr(reducing, 'write_models', lambda out, *_: {'SN0': f'{out}/SN0.model.yaml'})
    # the name of the package is that of the function
    monkeypatch.setattr(sys.modules['robot_dynid_extras.fleet.fleet'], 'fleet', found)
    monkeypatch.setattr(command, 'publisher', lambda: published)
    return main(['fleet', str(table), '--robot', 'planar_3r', *options]), done


def test_the_command_gives_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = perf_counter()
    code, done = run_command(monkeypatch, tmp_path, '--json', '--out', 'models', '--rate', '0.2')
    assert code == 0 and done['listed'] == ['a.csv', 'b.csv', 'c.csv']
    assert done['stages'] == [('fleet', 'comparing arms', 0.9)] and 'published' not in done
    told = json.loads(capsys.readouterr().out)
    assert 0.0 <= told['seconds'] < perf_counter() - started
    assert [told[key] for key in ('robot', 'recordings', 'sessions', 'rate', 'tests')] == [
        'planar_3r', 5, 7, 0.2, 24]
    assert [one['arm'] for one in told['findings']] == ['SN0', 'SN1']
    assert [(one['arm'], one['sessions_needed']) for one in told['watched']] == [('SN1', 12)]
    assert {name: (arm['sessions'], arm['model']) for name, arm in told['arms'].items()} == {
        'SN0': (4, 'models/SN0.model.yaml'), 'SN1': (3, None)}
    assert [one['level'] for one in told['diagnostics']] == ['warn', 'warn']
    assert told['left_out'] == {'c': 'a copy'} and told['report'] is None


@pytest.mark.parametrize('listened', [True, False])
def test_the_command_says_where_nobody_listens(
    listened: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv('COLUMNS', '200')
    code, done = run_command(monkeypatch, tmp_path, '--diagnostics', listened=listened)
    assert code == 0 and done['published'] == ['SN0', 'SN1']
    printed = capsys.readouterr()
    assert ('nobody who listens to /diagnostics' in printed.err) is not listened
    words = ' '.join((printed.out + printed.err).split())
    assert '2 arms, 7 sessions, 5 recordings, 24 tests; at most 5 % of the arms listed' in words
    assert 'joint_2' in words and '+20 ± 4 %' in words


@pytest.mark.parametrize(('rate', 'code'), [('0', 2), ('1', 2), ('0.999', 0)])
def test_a_rate_is_a_share(
    rate: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_command(monkeypatch, tmp_path, '--rate', rate)[0] == code


class Shelf:
    """A keeper in memory."""

    def __init__(self, wrong: str = '') -> None:
        self.kept: dict[tuple[str, str, str], RecordedInformation] = {}
        self.wrong = wrong

    def load(self, source: str, digest: str, key: str) -> tuple[RecordedInformation | None, str]:
        return self.kept.get((source, digest, key)), self.wrong

    def save(self, made: RecordedInformation, source: str, digest: str) -> None:
        self.kept[source, digest, made.record.recipe_digest] = made


def information(number: float) -> RecordedInformation:
    """Return information whose equations are told by a ``number``."""
    own = Information(('a',), np.ones((1, 1), dtype=bool), (
        Batch((np.full((4, 4), number),), 10),))
    nothing: Any = None
    return RecordedInformation(ROBOT, nothing, own, None, nothing, FitRecord(
        recording_digests=(f'digest {number:g}',), recipe_digest='key'), (), ())


def reduce(
    listed: Sequence[ArmRecording], every: Sequence[Reduced], keeper: Shelf, own: Shelf | None,
    monkeypatch: pytest.MonkeyPatch,
) -> ReducedFleet:
    """Reduce ``listed`` recordings to ``every``, as workers with a keeper of their ``own`` do."""
    like, recipe, logs = information(0.0), Recipe(), Parts(())

    def each(_: Recorded, robot: Any, parts: Any, choices: Any, progress: Any) -> Any:
        assert (robot, parts, choices[1], progress) == (ROBOT, logs, recipe, print)
        assert choices[0].choice is like.choice and choices[0].reversal_weights is None
        return iter(every)

    monkeypatch.setattr(Recorded, 'each', each)
    return reduced(like, (listed, logs), (Recorded(ThisProcess(), own), keeper), recipe, print)


def test_recordings_are_kept_by_arm_and_time_and_copies_left_out(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stated time comes before that of the stamps, this before that in the name."""
    listed = [ArmRecording('d.csv', 'SN1', 7.0, 1.0), ArmRecording('c.csv', 'SN0', None, 4.0),
              ArmRecording('copy.csv', 'SN0', 9.0, None), ArmRecording('b.csv', 'SN0', None, 2.0),
              ArmRecording('bad.csv', 'SN0', 0.0, None)]
    every = [Reduced(information(1.0), (), began=8.0), Reduced(information(2.0), (), began=5.0),
             Reduced(information(1.0), ()), Reduced(information(3.0), ()),
             Reduced(None, (), DataError('bad.csv: is empty'))]
    keeper = Shelf()
    found = reduce(listed, every, keeper, None, monkeypatch)
    assert [(one.arm, one.time, one.source, one.digest, one.key) for one in found.recordings] == [
        ('SN0', 2.0, 'b.csv', 'digest 3', 'key'), ('SN0', 5.0, 'c.csv', 'digest 2', 'key'),
        ('SN1', 7.0, 'd.csv', 'digest 1', 'key')]
    assert found.left_out == {'copy.csv': 'copy.csv: is a copy of d.csv',
                              'bad.csv': 'bad.csv: is empty'}
    assert [key[0] for key in keeper.kept] == ['d.csv', 'c.csv', 'b.csv']
    part = found.part(found.recordings[1])
    assert part.record.recordings == ('c.csv',)
    assert part.information.batches[0].factors[0][0, 0] == 2.0
    same = Shelf()
    reduce(listed, every, same, same, monkeypatch)
    assert not same.kept  # the workers keep it themselves


def test_recordings_that_cannot_be_used_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one = ArmRecording('a.csv', 'SN0', None, None)
    with pytest.raises(DataError, match=r'can be used: a\.csv: is empty$'):
        reduce([one], [Reduced(None, (), DataError('a.csv: is empty'))], Shelf(), None,
               monkeypatch)
    with pytest.raises(UsageError, match=r'a\.csv: when was it recorded'):
        reduce([one], [Reduced(information(1.0), ())], Shelf(), None, monkeypatch)
    for wrong in ('', ': it is damaged'):
        fleet = ReducedFleet(information(0.0), Shelf(wrong), (
            KeptRecording('SN0', 1.0, 'a.csv', 'd', 'k'),), {})
        with pytest.raises(DataError) as caught:
            fleet.part(fleet.recordings[0])
        assert str(caught.value) == (
            f'a.csv: its information was kept, but is not there any more {wrong}'.rstrip())


def recordings_of_two_arms() -> list[ArmRecording]:
    """Return six of each arm: by time k, i, l, j, h, g and e, c, f, d, b, a."""
    times = [(5.0, 0.1), (3.0, None), (None, 0.5), (None, 2.0), (None, None), (1.0, None)]
    return [ArmRecording(f'{name}.csv', arm, *time)
            for arm, names in (('SN1', 'abcdef'), ('SN0', 'ghijkl'))
            for name, time in zip(names, times, strict=True)]


def test_choices_are_from_recordings_of_all_arms_and_times() -> None:
    """Six, evenly: 0, 2, 4, 6, 8 and 11 of twelve; a stated time comes before that in the name."""
    found = choosing(recordings_of_two_arms())
    assert [one.source[0] for one in found] == ['k', 'l', 'h', 'e', 'f', 'a']
    assert len(choosing(recordings_of_two_arms()[:2])) == 2


def test_a_fleet_is_reduced_with_the_choices_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The few go into no keeper: they are reduced again with what was chosen from them."""
    listed, keeper, recipe = recordings_of_two_arms(), Shelf(), Recipe()
    recorded = Recorded(ThisProcess(), keeper)
    stages: list[tuple[str, float]] = []

    def choose(robot: Any, few: Any, own: Any, like: Any, progress: Any, workers: Any) -> str:
        assert (robot, own, like, workers) == (ROBOT, recipe, None, replace(recorded, keeper=None))
        for share in (0.0, 1.0):
            progress(' '.join(few), share)
        return 'choices'

    def reduce_all(like: Any, given: Any, workers: Any, own: Any, progress: Any) -> str:
        assert (like, given[0], len(given[1])) == ('choices', listed, 12)
        assert workers == (recorded, keeper) and own is recipe
        for share in (0.0, 1.0):
            progress('all', share)
        return 'reduced'

    monkeypatch.setattr(reducing, 'recording_files', lambda sources, robot: [
        source[0] for source in sources])
    monkeypatch.setattr(reducing, 'information', choose)
    monkeypatch.setattr(reducing, 'reduced', reduce_all)
    assert reduce_fleet(ROBOT, listed, (recorded, keeper), recipe,
                        lambda *stage: stages.append(stage)) == 'reduced'
    assert [stage for stage, _ in stages] == ['k l h e f a', 'k l h e f a', 'all', 'all']
    assert [share for _, share in stages] == pytest.approx([0.0, 0.3, 0.3, 0.9])


def test_the_model_of_an_arm_is_from_the_recordings_since_its_last_step(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first, the last, and the middle one are read, by which it is scored."""
    keeper = Shelf()
    recordings = []
    for arm, days in (('SN0', 6), ('SN1', 2)):
        for day in range(days):
            source = f'{arm}/{day}'
            keeper.kept[source, 'd', 'k'] = information(1.0)
            recordings.append(KeptRecording(arm, MARCH + day * DAY, source, 'd', 'k'))
    merged: list[list[str]] = []

    def merge(parts: Iterator[RecordedInformation]) -> RecordedInformation:
        merged.append([one.record.recordings[0] for one in parts])
        return information(5.0)

    recipe, read = Recipe(), list[Sequence[str]]()

    def identify(parts: Sequence[RecordedInformation], recipe: Recipe | None) -> Any:
        assert recipe is chosen and [one.excerpt for one in parts] == [tuple(read[-1])]
        return SimpleNamespace(model=nominal_model('planar_3r'))

    chosen = recipe
    monkeypatch.setattr(reducing, 'merge_information', merge)
    monkeypatch.setattr(reducing, 'identify_information', identify)
    monkeypatch.setattr(reducing, 'excerpt', tuple)

    def reader(sources: Sequence[str]) -> Any:
        read.append(sources)
        return sources

    earlier = replace(CHANGED, since=MARCH + DAY)
    trend = replace(CHANGED, pattern=TREND, since=MARCH + 4.0 * DAY)
    fleet = replace(fleet_of_two(), findings=(earlier, CHANGED, OFF, trend))
    made = ReducedFleet(information(0.0), keeper, tuple(recordings), {})
    found = dict(models(fleet, made, reader, recipe))
    assert merged == [['SN0/2', 'SN0/3', 'SN0/4', 'SN0/5'], ['SN1/0', 'SN1/1']]
    assert read == [['SN0/2', 'SN0/3', 'SN0/5'], ['SN1/0', 'SN1/1']]
    assert list(found) == ['SN0', 'SN1']
    assert found['SN0'].values[3] == 3.0 + 2.0 * 0.21


def test_parameters_of_an_arm_are_pooled_with_their_covariance() -> None:
    """Parameters 3 and 5 are of dry friction, two and one of it; 7 is of the moment."""
    fleet = fleet_of_two()
    arm = replace(fleet.arms[0], covariance=np.diag([0.01, np.inf]))
    found = pooled(nominal_model('planar_3r'), fleet, arm)
    assert found.values[[3, 5, 7]] == pytest.approx([3.0 + 2.0 * 0.21, 5.0 + 0.21, 7.0 + 0.1])
    assert found.std[[3, 5, 7]] == pytest.approx([0.2, 0.1, np.inf])
    assert found.std[0] == 0.0 and found.feasible is None
    assert found.warnings == ('a warning', 'parameters are pooled with those of 2 arms of one '
                              'type')
    correlation = found.correlation_factor.T @ found.correlation_factor
    assert correlation[3, 5] == pytest.approx(1.0) and correlation[3, 7] == 0.0


def test_models_of_arms_are_written_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, stages = nominal_model('planar_3r'), []

    def models_of(fleet: Any, made: Any, read: Any, recipe: Any) -> Iterator[Any]:
        assert read(['a.csv', 'b.csv']).recordings == (('a.csv', ROBOT), ('b.csv', ROBOT))
        yield from (('SN0', model), ('SN1', model))

    monkeypatch.setattr(reducing, 'models', models_of)
    monkeypatch.setattr(reducing, 'RecordingFile', lambda *own: SimpleNamespace(
        opened=lambda: (own, 'its digest')))
    nothing: Any = None
    paths = write_models(str(tmp_path / 'new' / 'models'), nothing,
                         ReducedFleet(information(0.0), Shelf(), (), {}), Recipe(),
                         lambda *stage: stages.append(stage))
    assert paths == {name: str(tmp_path / 'new' / 'models' / f'{name}.model.yaml')
                     for name in ('SN0', 'SN1')}
    assert stages == [('model of SN0', 0.95), ('model of SN1', 0.95)]
    np.testing.assert_array_equal(IdentifiedModel.load(paths['SN1']).values, model.values)
