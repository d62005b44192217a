"""Scripts in examples/: each runs, prints what its use needs, and is short."""

from __future__ import annotations

import ast
import csv
import re
from pathlib import Path

import numpy as np
import pytest
from arm_recordings import ROOT, program

EXAMPLES = sorted((ROOT / 'examples').glob('*.py'))
#: scripts that are run by other tests
ELSEWHERE = {'call_services': 'ros/identifier/test_service_example.py',
             'predictive_control': 'export/test_predictive_control.py',
             'retime_path': 'ros/identifier/test_service_example.py',
             'send_goal': 'ros/identifier/test_service_example.py',
             'rehearse': 'support/arm_recordings.py'}


def printed(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, *words: str
) -> str:
    """Run an example in a folder, and return what it prints."""
    capsys.readouterr()
    program(['python', f'examples/{name}.py', *words], folder)
    return capsys.readouterr().out


def numbers(text: str, pattern: str) -> list[float]:
    """Return the numbers that a pattern finds."""
    return [float(found) for found in re.findall(pattern, text)]


@pytest.fixture
def told(arm_folder: Path, capsys: pytest.CaptureFixture[str]):
    """Return what runs an example in the folder of a reader."""
    return lambda name, *words: printed(arm_folder, capsys, name, *words)


@pytest.mark.parametrize('path', EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short_and_say_how_to_run_them(path: Path) -> None:
    text = path.read_text('utf-8')
    assert len(text.splitlines()) < 100
    assert f'python examples/{path.name} ' in (ast.get_docstring(ast.parse(text)) or '')


def test_every_example_is_run() -> None:
    here = Path(__file__).read_text('utf-8')
    for path in EXAMPLES:
        other = ELSEWHERE.get(path.stem)
        text = here if other is None else (ROOT / 'test' / other).read_text('utf-8')
        assert f"told('{path.stem}'" in text or path.name in text, path.stem


def test_identify_csv(told, arm_folder: Path) -> None:
    text = told('identify_csv', 'my_arm.yaml', 'new.yaml', 'other.csv', 'run.csv')
    errors = numbers(text, r'([\d.]+)% +[\d.]+%')
    assert len(errors) == 3 and max(errors) < 6.0
    assert 'refused joints: none' in text and (arm_folder / 'new.yaml').is_file()


def test_identify_bag(told, arm_folder: Path) -> None:
    text = told('identify_bag', 'my_arm.yaml', 'new.yaml', 'run_bag', '/joint_states', '0', '7')
    seconds = numbers(text, r'joint states in ([\d.]+) s')
    assert seconds == pytest.approx([7.0], abs=0.1)
    ((value, std),) = re.findall(r'mx2 +([\d.-]+) \+- ([\d.]+)', text)
    assert float(value) == pytest.approx(2.775, abs=5 * float(std))  # m2 c2 + 0.45 m3 of the URDF


def test_gravity_compensation(told) -> None:
    text = told('gravity_compensation', 'M.yaml', 'run.csv')
    rows = [line.split() for line in text.splitlines()[1:]]
    assert [row[0] for row in rows] == ['turn', 'shoulder', 'elbow']
    effort, error, dry = np.array([row[1:4] for row in rows], dtype=float).T
    assert effort[0] < 0.01 < 10.0 < effort[1] and np.all(error < 0.1)
    assert dry == pytest.approx([3.0, 4.0, 1.5], rel=0.05)  # simulated
    assert text.count('stays with either') == 3


def test_feedforward(told, arm_folder: Path) -> None:
    told('feedforward', 'M.yaml', 'T.yaml', 'efforts.csv')
    with (arm_folder / 'efforts.csv').open() as file:
        rows = list(csv.DictReader(file))
    effort = np.array([[float(row[f'effort.{j}']) for j in ('turn', 'shoulder', 'elbow')]
                       for row in rows])
    recorded = np.genfromtxt(arm_folder / 'run.csv', delimiter=',', names=True, deletechars='')
    measured = np.column_stack([recorded[f'effort.{j}'] for j in ('turn', 'shoulder', 'elbow')])
    count = min(len(effort), len(measured))
    off = effort[:count] - measured[:count]
    assert np.all(np.median(np.abs(off), axis=0) < 0.1 * np.std(measured, axis=0))


def test_contact(told) -> None:
    assert 'contact from' not in told('contact', 'M.yaml', 'run.csv')
    text = told('contact', 'M.yaml', 'run.csv', 'shoulder', '15', '3', '4')
    found = re.findall(r'contact from ([\d.]+) to ([\d.]+) s: (\w+)', text)
    assert found and {joint for _, _, joint in found} == {'shoulder'}
    assert float(found[0][0]) == pytest.approx(3.0, abs=0.1)
    assert float(found[-1][1]) == pytest.approx(4.0, abs=0.3)


def test_simulate_mujoco(told) -> None:
    text = told('simulate_mujoco', 'M.yaml', 'arm.xml')
    simulated = numbers(text, r'MuJoCo ([\d.-]+)')
    ours = numbers(text, r'rollout ([\d.-]+) rad')
    assert simulated == pytest.approx(ours, abs=5e-3) and abs(ours[1] - 0.3) > 0.5


def test_compare_models(told) -> None:
    assert 'changed beyond chance: none' in told(
        'compare_models', 'before.yaml', 'M.yaml', 'other.csv')
    text = told('compare_models', 'before.yaml', changed_model(), 'other.csv')
    assert 'changed beyond chance: shoulder' in text


def changed_model() -> str:
    """Return a model whose shoulder has 20 % more dry friction."""
    from dataclasses import replace

    from robot_dynid import IdentifiedModel

    model = IdentifiedModel.load('before.yaml')
    more = np.where([name == 'fc2' for name in model.names], 1.2, 1.0) * model.values
    replace(model, values=more).save('after.yaml')
    return 'after.yaml'
