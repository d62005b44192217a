"""cli/design.py: `robot-dynid design` for all types, with options as text and file."""

import argparse
import json
import re
from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest
import yaml
from identified_models import nominal_model
from tolerances import PLANNED_EFFORT

from robot_dynid.cli.design import add_arguments
from robot_dynid.cli.files import with_text
from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.errors import UsageError
from robot_dynid.excitation import design, design_criteria
from robot_dynid.excitation.design import DesignCriteria, SessionOver, repeated_share
from robot_dynid.excitation.families import FAMILIES
from robot_dynid.io.trajectory_file import load_motion, load_trajectory
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.composite import dwells, plateaus

ROBOT = 'planar_3r'
#: a Fourier series that takes a moment
SHORT = ('--seed', 1, '--starts', 1, '--duration', 6, '--harmonics', 3)
COMPOSITE = {'segments': [{'type': 'bspline', 'duration': 6, 'starts': 1},
                          {'type': 'static-poses', 'poses': 4, 'dwell': 0.2}]}


@pytest.fixture
def designed(capsys, tmp_path):
    def run(*words):
        path = tmp_path / 'T.yaml'
        assert main(['design', ROBOT, *map(str, words), '--out', str(path), '--json']) == 0
        return json.loads(capsys.readouterr().out), load_trajectory(path)

    return run


@pytest.mark.parametrize(('kind', 'options'), [
    ('bspline', {'knots': 6, 'duration': 6.0, 'starts': 1}),
    ('constant-velocity', {'speeds': 2, 'joints': ['joint_2']}),
    ('static-poses', {'poses': 4, 'dwell': 0.2}), ('composite', COMPOSITE)])
def test_every_type_is_designed_and_written(designed, kind, options):
    found, trajectory = designed('--type', kind, '--options', json.dumps(options))
    assert found['type'] == kind and found['duration'] == trajectory.duration
    assert all(0.0 < max(used.values()) <= 0.9 for used in found['limits'].values())
    assert found['condition_number'] > 1.0
    kinds = {one['type'] for one in found['elements']}
    assert kinds == {'bspline': {'bspline'}, 'constant-velocity': {'sweep'},
                     'static-poses': {'pose'}, 'composite': {'bspline', 'pose'}}[kind]
    if kind == 'constant-velocity':
        assert {p.joint for p in plateaus(trajectory)} == {'joint_2'}
    if kind in ('static-poses', 'composite'):
        assert len(list(dwells(trajectory))) == 8


def test_help_names_every_type():
    wanted = argparse.ArgumentParser()
    add_arguments(wanted)
    [text] = [action.help for action in wanted._actions if action.dest == 'type']
    names = text.replace(' (default)', '').removeprefix('one of ')
    assert re.split(r', | and ', names) == list(FAMILIES)


def test_points_are_checked_at_a_hundred_hertz_unless_told():
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args([ROBOT, '--out', 'T.yaml']).rate == 100.0


def test_a_file_of_options_and_flags_go_together(designed, tmp_path):
    path = tmp_path / 'options.yaml'
    path.write_text(yaml.safe_dump({'poses': 4, 'dwell': 0.2}))
    found, _ = designed('--type', 'static-poses', '--options', path, '--seed', 3)
    assert found['stages'][0]['swings'] == 4


@pytest.mark.parametrize(('text', 'words'), [
    ('[1, 2]', 'must be a mapping'), ('{', 'not valid YAML'),
    ('nowhere.yaml', 'nowhere.yaml: cannot'),
    ('{seed: 3}', "'seed' is given as --seed and in --options")])
def test_wrong_options_are_explained(text, words):
    with pytest.raises(UsageError, match=words):
        with_text({'seed': 1}, text)


def test_design_writes_a_validation_motion_beside_the_plan(designed, tmp_path):
    found, trajectory = designed(*SHORT, '--report', tmp_path / 'plan.html')
    judge, purpose = load_motion(tmp_path / 'T_validation.yaml')
    assert (purpose, load_motion(tmp_path / 'T.yaml')[1]) == ('validation', 'fit')
    assert not repeated_share(trajectory, judge) and judge.duration != trajectory.duration
    told = found['validation']
    assert told['out'] == str(tmp_path / 'T_validation.yaml')
    assert told['duration'] == judge.duration and told['chapters']
    assert all(0.0 < max(used.values()) <= 0.9 for used in told['limits'].values())
    assert told['report'] == str(tmp_path / 'plan_validation.html')
    assert (tmp_path / 'plan_validation.html').stat().st_size > 10_000


def test_without_another_motion_only_one_is_written(designed, tmp_path):
    words = '--options', '{validation: false}'
    assert designed(*SHORT, *words)[0]['validation'] is None
    assert [path.name for path in tmp_path.iterdir()] == ['T.yaml']


