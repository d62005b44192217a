"""A fleet from recordings to findings: simulated ones, the command, what is asked of a list."""

from __future__ import annotations

import gzip
import json
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest
from recordings import recording

from robot_dynid.cli.main import main
from robot_dynid.errors import UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray
from robot_dynid_evaluation import trust
from robot_dynid_evaluation.bench.fleet import (
    CHANGES,
    NORMAL,
    Score,
    SimulatedFleet,
    analysed,
    is_true,
    measure,
    rows,
    simulated,
    torque_model,
)
from robot_dynid_extras.fleet import verb as command
from robot_dynid_extras.fleet.chance import ByChance
from robot_dynid_extras.fleet.changes import MOST_SESSIONS, OUTLIER, STEP, Evidence
from robot_dynid_extras.fleet.characteristics import CAUSES, Characteristics, Reading, cause
from robot_dynid_extras.fleet.fleet import Fleet, ReducedRecording, fleet, judged
from robot_dynid_extras.fleet.recordings import (
    ArmRecording,
    fleet_recordings,
    serial_of,
    time_in_name,
)
from robot_dynid_extras.fleet.reduced import choosing
from robot_dynid_extras.fleet.report import ArmStatus

ROBOT = load_robot('planar_3r')
SMALL = SimulatedFleet(0, CHANGES, arms=12, recordings=8)


@pytest.fixture(scope='module')
def small() -> Fleet:
    """Return what is found about a small fleet."""
    return analysed(SMALL, torque_model(ROBOT))


def test_fleet_findings_match_the_changes_of_a_small_fleet(small: Fleet) -> None:
    changed = SMALL.changed
    right = {one.arm for one in small.findings if is_true(one, changed.get(one.arm))}
    assert len(right) >= 3
    assert len({one.arm for one in small.findings} - set(changed)) <= 1
    kinds = {one.characteristic.kind for one in small.findings if is_true(
        one, changed.get(one.arm))}
    assert 'friction' in kinds  # what viscous and dry friction add up to is right, too
    [load] = [one for one in small.findings if one.characteristic.kind == 'load']
    assert abs(load.size - 0.5) < load.half_interval < 0.1
    assert load.cause == 'payload or tool left on'
    assert load.since == 4 * 86400.0 and load.pattern == 'step'


def test_a_fleet_without_changes_is_left_alone() -> None:
    same = analysed(replace(SMALL, changes=(), seed=1, arms=10, recordings=6), torque_model(ROBOT))
    assert not same.findings
    assert len(same.watched) <= 5


def test_arms_lean_on_the_fleet_where_they_know_little(small: Fleet) -> None:
    names = [one.name for one in small.characteristics.all]
    for name in ('viscous_2', 'dry_2', 'mx3'):
        k = names.index(name)
        levels = small.spread[k]
        assert levels is not None
        for arm in small.arms:
            own, pooled = arm.deviations[k], np.sqrt(arm.covariance[k, k])
            assert pooled < own * (1.0 + 1e-9)
    few = judged(small.characteristics, {
        arm.name: arm.sessions[:1 if arm.name == 'arm-009' else None] for arm in small.arms})
    k = names.index('dry_2')
    shares = {arm.name: np.sqrt(arm.covariance[k, k]) / arm.deviations[k] for arm in few.arms}
    assert shares['arm-009'] == min(shares.values())
    levels, [arm] = few.spread[k], [arm for arm in few.arms if arm.name == 'arm-009']
    assert levels is not None
    both = 1.0 / arm.deviations[k]**2 + 1.0 / (levels.spread**2 + levels.error**2)
    # other characteristics, which are correlated with it, tell a little more
    assert np.sqrt(arm.covariance[k, k]) == pytest.approx(both**-0.5, rel=0.05)


