"""Every block of code in README and docs runs, or says what it needs and is checked as far.

Pages of their own tests: see FOLLOWED.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arm_recordings import program
from doc_blocks import NEEDS, ROOT, Block, blocks, check_commands, check_marker, check_yaml

#: pages whose blocks another test runs, one after the other
FOLLOWED = {
    'architecture': 'test_architecture_docs.py', 'screws': 'robot/test_screws_page.py',
    'two_encoders': 'test_walkthroughs.py',
    **{path.stem: 'test_walkthroughs.py' for path in (ROOT / 'docs' / 'papers').glob('*.md')}}
PAGES = [ROOT / 'README.md', *(path for path in sorted((ROOT / 'docs').rglob('*.md'))
                               if path.stem not in FOLLOWED and blocks(path))]
#: pages that a newcomer follows literally: nothing is there but the repository
LITERAL = {'README', 'first_model'}
SHELL, YAML, PYTHON, TEXT = 'sh', 'yaml', 'python', 'text'
#: languages whose blocks a loader, a compiler or a reader takes
LANGUAGES = {SHELL, YAML, PYTHON, TEXT}
#: what a block of text must not begin a line with
CODE = re.compile(r'^ *(robot-dynid|ros2|python|pip|import|from \w+ import)\b', re.M)


def stem(page: Path) -> str:
    return page.stem


def usual() -> dict[str, Any]:
    """Return the names that Python of the pages may use, in the folder of a reader."""
    from robot_dynid import IdentifiedModel, load_log, load_robot, load_trajectory

    robot, model = load_robot('my_arm.yaml'), IdentifiedModel.load('M.yaml')
    log = load_log('run.csv', robot)
    some = slice(100, 140, 10)
    q, qd = log.position[some], log.velocity[some]
    return {'robot': robot, 'model': model, 'paths': ['run.csv'], 'np': np,
            'load_trajectory': load_trajectory, 'q': q, 'qd': qd, 'qdd': np.zeros_like(q),
            'effort': log.effort[some], 'efforts': log.effort[None, some], 'dt': 0.001}


def elastic() -> dict[str, Any]:
    """Return these names for a robot with elastic joints."""
    from identified_models import model_named

    from robot_dynid import load_robot
    from robot_dynid.simulation.truth import load_truth
    from robot_dynid.trajectories.trajectory import QuinticMove

    robot, model = load_robot('elastic_2r'), model_named('elastic_2r')
    zero = np.zeros((4, 2))
    return {'robot': robot, 'model': model, 'truth': load_truth(robot),
            'trajectory': QuinticMove(robot.joints, zero[0], zero[0] + 0.1, 0.5),
            'q': zero, 'qd': zero, 'qdd': zero, 'tau': zero, 'efforts': np.zeros((4, 5, 2)),
            'theta': zero, 'thetad': zero, 'q0': zero,
            'qd0': zero, 'theta0': zero, 'thetad0': zero, 'dt': 0.001}


def run(block: Block, folder: Path, names: dict[str, Any]) -> None:
    """Do what a block says."""
    if block.language == SHELL:
        for words in block.commands:
            if words[0] == 'mkdir':
                (folder / words[1]).mkdir()
                continue
            try:
                program(words, folder)
            except (AssertionError, SystemExit) as error:
                raise AssertionError(f'{block}: {error}') from None
    elif block.language == PYTHON:
        given = names if block.marker != 'with: elastic' else elastic()
        exec(compile(block.text, str(block), 'exec'), given)


def follow(page: Path, folder: Path, soak: bool) -> None:
    """Write the files that a page shows, and run its blocks in their order."""
    for block in blocks(page):
        if block.file:
            (folder / block.file).write_text(block.text)
    names = {} if page.stem in LITERAL else usual()
    for block in blocks(page):
        if not block.needs and (soak or block.marker != 'soak'):
            run(block, folder, names)


@pytest.mark.parametrize('page', PAGES, ids=stem)
def test_every_block_is_marked_or_can_be_run(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f'{block}: give it a language: {LANGUAGES}'
        if block.language == TEXT:
            assert not CODE.search(block.text), f'{block}: is code, so give it its language'
        check_marker(block)


@pytest.mark.parametrize('page', PAGES, ids=stem)
def test_commands_are_possible(page: Path) -> None:
    for block in blocks(page):
        if block.language == SHELL:
            check_commands(block)
        elif block.language == PYTHON:
            compile(block.text, str(block), 'exec')


@pytest.mark.parametrize('page', PAGES, ids=stem)
def test_yaml_is_what_its_loader_takes(page: Path, arm_folder: Path) -> None:
    (arm_folder / 'cell.urdf').write_text('<robot name="cell"><link name="cell"/></robot>')
    for block in blocks(page):
        if block.language == YAML:
            check_yaml(block, arm_folder)


@pytest.mark.parametrize('page', [page for page in PAGES if any(
    block.language in (SHELL, PYTHON) and not block.needs and block.marker != 'soak'
    for block in blocks(page))], ids=stem)
def test_code_blocks_of_a_page_run(
    page: Path, arm_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.stem in LITERAL:
        arm_folder = arm_folder / 'clean'
        arm_folder.mkdir()
        (arm_folder / 'examples').symlink_to(ROOT / 'examples')
        monkeypatch.chdir(arm_folder)
    follow(page, arm_folder, soak=False)


@pytest.mark.soak
@pytest.mark.parametrize('page', [page for page in PAGES if any(
    block.marker == 'soak' for block in blocks(page))], ids=stem)
def test_long_code_blocks_of_a_page_run(page: Path, arm_folder: Path) -> None:
    follow(page, arm_folder, soak=True)


def test_the_pages_of_other_tests_are_followed_there() -> None:
    for test in set(FOLLOWED.values()):
        text = (ROOT / 'test' / test).read_text('utf-8')
        pages = [page for page, name in FOLLOWED.items() if name == test]
        assert all(f'{page}.md' in text or "'papers'" in text for page in pages)


PAGE = Path(__file__).resolve().parents[1] / 'docs' / 'index.md'


@pytest.mark.parametrize('text', [
    'robot-dynid identify run.csv --robot my_arm.yaml',
    'robot-dynid identify run.csv --robot ur99 --out M.yaml',
    'robot-dynid identify run.csv --robot ur10e --out M.yaml --speed 3',
    'ros2 action send_goal /excitation/excite robot_dynid_interfaces/action/Excite "{kind: a}"',
    'ros2 action send_goal /excitation/excit robot_dynid_interfaces/action/Excite "{}"',
    'ros2 action send_goal /excitation/excite robot_dynid_interfaces/action/Excit "{}"',
    'ros2 action send_goal /excitation/excite robot_dynid_interfaces/action/Excite '
    '"{options: \'{harmonic: 3}\'}"',
    'ros2 service call /identifier/record std_srvs/srv/Trigger',
    'ros2 topic echo /identifier/residual', 'ros2 param set /excitation first_pass 1.0',
    'ros2 launch robot_dynid exite.launch.py', 'ros2 launch robot_dynid excite.launch.py rob:=a',
    'ros2 run robot_dynid excitation --ros-args -p robto:=a', 'make dmo', 'rm -rf /',
    'python examples/nothing.py'])
def test_check_commands_rejects_impossible_commands(text: str) -> None:
    with pytest.raises(AssertionError):
        check_commands(Block(PAGE, 1, SHELL, text, ''))


@pytest.mark.parametrize('text', [
    'urdf: my_arm.urdf\neffort_kinds: torque', 'limits: {no_joint: {velocity: 1.0}}',
    'friction: nonsense', 'segments: [{type: forier}]',
    'excitation: {ros__parameters: {robto: a}}'])
def test_yaml_that_nothing_takes_is_found(text: str, tmp_path: Path) -> None:
    from robot_dynid.errors import UsageError

    with pytest.raises((AssertionError, UsageError)):
        check_yaml(Block(PAGE, 1, YAML, text, ''), tmp_path)


def test_a_comment_that_is_no_marker_is_found() -> None:
    assert NEEDS
    with pytest.raises(AssertionError, match='is no marker'):
        check_marker(Block(PAGE, 1, SHELL, '', 'needs: patience'))