def test_a_motion_to_judge_by_is_designed_with_its_purpose(designed, tmp_path):
    assert designed(*SHORT, '--options', '{purpose: validation}')[0]['validation'] is None
    assert load_motion(tmp_path / 'T.yaml')[1] == 'validation'


def test_design_refuses_to_overwrite_a_validation_file(tmp_path, capsys):
    (tmp_path / 'T_validation.yaml').write_text('mine')
    words = ['design', ROBOT, *map(str, SHORT), '--out', str(tmp_path / 'T.yaml')]
    assert main(words) == 2
    assert 'T_validation.yaml' in capsys.readouterr().err and not (tmp_path / 'T.yaml').exists()


def test_periods_repeat_the_motion(designed):
    found, trajectory = designed(*SHORT, '--periods', 2)
    time = np.linspace(0.5, 2.0, 7)  # the ends move off and stop
    here, later = (trajectory.sample(time + delay).position for delay in (0.0, 3.0))
    assert found['duration'] == 6.0 and np.ptp(here, axis=0).min() > 0.1
    np.testing.assert_allclose(later, here, rtol=0.0, atol=1e-12)


def test_design_objectives_are_best_in_the_measure_of_their_name(designed):
    found = {name: designed(*SHORT, '--objective', name)[0] for name in ('condition', 'log-det')}
    assert found['log-det']['log_det'] > found['condition']['log_det']
    assert found['log-det']['condition_number'] > found['condition']['condition_number']


def test_an_accuracy_out_of_reach_is_refused_with_the_time_it_takes(designed, tmp_path, capsys):
    reached = designed(*SHORT)[0]['largest_deviation']
    assert designed(*SHORT, '--accuracy', 1.01 * reached)[0]['largest_deviation'] == reached
    words = ['design', ROBOT, *map(str, SHORT), '--accuracy', str(0.5 * reached)]
    assert main([*words, '--out', str(tmp_path / 'T.yaml')]) == 1
    assert 'ask for 4 periods of 6 s' in capsys.readouterr().err


def test_efforts_are_those_of_the_identified_model(designed, tmp_path):
    model = nominal_model(ROBOT, rotors=0.0)
    replace(model, values=4.0 * model.values).save(tmp_path / 'heavy.yaml')
    for words, factor in (((), 1.0), (('--model', tmp_path / 'heavy.yaml'), 4.0)):
        found, trajectory = designed(*SHORT, *words)
        motion = trajectory.sample(np.linspace(0.0, 6.0, 2000))
        effort = inverse_dynamics(model.robot, motion.position, motion.velocity,
                                  motion.acceleration, factor * model.robot.nominal)
        used = np.abs(effort).max(axis=0) / model.robot.limits.effort
        assert [joint['effort'] for joint in found['limits'].values()] == pytest.approx(
            used, rel=PLANNED_EFFORT)


def test_a_rate_that_leaves_the_limits_is_refused(designed, tmp_path, capsys):
    whole = (*SHORT, '--scale', 1)
    designed(*whole, '--rate', 50)
    words = ['design', ROBOT, *map(str, whole), '--rate', '1', '--out', str(tmp_path / 'T.yaml')]
    assert main(words) == 1
    assert 'a higher --rate or a smaller --scale helps' in capsys.readouterr().err


def test_the_procedure_decides_the_stages_of_a_sine_sequence(designed):
    words = ('--type', 'sine-sequence', '--configurations', 1, '--periods', 1)
    found = designed(*words, '--procedure', 'body-by-body')[0]
    stages = found['stages']
    assert {one['type'] for one in found['elements']} == {'sine'}
    assert [stage['name'] for stage in stages] == [
        'joint_3', 'body joint_3', 'joint_2', 'body joint_2', 'joint_1']


def test_sweeps_go_through_as_many_configurations_as_asked_for(designed):
    words = ('--type', 'constant-velocity', '--options', '{speeds: 2, joints: [joint_2]}')
    for count in (1, 3):
        assert len(list(plateaus(designed(*words, '--configurations', count)[1]))) == 4 * count


def test_the_report_shows_the_plan(designed, tmp_path):
    found, _ = designed(*SHORT, '--report', tmp_path / 'plan.html')
    text = (tmp_path / 'plan.html').read_text('utf-8')
    assert found['report'] == str(tmp_path / 'plan.html')
    assert 'id="plotly"' in text and 'joint_3' in text


