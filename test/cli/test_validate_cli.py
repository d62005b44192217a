"""cli/validate.py: scores as an object, stages of the work and what is printed, made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model

from robot_dynid.cli import validate
from robot_dynid.cli.main import parser
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.validation.forward_scores import ForwardValidation, Horizon
from robot_dynid.validation.rollout_scores import RolloutScore
from robot_dynid.validation.validate import JointScore

MODEL = nominal_model('planar_3r')


def score(size: float) -> JointScore:
    return JointScore(size, 2.0 * size, 3.0 * size, 0.5, (-size, 0.0, size), 0.1, 40)


class Seen:
    """A terminal that keeps what it is given."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, float | None]] = []
        self.notes: list[str] = []
        self.documents: list[tuple[Any, ...]] = []

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[[str, float], None]]:
        yield lambda stage, fraction: self.stages.append((stage, fraction))

    def note(self, text: str) -> None:
        self.notes.append(text)

    caution = note

    def document(self, chapters: Any, warnings: Any = (), after: int = 0) -> None:
        self.documents.append((chapters, list(warnings), after))

    def line(self, text: str, style: str | None = None) -> None:
        self.notes.append(text)

    def written(self, files: Any) -> None:
        self.notes.append(f'written {dict(files)}')


def validation(**more: Any) -> Any:
    """Return the scores of two joints."""
    values: dict[str, Any] = {
        'model': {'all': {'a': score(0.1), 'b': score(0.2)}, 'motion': {'a': score(0.3)},
                  'near reversals': {'b': score(0.4)}},
        'control': {'all': {'b': score(0.7)}}, 'repeatability': np.array([0.01, 0.02]),
        'noise': np.array([0.03, 0.04]), 'warm_up': {}, 'adaptive': {}, 'rollout': None}
    return SimpleNamespace(**{**values, **more})


def test_scores_of_a_joint_are_those_of_all_samples_with_its_parts_and_control() -> None:
    found = validate.joint_scores(validation(
        warm_up={'all': {'a': score(0.5), 'b': score(0.6)}}))
    assert found == {
        'a': {**vars(score(0.1)), 'repeatability': 0.01, 'noise': 0.03, 'motion': vars(score(0.3)),
              'warm_up': vars(score(0.5))},
        'b': {**vars(score(0.2)), 'repeatability': 0.02, 'noise': 0.04,
              'near reversals': vars(score(0.4)), 'control': vars(score(0.7)),
              'warm_up': vars(score(0.6))}}
    plain = validate.joint_scores(validation(repeatability=None, noise=None, control={}))
    assert (plain['b']['repeatability'], plain['b']['noise']) == (None, None)
    assert 'control' not in plain['b'] and 'warm_up' not in plain['b']


@pytest.mark.parametrize('stopped', [0, 3, 4])
def test_simulated_motions_have_errors_unless_all_stopped(stopped: int) -> None:
    rollout = RolloutScore(0.25, 4, stopped, np.array([0.1, 0.2]), np.array([0.3, 0.4]))
    found = validate.rollout_score(validation(rollout=rollout))
    joints = {'a': {'position': 0.1, 'velocity': 0.3}, 'b': {'position': 0.2, 'velocity': 0.4}}
    assert found == {'seconds': 0.25, 'count': 4, 'stopped': stopped,
                     'joints': joints if stopped < 4 else {}}
    assert validate.rollout_score(validation()) == {}


