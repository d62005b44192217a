"""cli/main.py: the command line: every verb, what it prints where, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from identified_models import nominal_model
from recordings import write_recording

from robot_dynid.cli import base
from robot_dynid.cli.main import VERBS, as_json, main
from robot_dynid.cli.terminal import MOST_LINES
from robot_dynid.errors import DataError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.trajectory_file import load_trajectory, save_trajectory
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import distance, load_truth, true_base
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid_evaluation import bench

ROBOT = 'planar_3r'
Capture = pytest.CaptureFixture[str]
Run = Callable[..., Any]


@dataclass(frozen=True)
class Stage:
    """Files of one identification."""

    folder: Path
    train: Path
    test: Path
    model: Path


@pytest.fixture(scope='module')
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Two recordings and the model identified from the first."""
    folder = tmp_path_factory.mktemp('cli')
    robot = load_robot(ROBOT)
    train, test = (write_recording(folder, name, robot, seed)
                   for name, seed in (('train', 1), ('test', 2)))
    model = folder / 'model.yaml'
    assert main(['identify', str(train), '--robot', ROBOT, '--out', str(model), '--json']) == 0
    return Stage(folder, train, test, model)


@pytest.fixture
def run(capsys: Capture) -> Run:
    """Run a command with --json and return its object; nothing else may be on stdout."""
    def call(*words: object, code: int = 0) -> Any:
        capsys.readouterr()
        assert main([*(str(word) for word in words), '--json']) == code
        out = capsys.readouterr().out
        assert out.count('\n') == 1
        return json.loads(out)

    return call


def test_base_counts_and_names_parameters(run: Run, capsys: Capture) -> None:
    found = run('base', ROBOT)
    assert found['joints'] == ['joint_1', 'joint_2', 'joint_3']
    assert (found['standard'], found['base']) == (30, 9)
    assert len(found['kept']) == len(found['labels']) == 9
    assert all(label.startswith(name) for name, label in zip(found['kept'], found['labels']))
    assert run('base', ROBOT, '--rotor-inertia', '--friction')['base'] == 9 + 2 + 9
    analytic = run('base', ROBOT, '--method', 'analytic')
    assert [analytic[key] for key in ('kept', 'labels')] == [found['kept'], found['labels']]
    assert found['gap'] > 1e6 and analytic['gap'] is None
    assert main(['base', ROBOT]) == 0
    assert '9 base parameters' in capsys.readouterr().out
    composite = run('base', ROBOT, '--method', 'composite')
    assert [composite[key] for key in ('base', 'kept')] == [9, found['kept']]
    constants = {one['name']: one for one in composite['constants']}
    assert constants['(k2)x'] == {
        'name': '(k2)x', 'body': 'joint_2', 'combination': 'mx2 + 0.36*m3',
        'nominal': pytest.approx(1.28, abs=1e-4), 'coefficients': {'mx2': 1.0, 'm3': 0.36}}
    assert main(['base', ROBOT, '--method', 'composite']) == 0
    assert 'Izz2 + 0.1296*m3 + Izz3' in capsys.readouterr().out


def test_design_writes_a_trajectory_within_limits(run: Run, tmp_path: Path) -> None:
    path = tmp_path / 'trajectory.yaml'
    found = run('design', ROBOT, '--duration', 8, '--harmonics', 4, '--seed', 3, '--starts', 2,
                '--iterations', 50, '--time-limit', 600, '--scale', 0.8, '--out', path)
    assert {'condition_number', 'log_det', 'duration', 'limits', 'seconds'} <= set(found)
    assert found['duration'] == load_trajectory(path).duration == 8.0
    for used in found['limits'].values():
        assert {'position', 'velocity', 'acceleration'} <= set(used)
        assert 0.0 < max(used.values()) <= 0.8
    again = run('design', ROBOT, '--duration', 8, '--harmonics', 4, '--seed', 3, '--starts', 2,
                '--iterations', 50, '--time-limit', 600, '--scale', 0.8, '--out', path)
    assert again['condition_number'] == found['condition_number']