def test_an_adaptive_sequence_goes_on_from_what_was_measured(designed, tmp_path, capsys):
    """The first plan, its recording, the next plan; until nothing more is to be recorded."""
    adaptive = ('--type', 'sine-sequence', '--adaptive')
    found, trajectory = designed(*adaptive, '--accuracy', 0.5, '--swings', 2)
    rows = found['session']['swings']
    assert len(rows) == 2 and not found['session']['met']
    assert set(rows[0]['locked']) | {rows[0]['moving']} == set(found['limits'])
    later = found['session']['later']
    assert f'; {len(later)} more swings, ' in found['session']['outlook'] and later
    robot, time = load_robot(ROBOT), np.arange(0.0, trajectory.duration, 0.01)
    motion = trajectory.sample(time)
    effort = inverse_dynamics(robot, motion.position, motion.velocity, motion.acceleration,
                              robot.nominal)
    effort += 0.2 * np.sign(motion.velocity)
    effort += 0.02 * np.random.default_rng(0).standard_normal(effort.shape)
    data = tmp_path / 'run.csv'
    header = ['time', *(f'{name}.{j}' for name in ('position', 'effort') for j in robot.joints)]
    np.savetxt(data, np.column_stack([time, motion.position, effort]), delimiter=',',
               header=','.join(header), comments='', fmt='%.9g')
    again, _ = designed(*adaptive, '--accuracy', 0.5, '--data', data)
    assert again['session']['met']
    assert again['session']['outlook'] == 'the accuracy 0.5 is met then'
    fresh, _ = designed(*adaptive, '--accuracy', 0.5)
    assert again['duration'] < fresh['duration']
    out = tmp_path / 'none.yaml'
    words = ['design', ROBOT, *adaptive, '--data', data, '--accuracy', 900000, '--out', out]
    assert main([str(word) for word in words]) == 0
    assert 'no further recording is needed' in ' '.join(capsys.readouterr().out.split())
    assert not out.exists()


def test_a_session_that_is_over_writes_nothing(tmp_path, capsys, monkeypatch):
    """Where the accuracy is met; one out of reach is an error. Efforts are those of the model."""
    model, taken = nominal_model(ROBOT, rotors=0.0), []
    model = replace(model, values=4.0 * model.values)
    model.save(tmp_path / 'heavy.yaml')
    over = [SessionOver('it is met', ('Izz1', 0.0812)),
            SessionOver('it is met', ('Izz1', 0.0812)),
            SessionOver('fv2 is out of reach', ('fv2', 0.5), ('fv2',))]

    def criteria(robot, progress, elapsed, links):
        taken.append((links, elapsed()))
        return DesignCriteria()

    def pair(*_):
        raise over.pop(0)

    monkeypatch.setattr(design_criteria, 'design_criteria', criteria)
    monkeypatch.setattr(design, 'design_pair', pair)
    out = tmp_path / 'T.yaml'
    words = ['design', ROBOT, '--type', 'sine-sequence', '--adaptive', '--accuracy', '0.125',
             '--out', str(out)]
    started = perf_counter()
    assert main([*words, '--model', str(tmp_path / 'heavy.yaml'), '--json']) == 0
    passed = perf_counter() - started
    found = json.loads(capsys.readouterr().out)
    assert 0.0 <= found['seconds'] < passed and not out.exists()
    assert (found['least_known'], found['largest_deviation']) == ('Izz1', 0.0812)
    assert found['session']['met'] and found['session']['accuracy'] == 0.125
    assert found['robot'] == ROBOT and found['type'] == 'sine-sequence' and found['out'] is None
    assert main(words) == 0
    said = ' '.join(capsys.readouterr().out.split())
    assert said == ('the accuracy 12.5 % is met: Izz1, deviation 8.1 %; no further recording is '
                    'needed')
    assert main(words) == 1
    assert 'fv2 is out of reach' in capsys.readouterr().err
    (links, elapsed), (nominal, _), _ = taken
    assert 0.0 <= elapsed < passed and nominal is None and links.shape == (3, 10)
    motion = np.random.default_rng(0).normal(size=(3, 5, 3))
    np.testing.assert_allclose(inverse_dynamics(model.robot, *motion, links), 4.0 * (
        inverse_dynamics(model.robot, *motion, model.robot.nominal)), rtol=0.0, atol=1e-9)


def test_an_accuracy_that_no_swing_gives_in_time_is_refused(tmp_path, capsys):
    words = ['design', ROBOT, '--type', 'sine-sequence', '--adaptive', '--accuracy', '1e-5',
             '--longest', '5', '--out', str(tmp_path / 'T.yaml')]
    assert main(words) == 1
    assert 'out of reach' in (error := ' '.join(capsys.readouterr().err.split()))
    assert 'of swings, 5 s are allowed' in error


@pytest.mark.parametrize(('words', 'message'), [
    (('--data', 'run.csv'), '--data is for adaptive sine sequences only: omit it, or add'),
    (('--type', 'sine-sequence', '--adaptive', '--procedure', 'body-by-body'),
     '--adaptive excludes --procedure body-by-body')])
def test_options_of_a_session_that_contradict_are_named(words, message, tmp_path, capsys):
    assert main(['design', ROBOT, *words, '--out', str(tmp_path / 'T.yaml')]) == 2
    assert message in ' '.join(capsys.readouterr().err.split())