def with_friction(fleet: Fleet, more: FloatArray) -> Fleet:
    """Return a fleet with other friction: ``more`` (R, S, 3) viscous, of arm, session and axis."""
    viscous = [i for i, one in enumerate(fleet.characteristics.all) if one.kind == 'viscous']

    def changed(reading: Reading, own: FloatArray) -> Reading:
        values = reading.values.copy()
        values[viscous] += own
        return replace(reading, values=values)

    return judged(fleet.characteristics, {arm.name: tuple(
        replace(session, reading=changed(session.reading, own),
                apart=changed(session.apart, own))
        for session, own in zip(arm.sessions, rows, strict=True))
        for arm, rows in zip(fleet.arms, more, strict=True)})


def test_a_season_of_all_arms_is_no_scatter(small: Fleet) -> None:
    season = 0.5 * np.sin(np.arange(8.0) / 2.5)
    plain = with_friction(small, np.zeros((12, 8, 3)))
    found = with_friction(small, np.broadcast_to(season[:, None], (12, 8, 3)))
    spreads = [[usual.spread for one, usual in zip(fleet.characteristics.all, fleet.usual)
                if one.kind == 'viscous'] for fleet in (found, plain)]
    np.testing.assert_allclose(*spreads,
                               rtol=0.0, atol=0.005)  # medians in turns end a little apart


def test_changes_are_as_likely_as_the_bulk_says(
    small: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        'robot_dynid_extras.fleet.fleet.by_chance', lambda chances: ByChance(1e3, 2.0))
    found = with_friction(small, np.zeros((12, 8, 3)))
    assert not [one for one in (*found.findings, *found.watched)
                if one.pattern != OUTLIER and one.probability > 0.0]