def test_identify_finds_the_truth(run: Run, stage: Stage) -> None:
    report = stage.folder / 'report.html'
    found = run('identify', stage.train, '--robot', ROBOT, '--out', stage.folder / 'again.yaml',
                '--report', report, '--method', 'ols')
    assert {'status', 'samples', 'base', 'condition_number', 'joints', 'parameters',
            'seconds'} <= set(found)
    assert set(found['expected']) == set(found['joints'])
    assert all(one['new_motion'] > one['left_out'] > 0.0 for one in found['expected'].values())
    assert found['status'] == 'ok'
    assert found['base'] == len(found['parameters'])
    assert report.stat().st_size > 1_000_000
    for score in found['joints'].values():
        assert score['nrmse'] < 0.2
        assert score['control']['rmse'] > 0.0
    robot = load_robot(ROBOT)
    model = IdentifiedModel.load(stage.model)
    true = true_base(robot, load_truth(robot), model.reduction)
    assert distance(model.values, true) < 0.05


def test_identify_obeys_the_recipe(run: Run, stage: Stage) -> None:
    recipe = stage.folder / 'recipe.yaml'
    recipe.write_text('cutoff: 7.5\nrotor_inertia: false\n')
    found = run('identify', stage.train, '--robot', ROBOT, '--recipe', recipe,
                '--out', stage.folder / 'recipe_model.yaml')
    assert found['preprocessing']['cutoff'] == 7.5
    assert not [p['name'] for p in found['parameters'] if p['name'].startswith('Ia')]