def test_forward_scores_have_floors_and_horizons_of_those_that_did_not_stop() -> None:
    size = np.array([1.0, 2.0, 3.0])
    scores = {'model': RolloutScore(0.5, 4, 1, size, 10.0 * size),
              'control': RolloutScore(0.5, 5, 4, 2.0 * size, 20.0 * size),
              'constant_velocity': RolloutScore(0.5, 4, 4, 3.0 * size, 30.0 * size)}
    joints = dict(zip(MODEL.joints, map(score, (0.1, 0.2, 0.3)), strict=True))
    control = {'all': {'joint_2': score(0.9)}}
    found = validate.forward_scores(MODEL, ForwardValidation(
        {'all': joints}, control, np.array([0.4, 0.5, 0.6]), (Horizon(0.5, scores),), ()))
    assert found['accelerations']['joint_2'] == {
        **vars(score(0.2)), 'floor': 0.5, 'control': vars(score(0.9))}
    (horizon,) = found['rollouts']
    assert (horizon['seconds'], horizon['count'], horizon['stopped']) == (
        0.5, 5, {'model': 1, 'control': 4, 'constant_velocity': 4})
    assert horizon['joints']['joint_2'] == {'model': {'position': 2.0, 'velocity': 20.0},
                                            'control': {'position': 4.0, 'velocity': 40.0}}


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put hand-made scores in the place of reading and scoring recordings."""
    logs = SimpleNamespace(recordings=(1, 2, 3), findings={'x.csv': ('late',)})
    traces = (SimpleNamespace(source='x.csv', outside=(SimpleNamespace(joint='a', value=2.0),)),
              SimpleNamespace(source='y.csv', outside=()))
    result = validation(model={'all': dict(zip(MODEL.joints, map(score, (0.1, 0.2, 0.3)),
                                               strict=True))}, control={}, traces=traces,
                        repeatability=None, noise=None, warnings=('twice', 'twice', 'once'))
    for module, name, value in (
            ('robot_dynid.validation.validate', 'validate', result),
            ('robot_dynid.validation.verdict', 'judged', SimpleNamespace(plain=lambda: {'v': 1})),
            ('robot_dynid.report.identification', 'validation_warnings', ('scored',))):
        monkeypatch.setattr(f'{module}.{name}', lambda *_, value=value, **__: value)
    monkeypatch.setattr('robot_dynid.cli.validate.reported', lambda *_: ('chapter',))
    read: list[tuple[list[str], str]] = []
    monkeypatch.setattr('robot_dynid.cli.validate.load_logs', lambda paths, robot, *_: (
        read.append((list(paths), robot.name)), logs)[1])
    return read


def run_verb(run: Any, *words: str) -> tuple[dict[str, Any], Seen]:
    terminal, arguments = Seen(), parser(words).parse_args(words)
    arguments.command = words
    return run(arguments, terminal), terminal


def test_a_validation_goes_on_without_forward_dynamics_that_fail(
    scored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ModelError('no mass')

    path = str(tmp_path / 'M.yaml')
    replace(MODEL, not_identified=()).save(path)
    for name in ('T.csv', 'T_validation.csv'):
        (tmp_path / name).write_text('')
    monkeypatch.setattr('robot_dynid.validation.forward_scores.validate_forward', fail)
    found, terminal = run_verb(validate.run, 'validate', path, str(tmp_path / 'T.csv'),
                               str(tmp_path / 'T_validation.csv'), '--forward')
    assert terminal.stages == [('scoring', 0.8), ('forward dynamics', 0.85), ('report', 0.9)]
    assert terminal.notes == [f'fit recordings, not scored: {tmp_path / "T.csv"}',
                              'no forward dynamics: no mass']
    assert (found['ok'], found['files'], found['forward']) == (False, 3, {})
    assert found['warnings'] == ('scored', 'no forward dynamics: no mass')
    assert found['outside'] == {'x.csv': [{'joint': 'a', 'value': 2.0}]}
    assert (found['verdict'], found['chapters']) == ({'v': 1}, ('chapter',))
    assert scored == [([str(tmp_path / 'T_validation.csv')], 'planar_3r')]
    found, terminal = run_verb(validate.run, 'validate', path, str(tmp_path / 'T.csv'))
    assert scored[1:] == [([str(tmp_path / 'T.csv')], 'planar_3r')]
    assert terminal.stages == [('scoring', 0.8), ('report', 0.9)]
    assert found['ok'] and found['warnings'] == ('scored',) and terminal.notes == []


def test_the_largest_share_that_may_be_allowed_is_a_thousand(
    scored: Any, tmp_path: Path
) -> None:
    MODEL.save(tmp_path / 'M.yaml')
    words = ('validate', str(tmp_path / 'M.yaml'), 'x.csv', '--max-nrmse')
    assert run_verb(validate.run, *words, '1000')[0]['above_max_nrmse'] == []
    # the largest ratios are 0.2, 0.4 and 0.6
    assert run_verb(validate.run, *words, '0.4')[0]['above_max_nrmse'] == ['joint_3']
    assert run_verb(validate.run, *words, '0')[0]['above_max_nrmse'] == list(MODEL.joints)
    with pytest.raises(UsageError, match='at most 1000'):
        run_verb(validate.run, *words, '1001')


def test_models_are_compared_with_the_first_and_scored_one_by_one(
    scored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(tmp_path / name) for name in ('a.YAML', 'b.yml', 'c.yaml')]
    for k, path in enumerate(paths):
        replace(MODEL, values=(1.0 + 0.1 * k) * MODEL.values,
                robot=replace(MODEL.robot, name=f'arm_{k}')).save(path)
    monkeypatch.setattr('robot_dynid.identified.comparison.differences',
                        lambda first, second: [SimpleNamespace(
                            ratio=round(second.values[0] / first.values[0], 6))])
    found, terminal = run_verb(validate.run_compare, 'compare', *paths, 'x.csv')
    assert terminal.stages == [
        (f'comparing {paths[1]}', 0.1), (f'comparing {paths[2]}', 0.1), ('scoring', 0.2),
        ('scoring', pytest.approx(0.4)), ('scoring', pytest.approx(0.6)), ('report', 0.9)]
    assert (found['ok'], found['models'], found['files']) == (True, paths, ['x.csv'])
    assert found['robot'] == 'arm_0' and scored == [(['x.csv'], 'arm_0')]
    assert found['changes'] == {paths[1]: [{'ratio': 1.1}], paths[2]: [{'ratio': 1.2}]}
    assert list(found['joints']) == paths
    assert found['warnings'] == ['twice', 'once']
    found, terminal = run_verb(validate.run_compare, 'compare', *paths[:2])
    assert [stage for stage, _ in terminal.stages] == [f'comparing {paths[1]}', 'report']
    assert (found['files'], found['joints'], found['warnings']) == ([], {}, [])
    with pytest.raises(UsageError, match='give two models or more'):
        run_verb(validate.run_compare, 'compare', paths[0], 'x.csv')


@pytest.mark.parametrize(('above', 'report', 'after'), [
    ([], None, 0), ([], 'r.html', 1), (['a'], None, 1), (['a'], 'r.html', 2)])
def test_lines_after_the_document_are_counted(
    above: list[str], report: str | None, after: int
) -> None:
    terminal = Seen()
    result: dict[str, Any] = {
        'chapters': ('chapter',), 'findings': {'x.csv': ('late', 'cut')}, 'report': report,
        'above_max_nrmse': above, 'max_nrmse': {'a': 0.25}, 'joints': {'a': {'nrmse': 0.31249}},
        'warnings': ['w']}
    validate.show(result, terminal)  # type: ignore[arg-type]
    assert terminal.documents == [(('chapter',), ['x.csv: late', 'x.csv: cut'], after)]
    told = ['exit code 1, RMSE / std is above --max-nrmse: a 0.312 (limit 0.25)']
    assert terminal.notes == [*(told if above else []), f"written {{'report': {report!r}}}"]
    validate.show_compare(result, terminal)  # type: ignore[arg-type]
    assert terminal.documents[1] == (('chapter',), ['w'], int(report is not None))