def test_of_two_tests_of_one_claim_the_stronger_counts_twice(
    small: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(pattern: str, probability: float) -> Evidence:
        return Evidence(pattern, 1.0, 0.1, 10.0, probability)

    monkeypatch.setattr('robot_dynid_extras.fleet.fleet.by_chance', lambda chances: ByChance())
    monkeypatch.setattr('robot_dynid_extras.fleet.fleet.change', lambda *_: said(STEP, 0.01))
    monkeypatch.setattr('robot_dynid_extras.fleet.fleet.outliers', lambda values, *_: [
        said(OUTLIER, 0.03)] * len(values))
    found = with_friction(small, np.zeros((12, 8, 3))).findings
    assert {(one.pattern, one.probability) for one in found} == {(STEP, 0.02)}


def test_readings_are_base_parameters(small: Fleet) -> None:
    """With nothing off, characteristics are zero where they are shares, and give the fit back."""
    model = torque_model(ROBOT)
    whole = [one.information for one in simulated(replace(SMALL, changes=(), arms=1), model)]
    own = Characteristics.of(model, whole[0])
    reading = own.reading(whole[0])
    again = own.base(reading.values[:own.own])
    links = [i for i, name in enumerate(model.reduction.names) if name[0] in 'mI']
    np.testing.assert_allclose(again[links], own.reference[links], rtol=1e-6, atol=1e-9)
    shares = [one.relative for one in own.all]
    np.testing.assert_allclose(reading.values[shares], 0.0, rtol=0.0, atol=1e-9)


def test_every_kind_has_causes(small: Fleet) -> None:
    kinds = {one.kind for one in small.characteristics.all}
    assert kinds <= set(CAUSES)
    assert cause('stiffness', -0.2).startswith('worn')


def test_the_benchmark_counts_what_is_wrong(small: Fleet) -> None:
    score, none = Score(), Score()
    score.add(SMALL, small)
    none.add(replace(SMALL, changes=()), small)  # all of it wrong
    table = {row['what']: row for row in rows(NORMAL, score, none, 0.05)}
    assert table['changed arms found, with what changed']['of'] == 5
    assert not table['fleets without changes in which an arm is named']['kept']


def write_fleet(folder: Path) -> None:
    """Write recordings of four arms on four days, the first with more friction in the end."""
    for arm in range(4):
        (folder / f'SN{arm}').mkdir(parents=True)
        for day in range(4):
            log = recording(ROBOT, 10 * arm + day, 8.0)
            assert log.effort is not None and log.velocity is not None
            more = np.array([0.0, 1.5, 0.0]) * (arm == 0 and day > 1)
            log = replace(log, effort=log.effort + more * np.clip(log.velocity / 0.02, -1, 1))
            write_csv(folder / f'SN{arm}' / f'2026-03-0{day + 1}.csv', log)


def test_the_command_finds_a_changed_arm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fleet(tmp_path / 'fleet')
    published: list[ArmStatus] = []
    monkeypatch.setattr(command, 'publisher', lambda: published.extend)  # nobody listens
    last = tmp_path / 'fleet' / 'SN3' / '2026-03-04.csv'
    with gzip.open(last.with_name('z.csv.gz'), 'wb') as file:  # the same in another file
        file.write(last.read_bytes())
    recipe, page, out = (str(tmp_path / name) for name in ('r.yaml', 'f.html', 'models'))
    Path(recipe).write_text('{cutoff: 12.0, friction: coulomb, ramp_width: 0.02, effort_lag: 0.0, '
                            'ripple: none, adaptation: none}')
    words = ['--robot', 'planar_3r', '--recipe', recipe, '--information', str(tmp_path / 'kept')]
    options = ['--rate', '0.1', '--report', page, '--json']
    assert main(['fleet', f'{tmp_path}/fleet/*', *words, *options, '--workers', '2',
                 '--diagnostics']) == 0
    printed = capsys.readouterr()
    parallel = json.loads(printed.out)
    assert 'nobody who listens' in printed.err
    assert [one.arm for one in published] == ['SN0', 'SN1', 'SN2', 'SN3']
    assert [one['level'] for one in parallel['diagnostics']] == [
        'warn' if one.changed else 'ok' for one in published]
    named = {one['arm'] for one in parallel['findings']}
    assert {one.arm for one in published if one.changed} == named
    files = tmp_path / 'list.txt'
    files.write_text('fleet/SN[0-3]/*.csv*\nfleet/SN0/2026-03-01.csv\n')
    assert main(['fleet', f'@{files}', *words, *options, '--out', out]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result['findings'] == parallel['findings']
    assert result['diagnostics'] == parallel['diagnostics']
    assert result['spread'] == parallel['spread']
    [copy] = result['left_out'].values()
    assert 'is a copy of' in copy
    best = min(result['findings'], key=lambda one: one['probability'])
    assert best['arm'] == 'SN0', result['findings']
    assert best['part'] == 'joint_2' and best['since'] == '2026-03-03' and best['size'] > 0.1
    assert best['kind'] in ('dry', 'friction')
    first = result['diagnostics'][0]
    assert first['name'] == first['hardware_id'] == 'SN0'
    what = f'{best["part"]}: {best["words"]}'
    assert f'{what} +' in first['message']
    assert first['values'][what].startswith('step since 2026-03-03, +')
    assert first['values']['last session'] == '2026-03-04'
    days = {one['day']: one['value'] for one in best['by_session']}
    assert list(days) == [f'2026-03-0{k}' for k in (1, 2, 3, 4)]
    assert min(days['2026-03-03'], days['2026-03-04']) > 0.1 + max(
        days['2026-03-01'], days['2026-03-02'])
    assert all(0.0 < one['half_interval'] < 1.0 for one in best['by_session'])
    assert result['sessions'] == 16 and result['rate'] == 0.1
    model = IdentifiedModel.load(result['arms']['SN0']['model'])
    other = IdentifiedModel.load(result['arms']['SN1']['model'])
    place = model.names.index('fc2')
    assert model.values[place] - other.values[place] == pytest.approx(1.5, rel=0.2)
    assert any('pooled' in text for text in model.warnings)
    assert 'SN0' in Path(page).read_text()
    assert main(['fleet', str(files), *words, '--rate', '2']) == 2
    assert main(['fleet', str(files), *words, '--workers', '2', '--scheduler', 'tcp://h:1']) == 2
    assert 'give one of them' in capsys.readouterr().err
    Path(recipe).write_text('windows: {a.csv: [[0, 1]]}')
    assert main(['fleet', str(files), *words]) == 2
    assert 'name those of a fleet' in capsys.readouterr().err


def test_without_ros_there_are_no_diagnostics(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reached = ('robot_dynid.ros', 'robot_dynid_extras.fleet.statuses')
    for name in [name for name in sys.modules if name.startswith(reached)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, 'rclpy', None)
    assert main(['fleet', 'recordings', '--robot', 'planar_3r', '--diagnostics']) == 1
    assert 'this needs ROS 2, and rclpy cannot be imported' in capsys.readouterr().err


@pytest.mark.parametrize(('name', 'date'), [
    ('20_02_19_14harm50sec.csv.gz', '2020-02-19T00:00:00'), ('p10.csv', None),
    ('run_2024-06-25T14-30-05.csv', '2024-06-25T14:30:05'), ('joint_1.csv', None),
    ('rosbag2_2024_06_25-14_30_05', '2024-06-25T14:30:05'), ('x_99_99_99.csv', None)])
def test_dates_in_names(name: str, date: str | None) -> None:
    found = time_in_name(name)
    assert (found and datetime.fromtimestamp(found, timezone.utc).isoformat()) == (
        date and f'{date}+00:00')


def test_lists_say_which_robot_and_when(tmp_path: Path) -> None:
    file = tmp_path / 'list.csv'
    file.write_text('path,robot,time\na.csv,SN1,2024-06-25T12:00\nb.csv,SN2,\n')
    first, second = fleet_recordings([str(file)])
    assert (first.arm, first.source) == ('SN1', str(tmp_path / 'a.csv'))
    assert first.time == 1719316800.0 and second.time is None
    file.write_text('path,robot,time\na.csv,SN1,2024-06-25T14:00+02:00\nb.csv,,\n')
    with pytest.raises(UsageError, match=r'list\.csv, entry 2: does not say which robot'):
        fleet_recordings([str(file)])
    file.write_text('path,robot,time\na.csv,SN1,2024-06-25T14:00+02:00\n')
    assert fleet_recordings([str(file)])[0].time == 1719316800.0
    other = tmp_path / 'list.yaml'
    other.write_text('- {path: a.csv, robot: 7, time: 5}\n')
    assert fleet_recordings([str(other)])[0].arm == '7'
    bag = tmp_path / 'bag'
    bag.mkdir()
    (bag / 'metadata.yaml').write_text(
        'rosbag2_bagfile_information: {custom_data: {serial_number: "0042"}}\n')
    assert serial_of(bag) == '0042'


def test_words_name_the_recordings_of_robots(tmp_path: Path) -> None:
    for name in ('SN1/march/a.csv', 'SN1/b.csv', 'SN2/run/metadata.yaml', 'SN3/c.mcap',
                 'x/no.txt'):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('time\n')

    def named(*words: str) -> list[tuple[str, str]]:
        return [(one.arm, Path(one.source).name)
                for one in fleet_recordings([f'{tmp_path}{word}' for word in words])]

    every = [('SN1', 'b.csv'), ('SN1', 'a.csv'), ('SN2', 'run'), ('SN3', 'c.mcap')]
    assert named('') == named('/SN*') == every
    assert named('/SN1/b.csv', '/SN2/run') == [('SN1', 'b.csv'), ('SN2', 'run')]
    assert named('/*/?.csv') == [('SN1', 'b.csv')] and named('/SN3') == [('SN3', 'c.mcap')]
    files = tmp_path / 'files.txt'
    files.write_text('SN1/b.csv[0:2]\nSN3\n')
    assert [one.arm for one in fleet_recordings([f'@{files}'])] == ['SN1', 'SN3']
    (tmp_path / 'table.csv').write_text('path,robot\nSN1/b.csv,SN7\n')
    assert named('') == every and named('/table.csv') == [('SN7', 'b.csv')]
    (tmp_path / 'stray.csv').write_text('time\n')
    with pytest.raises(UsageError, match='which one is it of'):
        named('')


def test_fleet_holds_one_arm_in_memory_at_a_time() -> None:
    model = torque_model(ROBOT)
    many = simulated(replace(SMALL, changes=(), arms=6, recordings=3), model)
    alive: weakref.WeakSet[ReducedRecording] = weakref.WeakSet()
    most = 0

    class Kept:
        def __iter__(self) -> Iterator[ReducedRecording]:
            nonlocal most
            for one in many:
                again = replace(one, information=replace(one.information))
                alive.add(again)
                most = max(most, len(alive))
                yield again

    found = fleet(model, Kept())
    assert len(found.arms) == 6 and most <= 3 + 2  # and the first one of the next arm
    with pytest.raises(UsageError, match='in a row'):
        fleet(model, [*many, many[0]])


@pytest.mark.parametrize(('text', 'message'), [
    ('path,robot,time\n', 'no recordings'), ('path,robot\na.csv,\n', 'which robot'),
    ('path,robot,time\na.csv,1,soon\n', 'neither a date'), ('robot\n1\n', 'has no path')])
def test_a_list_that_says_too_little_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / 'list.csv'
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        fleet_recordings([str(file)])
    with pytest.raises(UsageError, match='no recordings of robots'):
        fleet_recordings([str(tmp_path)])


def test_a_recording_without_a_date_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'SN1').mkdir()
    write_csv(tmp_path / 'SN1' / 'run.csv', recording(ROBOT, 0, 8.0))
    recipe = tmp_path / 'r.yaml'
    recipe.write_text('{cutoff: 12.0, friction: coulomb, ramp_width: 0.02, effort_lag: 0.0}')
    assert main(['fleet', str(tmp_path), '--robot', 'planar_3r', '--recipe', str(recipe)]) == 2
    assert 'when was it recorded?' in capsys.readouterr().err


@pytest.mark.soak
def test_power_and_false_alarms_of_many_fleets() -> None:
    found = measure(lambda *_: None)
    assert all(row['kept'] is not False for row in found), found
    power = [row['share'] for row in found if row['what'].startswith('changed arms found')]
    assert power[0] > 0.95 and min(power) > 0.8


@pytest.mark.soak
def test_the_change_of_joint_1_of_the_ur10e_is_watched_not_named(
    ur10e_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/fleet.md: six days do not tell it from chance: January is one that knows little."""
    files = sorted([*ur10e_data.glob('train/*.csv.gz'), *ur10e_data.glob('test/*.csv.gz')])
    table = tmp_path / 'table.csv'
    table.write_text('path,robot,time\n' + ''.join(f'{file},ur10e,\n' for file in files))
    assert main(['fleet', str(table), '--robot', 'ur10e', '--json']) == 0
    result = json.loads(capsys.readouterr().out)
    assert result['sessions'] == 6 and not result['findings']
    trust.keep('months', {'rows': [
        {**one, 'sessions_needed': str(one['sessions_needed'] or f'> {MOST_SESSIONS}'),
         'named': 'no'} for one in result['watched']]}, result['seconds'])
    own = {one['characteristic']: one for one in result['watched']}['viscous_1']
    assert own['pattern'] == 'trend'
    assert -0.5 < own['size'] < -0.2 and 0.001 < own['probability'] < 0.02
    assert own['sessions_needed'] == 6
    january, *february = own['by_session']
    assert january['day'] == '2020-01-17' and january['value'] > 0.2
    low = january['value'] - january['half_interval']
    assert all(one['value'] + one['half_interval'] > low for one in february[:-1])
    assert {one['characteristic'] for one in result['watched']} >= {'Izz2'}


def test_choosing_does_not_depend_on_the_order_of_recordings() -> None:
    listed = [ArmRecording(f'{name}.csv', 'one', None, 0.0) for name in 'abcdefg']
    assert [one.source for one in choosing(listed)] == [f'{name}.csv' for name in 'abcdeg']
    assert choosing(listed[::-1]) == choosing(listed)