def test_identify_and_validate_print_tables_without_json(
    stage: Stage, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('COLUMNS', '160')  # a narrow terminal breaks the heads of columns
    model = stage.folder / 'people.yaml'
    words = ['identify', str(stage.train), '--robot', ROBOT, '--out', str(model)]
    assert main(words) == 0
    assert len(capsys.readouterr().out.splitlines()) <= MOST_LINES
    assert main([*words, '--verbose']) == 0
    out = capsys.readouterr().out
    for name in ('base parameters', 'joint_3', 'baseline [%]', 'low-pass', 'condition',
                 'independent'):
        assert name in out
    assert main(['validate', str(model), str(stage.test)]) == 0
    assert len(capsys.readouterr().out.splitlines()) <= MOST_LINES
    assert main(['validate', str(model), str(stage.test), '--verbose']) == 0
    assert 'reversals' in capsys.readouterr().out


def test_validate_scores_every_joint(run: Run, stage: Stage) -> None:
    found = run('validate', stage.model, stage.test, '--report', stage.folder / 'v.html',
                '--forward')
    assert list(found['joints']) == ['joint_1', 'joint_2', 'joint_3']
    for score in found['joints'].values():
        assert {'rmse', 'nrmse', 'relative_error', 'r2', 'quartiles', 'outliers', 'motion',
                'control'} <= set(score)
        assert len(score['quartiles']) == 3
        assert score['relative_error'] < 0.2
    page = (stage.folder / 'v.html').read_text()
    assert 'Forward dynamics' in page
    assert page.count('</h2>') == len(found['chapters']) == 6
    for chapter in found['chapters']:
        titles = {section['title'] for section in chapter['sections']} - {'', chapter['title']}
        assert all(f'<h3>{escape(title)}</h3>' in page for title in titles)
    assert f'robot-dynid validate {stage.model.name} {stage.test.name}' in page
    assert str(stage.folder) not in page
    for score in found['forward']['accelerations'].values():
        assert 0.0 < score['floor'] < score['rmse'] and score['relative_error'] < 0.5
        assert {'motion', 'near reversals', 'control'} <= set(score)
    for horizon in found['forward']['rollouts']:
        for errors in horizon['joints'].values():
            assert errors['model']['position'] < errors['constant_velocity']['position']


def plan_of(robot: RobotModel, folder: Path) -> Path:
    """Return the file of a random motion of a robot."""
    save_trajectory(random_fourier(motion_limits(robot), FourierOptions(duration=8.0),
                                   np.random.default_rng(3)), folder / 'T.yaml')
    return folder / 'T.yaml'


def test_validate_states_the_error_to_expect_on_a_plan(
    run: Run, stage: Stage, capsys: Capture
) -> None:
    plan = plan_of(load_robot(ROBOT), stage.folder)
    page = stage.folder / 'plan.html'
    found = run('validate', stage.model, '--plan', plan, '--report', page)
    model = IdentifiedModel.load(stage.model)
    assert [one['joint'] for one in found['expected']] == list(model.joints)
    motion = load_trajectory(plan).sample(np.linspace(0.0, 8.0, 2000))
    effort = np.sqrt(np.mean(model.inverse(
        motion.position, motion.velocity, motion.acceleration) ** 2, axis=0))
    for one, size in zip(found['expected'], effort, strict=True):
        assert 0.0 < one['low'] < one['rmse'] < one['high']
        assert one['effort'] == pytest.approx(size, rel=0.01)
    assert 'Error to expect on the plan' in page.read_text() and found['joints'] == {}
    beside = run('validate', stage.model, stage.test, '--plan', plan)
    assert beside['joints']['joint_1']['rmse'] == pytest.approx(
        run('validate', stage.model, stage.test)['joints']['joint_1']['rmse'])
    main(['validate', str(stage.model), str(stage.test), '--plan', str(plan)])
    lines = capsys.readouterr().out.splitlines()
    row = next(line.split() for line in lines if line.startswith('joint_2'))
    assert row[-1] == f"{beside['joints']['joint_2']['rmse']:.3g}"
    assert row[-2] == f"{100.0 * found['expected'][1]['rmse'] / effort[1]:.1f}"


def test_wrong_use_of_a_plan_is_named(stage: Stage, capsys: Capture) -> None:
    model, plan = str(stage.model), str(plan_of(load_robot('ur10e'), stage.folder))
    for words, told in (((), 'nothing to score the model on'),
                        (('--plan', plan), 'the joints of the model are joint_1'),
                        (('--plan', plan, '--forward'), 'omit --forward'),
                        (('--plan', plan, '--max-nrmse', '0.1'), 'omit --forward')):
        assert main(['validate', model, *words]) == 2
        assert told in capsys.readouterr().err


def test_validate_exits_with_one_above_the_largest_error_allowed(
    stage: Stage, capsys: Capture
) -> None:
    words = ['validate', str(stage.model), str(stage.test)]
    assert main([*words, '--json']) == 0
    error = json.loads(capsys.readouterr().out)['joints']['joint_2']['nrmse']
    for allowed, joints in (([f'{1.01 * error}', 'joint_1=9', 'joint_3=9'], []),
                            ([f'joint_2={0.99 * error}', '9'], ['joint_2'])):
        options = [word for text in allowed for word in ('--max-nrmse', text)]
        assert main([*words, *options, '--json']) == bool(joints)
        assert json.loads(capsys.readouterr().out)['above_max_nrmse'] == joints
    assert main([*words, '--max-nrmse', f'{0.5 * error}']) == 1
    assert f'joint_2 {error:.3f} (limit ' in capsys.readouterr().out
    for wrong, said in (('joint_9=1', "no joint 'joint_9'"), ('little', 'a share such as 0.2'),
                        ('-1', 'at least 0')):
        assert main([*words, f'--max-nrmse={wrong}']) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(('allowed', 'limits', 'above'), [
    ((), {}, []), (('0.2',), dict.fromkeys(('joint_1', 'joint_2', 'joint_3'), 0.2), ['joint_3']),
    (('joint_3=0.4', '0.1'), {'joint_1': 0.1, 'joint_2': 0.1, 'joint_3': 0.4}, ['joint_2']),
    (('joint_2=0.15', 'joint_3=0'), {'joint_2': 0.15, 'joint_3': 0.0}, ['joint_3'])])
def test_what_is_allowed_of_a_joint_comes_before_what_is_of_all(
    allowed: tuple[str, ...], limits: dict[str, float], above: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, run: Run, capsys: Capture,
) -> None:
    """Wherever it is said; an error as large as is allowed is."""
    scores = {'joint_1': {'nrmse': 0.05}, 'joint_2': {'nrmse': 0.15}, 'joint_3': {'nrmse': 0.3}}
    nothing = SimpleNamespace(plain=dict, traces=(), recordings=(1, 2), findings={}, rollout=None)
    nominal_model(ROBOT).save(tmp_path / 'M.yaml')
    for module, name in (('robot_dynid.validation.validate', 'validate'),
                         ('robot_dynid.validation.verdict', 'judged'),
                         ('robot_dynid.cli.validate', 'load_logs')):
        monkeypatch.setattr(f'{module}.{name}', lambda *_, **__: nothing)
    monkeypatch.setattr('robot_dynid.report.identification.validation_warnings', lambda *_: ())
    monkeypatch.setattr('robot_dynid.cli.validate.reported', lambda *_: ())
    monkeypatch.setattr('robot_dynid.cli.validate.joint_scores', lambda _: scores)
    words = ['validate', str(tmp_path / 'M.yaml'), 'x.csv', '--accept-partial',
             *(f'--max-nrmse={one}' for one in allowed)]
    started = perf_counter()
    found = run(*words, code=int(bool(above)))
    assert 0.0 <= found['seconds'] < perf_counter() - started
    assert (found['max_nrmse'], found['above_max_nrmse']) == (limits, above)
    assert found['ok'] is not bool(above) and found['files'] == 2 and found['joints'] == scores
    for wrong, said in (
            ('joint_9=1', "no joint 'joint_9'; it has joint_1, joint_2, joint_3"),
            ('little', 'must be a share such as 0.2, or joint_1=0.2'), ('-1', 'at least 0')):
        assert main([*words, f'--max-nrmse={wrong}']) == 2
        assert said in capsys.readouterr().err


def write_states(path: Path, **channels: Any) -> Path:
    columns = [f'{name}.joint_{i + 1}' for name in channels for i in range(3)]
    np.savetxt(path, np.hstack(list(channels.values())), delimiter=',', fmt='%.17g',
               header=','.join(columns), comments='')
    return path


def test_forward_and_inverse_are_inverses(run: Run, stage: Stage, capsys: Capture) -> None:
    q, qd, tau = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 5, 3))
    states = write_states(stage.folder / 'states.csv', position=q, velocity=qd, effort=tau)
    found = run('forward', stage.model, states)
    model = IdentifiedModel.load(stage.model)
    np.testing.assert_allclose(found['acceleration'], model.forward(q, qd, tau), rtol=1e-12)
    qdd = np.array(found['acceleration'])
    states = write_states(stage.folder / 'm.csv', position=q, velocity=qd, acceleration=qdd)
    np.testing.assert_allclose(run('inverse', stage.model, states)['effort'], tau, rtol=1e-9)
    assert main(['inverse', str(stage.model), str(states)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'effort.joint_1,effort.joint_2,effort.joint_3'
    np.testing.assert_allclose([[float(c) for c in line.split(',')] for line in lines[1:]], tau,
                               rtol=1e-9)
    out = stage.folder / 'out.csv'
    run('inverse', stage.model, states, '--out', out)
    assert out.read_text().splitlines() == lines


def test_benches_are_listed(run: Run) -> None:
    listed = list(run('bench', '--list')['benches'])
    assert listed == list(bench.BENCHES)
    modules = {path.stem for path in Path(bench.__file__).parent.glob('*.py')}
    assert set(listed) <= modules


@pytest.mark.parametrize(('words', 'code', 'message'), [
    ('', 2, 'no verb given'), ('nonsense', 2, 'nonsense'), ('base', 2, 'ROBOT'),
    ('base nobody', 2, 'nobody'), ('base planar_3r --method qr', 2, 'analytic'),
    ('base planar_3r --method analytic --friction', 2, 'numeric'),
    ('design planar_3r', 2, '--out'), ('design planar_3r --type sinus --out t.yaml', 2, 'fourier'),
    ('design planar_3r --scale 2 --out t.yaml', 2, 'scale'),
    ('design planar_3r --rate -1 --out t.yaml', 2, 'rate'),
    ('design planar_3r --out nowhere/t.yaml', 2, 'nowhere'),
    ('design planar_3r --harmonics many --out t.yaml', 2, 'many'),
    ('identify absent.csv --robot planar_3r --out m.yaml', 1, 'absent.csv'),
    ('identify bad.csv --robot planar_3r --out m.yaml', 1, 'bad.csv'),
    ('identify bad.xyz --robot planar_3r --out m.yaml', 2, 'bad.xyz'),
    ('identify bad.csv --robot planar_3r --out .', 2, 'folder'),
    ('identify bad.csv --robot planar_3r --out m.yaml --recipe absent.yaml', 2, 'absent.yaml'),
    ('validate bad.csv bad.csv', 1, 'bad.csv'), ('validate absent.yaml x.csv', 2, 'absent.yaml'),
    ('forward absent.yaml x.csv', 2, 'absent.yaml'), ('bench nothing', 2, 'regressor'),
    ('demo --robot nobody', 2, 'nobody'), ('demo --seed -1', 2, 'seed'),
])
def test_main_refuses_bad_arguments_and_files_in_one_line(
    words: str, code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'bad.csv').write_text('time,position.joint_1\n0,0\n')
    (tmp_path / 'bad.xyz').write_text('')
    if words.startswith('demo'):
        pytest.importorskip('rclpy')
    assert main(words.split()) == code
    out, err = capsys.readouterr()
    assert out == ''
    assert err.count('\n') == 1
    assert message in err
    assert err.startswith('robot-dynid: ')


def test_failures_are_objects_too(run: Run) -> None:
    assert 'nobody' in run('base', 'nobody', code=2)['error']
    assert 'ROBOT' in run('base', code=2)['error']


@pytest.mark.parametrize(('error', 'code'), [
    (KeyboardInterrupt(), 130), (DataError('two\nlines'), 1), (PermissionError(13, 'no', 'f'), 1)])
def test_errors_become_exit_codes(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(base, 'run', fail)
    assert main(['base', ROBOT]) == code
    assert capsys.readouterr().err.count('\n') == 1


def test_a_result_that_is_not_ok_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, 'run', lambda *_: {'ok': False})
    assert main(['base', ROBOT, '--json']) == 1


def test_prints_of_libraries_stay_off_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def chatter(*_: object) -> dict[str, Any]:
        sys.stdout.write('from a library\n')
        return {'ok': True}

    monkeypatch.setattr(base, 'run', chatter)
    assert main(['base', ROBOT, '--json']) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ('{"ok": true}\n', 'from a library\n')


def test_the_verdict_is_printed_and_is_in_json(stage: Stage, run: Run, capsys: Capture) -> None:
    verdict = run('validate', stage.model, stage.test)['verdict']
    assert [joint['joint'] for joint in verdict['joints']] == ['joint_1', 'joint_2', 'joint_3']
    assert all(use['word'] in ('good', 'not good', 'not shown')
               and use['ok'] in (True, False, None)
               for joint in verdict['joints'] for use in joint['uses'])
    assert main(['validate', str(stage.model), str(stage.test)]) == 0
    printed = capsys.readouterr().out
    for use in zip(*(joint['uses'] for joint in verdict['joints']), strict=True):
        words = {one['word'] for one in use}
        excepted = f'\n{use[0]["use"]} ' in f'\n{printed}'
        assert excepted is (words != {'good'}), use[0]['use']
    assert all(note in printed for note in verdict['notes'])
    assert [f'    {action["command"]}' for action in verdict['actions'][:3]
            if action['command']] == [
        line for line in printed.splitlines() if line.startswith('    robot-dynid')]


def test_refused_recordings_have_a_verdict(stage: Stage, tmp_path: Path, run: Run) -> None:
    header, *rows = stage.train.read_text().splitlines()
    columns = [57.3 if name.startswith(('position', 'velocity')) else 1.0
               for name in header.split(',')]
    wrong = tmp_path / 'degrees.csv'
    wrong.write_text('\n'.join([header, *(','.join(
        repr(float(cell) * factor) for cell, factor in zip(row.split(','), columns, strict=True))
        for row in rows)]))
    answer = run('identify', wrong, '--robot', ROBOT, '--out', tmp_path / 'm.yaml', code=1)
    assert answer['kind'] == 'DataError'
    assert 'look like degrees' in answer['verdict']['words']
    assert 'to rad' in answer['verdict']['actions'][0]['words']


def test_json_has_no_numbers_that_are_none() -> None:
    value = {'a': float('nan'), 'b': np.array([np.inf, 1.0]), 3: (np.int64(2), np.float32(0.5)),
             'c': Path('x'), 'd': np.bool_(True), 'e': None}
    assert json.loads(as_json(value)) == {
        'a': None, 'b': [None, 1.0], '3': [2, 0.5], 'c': 'x', 'd': True, 'e': None}


def test_help_is_cheap() -> None:
    """Nothing heavy may be imported before a verb runs, but the methods by identify."""
    code = ('import sys; from robot_dynid.cli.main import VERBS, parser; '
            'parser([name for name in VERBS if name != "identify"]); '
            'print(sorted({"numpy", "scipy", "rich", "rclpy", "plotly"} & set(sys.modules)))')
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == '[]'


@pytest.mark.parametrize(('method', 'option', 'value', 'message'), [
    ('irls', '--robust', 'cauchy', "robust 'cauchy': choose one of huber, tukey"),
    ('iv', '--instrument-cutoff', 'wide', 'instrument_cutoff must be a finite number'),
    ('staged', '--procedure', 'outwards', "procedure 'outwards': choose one of"),
    ('feasible', '--prior', 'flat', "prior 'flat': choose one of"),
    ('feasible', '--prior-weight', '-1', 'prior_weight must be at least 0, is -1'),
    ('feasible', '--bounds', '{mass: 3}', 'bounds must be a mapping with keys of total_mass'),
    ('sequential-feasible', '--sweeps', '1.5', 'sweeps must be a whole number, is 1.5'),
    ('sequential-feasible', '--generations', '0', 'generations must be at least 1, is 0'),
    ('feasible', '--bounds', '{', 'not valid YAML'),
    ('trajectory', '--start', 'somewhere', "start 'somewhere': choose one of wls, feasible"),
    ('wls', '--sweeps', '3', 'sweeps is a setting of the method sequential-feasible, not of wls'),
])
def test_settings_of_methods_are_options(
    capsys: Capture, method: str, option: str, value: str, message: str
) -> None:
    words = ['identify', 'nowhere.csv', '--robot', ROBOT, '--out', 'm.yaml', '--method', method]
    assert main([*words, f'{option}={value}']) == 2
    assert message in capsys.readouterr().err


def test_every_verb_explains_itself(capsys: Capture) -> None:
    for verb in VERBS:
        with pytest.raises(SystemExit) as leaving:
            main([verb, '--help'])
        assert leaving.value.code == 0
        assert '--json' in capsys.readouterr().out


def test_model_of_another_robot_is_refused(run: Run, stage: Stage) -> None:
    for verb in ('validate', 'forward', 'inverse', 'contact'):
        words = (verb, stage.model, stage.test, '--robot')
        assert 'was identified for planar_3r' in run(*words, 'puma560', code=1)['error']
    assert list(run(*words, ROBOT)['recordings'].values())


def test_thresholds_of_contacts_follow_margin_and_gain(run: Run, stage: Stage) -> None:
    report = stage.folder / 'contact.html'
    words = ('contact', stage.model, stage.test)
    (plain,), (twice,), (slow,) = (run(*words, *more)['recordings'].values() for more in (
        (), ('--margin', 4, '--report', report), ('--gain', 10)))
    for joint, row in plain['joints'].items():
        assert twice['joints'][joint]['threshold_in_motion'] == pytest.approx(
            2.0 * row['threshold_in_motion'])
        assert twice['joints'][joint]['largest'] == row['largest']
        # a slower observer lets less through, of noise and of contacts
        assert slow['joints'][joint]['largest'] < row['largest']
    assert 'joint_3' in report.read_text('utf-8')


def test_cut_off_model_is_refused(run: Run, stage: Stage) -> None:
    half = stage.folder / 'half.yaml'
    half.write_text(stage.model.read_text()[:-200])
    assert 'half.yaml' in run('validate', half, stage.test, code=1)['error']
    half.write_text(yaml.safe_dump({'format': 'else'}))
    assert 'half.yaml' in run('validate', half, stage.test, code=1)['error']


def test_symbolic_links_in_a_circle_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = tmp_path / 'loop'
    loop.symlink_to(loop)
    for words in (['validate', str(loop), 'run.csv'],
                  ['identify', 'run.csv', '--robot', 'planar_3r', '--recipe', str(loop),
                   '--out', str(tmp_path / 'm.yaml')]):
        assert main(words) == 2
        assert capsys.readouterr().err.endswith(
            f'{loop}: cannot be read (Too many levels of symbolic links)\n')
