"""Blocks of code in README and docs: what they are, and what can be said of them unrun.

A block is run, unless a comment before it, which the page does not show, says what it needs::

    <!-- needs: a robot -->      only checked: options, types, names, keys exist
    <!-- soak -->                run with the long tests
    <!-- with: elastic -->       run with the names of another robot than the usual one

A YAML block whose first line is a comment with a file name (``# recipe.yaml``) becomes that file.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any
from xml.etree import ElementTree as ET

import yaml

from robot_dynid.cli.main import parser
from robot_dynid.errors import DynIdError, RobotError
from robot_dynid.excitation.families import parse_request
from robot_dynid.identification.recipe import recipe_from_text
from robot_dynid.robot.locate import known_robots
from robot_dynid.robot.robot_file import KEYS as ROBOT_KEYS
from robot_dynid.robot.robot_file import load_robot

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'robot_dynid'
BLOCK = re.compile(r'(?:^ *<!-- ([^\n]*) -->\n)?^( *)```([^\n]*)\n(.*?)^\2```$', re.M | re.S)
NAMED = re.compile(r'# ([\w.-]+\.yaml)\n')
#: what a block may need; anything else is run
NEEDS = {
    'a robot', 'ROS', 'ROS and a robot', 'recordings of a robot', 'a compiler', 'Drake', 'JAX',
    'an installation', 'minutes and ROS', 'a cluster', 'MuJoCo',
}
#: first words of shell lines that are neither ours nor of ROS
SHELL = {'make', 'pip', 'git', 'ln', 'cd', 'colcon', '.', 'source', 'export', 'gcc', 'for', 'done',
         'sudo', 'mkdir', 'apt', 'python', 'dask', 'rosdep'}
#: interfaces of others that pages use
FOREIGN = {'std_srvs/srv/Trigger': set[str](), 'std_msgs/msg/Bool': {'data'},
           'action_msgs/srv/CancelGoal': {'goal_info'}}
#: robots whose joints the blocks with a part of a robot YAML name
BASES = ('planar_3r', 'elastic_2r', 'ur10e', 'seven_axis', str(ROOT / 'examples' / 'arm.yaml'))
NODES = ('identifier', 'excitation', 'simulated_robot')


@dataclass(frozen=True)
class Block:
    """A block of a page: where it begins, its language, its text, the comment before it."""

    page: Path
    line: int
    language: str
    text: str
    marker: str

    @property
    def needs(self) -> str:
        """What it needs beyond this repository, empty: nothing."""
        return self.marker.removeprefix('needs: ') if self.marker.startswith('needs: ') else ''

    @property
    def file(self) -> str:
        """Name of the file that it shows, empty: none."""
        found = NAMED.match(self.text) if self.language == 'yaml' else None
        return found[1] if found else ''

    @property
    def commands(self) -> Iterator[list[str]]:
        """Words of the lines of a shell block; lines end where no backslash is before it."""
        for line in self.text.replace('\\\n', ' ').splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words

    def __str__(self) -> str:
        return f'{self.page.relative_to(ROOT)}:{self.line} ({self.language})'


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """Return the blocks of a page in order; directives of MyST are none."""
    text = page.read_text('utf-8')
    return tuple(
        Block(page, text.count('\n', 0, found.end(1) if found[1] else found.start()) + 1,
              found[3].strip(), dedent(found[4]), (found[1] or '').strip())
        for found in BLOCK.finditer(text) if not found[3].startswith('{'))


def check_marker(block: Block) -> None:
    """Raise AssertionError for a comment that is no marker."""
    assert block.marker in ('', 'soak', 'with: elastic') or block.needs in NEEDS, \
        f'{block}: {block.marker!r} is no marker'


# What can be said of commands without running them


def check_commands(block: Block) -> None:
    """Raise AssertionError for a command that cannot be."""
    for words in block.commands:
        try:
            check_command(words)
        except (AssertionError, DynIdError, SystemExit) as error:
            raise AssertionError(f'{block}: {" ".join(words)}: {error}') from None


def check_command(words: list[str]) -> None:
    """Raise AssertionError for a command that cannot be; SystemExit comes from argparse."""
    words = [word for word in words if word != '&&'] if words[0] == '.' else words
    if words[0] == 'robot-dynid':
        if '--help' not in words and '--version' not in words:
            check_robots(vars(parser().parse_args(words[1:])))
    elif words[0] == 'ros2':
        ROS2[words[1]](words[2:])
    else:
        assert words[0] in SHELL, 'is no command that pages may use'
        if words[0] == 'python' and words[1] != '-m':
            assert (ROOT / words[1]).is_file(), 'is not in the repository'
        if words[0] == 'make':
            targets = re.findall(r'^(\w+):', (ROOT / 'Makefile').read_text(), re.M)
            assert words[1] in targets, 'is no target'


def check_robots(arguments: dict[str, Any]) -> None:
    """Raise AssertionError where a robot is neither known nor a file of the reader."""
    robot = arguments.get('robot')
    if isinstance(robot, str) and not Path(robot).suffix:
        assert robot in known_robots(), f'{robot} is no robot'
    if isinstance(robot, str) and robot.startswith('examples/'):
        assert (ROOT / robot).is_file(), robot


@cache
def fields_of(kind: str) -> set[str] | None:
    """Return the fields of a message, or of the request or goal of an interface; None: unknown."""
    if kind in FOREIGN:
        return FOREIGN[kind]
    package, folder, name = kind.split('/')
    path = ROOT / 'robot_dynid_interfaces' / folder / f'{name}.{folder}'
    if package != 'robot_dynid_interfaces' or not path.is_file():
        return None
    lines = path.read_text('utf-8').partition('---')[0].splitlines()
    return {line.split()[1] for line in lines if line and not line.startswith('#')}


@cache
def graph_names() -> set[str]:
    """Return the names of topics, services and actions of the nodes: those of the policy."""
    found = set()
    tree = ET.parse(PACKAGE / 'config' / 'sros2' / 'robot_dynid.policy.xml')
    for profile in tree.iter('profile'):
        node = profile.attrib['node']
        for item in (item for group in profile for item in group):
            name = str(item.text)
            found.add(f'/{node}{name[1:]}' if name.startswith('~') else
                      name if name.startswith('/') else f'/{name}')
    return found


@cache
def parameter_names() -> set[str]:
    """Return the parameters that the nodes declare, from their sources."""
    found = set()
    sources = PACKAGE / 'robot_dynid'
    for path in (*sources.joinpath('ros').rglob('*.py'), sources / 'execution' / 'guards.py'):
        for node in ast.walk(ast.parse(path.read_text('utf-8'))):
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call) and \
                    isinstance(node.value.func, ast.Name) and node.value.func.id in (
                        'setting', '_stop') and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    for name in NODES:
        content = yaml.safe_load((PACKAGE / 'config' / f'{name}.yaml').read_text('utf-8'))
        found |= set(content['/**']['ros__parameters'])
    return found


def check_call(words: list[str]) -> None:
    """Check the name, the type and the fields of a goal or request."""
    name, kind, *rest = [word for word in words[1:] if not word.startswith('--')]
    known = fields_of(kind)
    assert known is not None, f'{kind} is no interface'
    # every action has the service
    assert name.removesuffix('/_action/cancel_goal') in graph_names(), \
        f'{name} is nothing that a node has'
    if rest:
        given = yaml.safe_load(rest[0]) or {}
        assert set(given) <= known, f'{kind} has no {", ".join(set(given) - known)}'
        if kind.endswith('/Excite') and given.get('options'):
            options = yaml.safe_load(given['options'])
            options.pop('data', None)  # recordings of a session, which the node reads
            parse_request(given.get('type', ''), options)
        if kind.endswith('/Identify'):
            recipe_from_text(given.get('recipe', ''))


def check_topic(words: list[str]) -> None:
    """Check the name of a topic, and what is published on it."""
    rest = [word for word in words[1:] if not word.startswith('-') and not word.isdigit()]
    assert rest[0] in graph_names(), f'{rest[0]} is no topic of a node'
    if words[0] == 'pub':
        known = fields_of(rest[1])
        assert known is not None and set(yaml.safe_load(rest[2])) <= known, rest


def check_run(words: list[str]) -> None:
    """Check an executable and its parameters."""
    assert words[0] == 'robot_dynid' and words[1] in NODES, words
    given = [words[i + 1].partition(':=')[0] for i, word in enumerate(words) if word == '-p']
    assert set(given) <= parameter_names(), set(given) - parameter_names()


def check_launch(words: list[str]) -> None:
    """Check a launch file and its arguments."""
    assert words[0] == 'robot_dynid' and (PACKAGE / 'launch' / words[1]).is_file(), words
    source = ''.join((PACKAGE / 'robot_dynid' / 'ros' / f'{name}.py').read_text('utf-8')
                     for name in ('launching', 'bringup'))
    known = set(re.findall(r"_argument\(\s*'(\w+)'|^ {4}'(\w+)': ['(]", source, re.M))
    for word in words[2:]:
        if word != '-s':
            assert word.partition(':=')[0] in {a or b for a, b in known}, word
    check_robots({word.partition(':=')[0]: word.partition(':=')[2] for word in words[2:]})


def check_param(words: list[str]) -> None:
    """Check the node and the name of a parameter."""
    assert words[1].removeprefix('/') in NODES, words
    assert words[0] == 'dump' or words[2] in parameter_names(), words


def nothing(words: list[str]) -> None:
    """Say nothing of a command that is not about our nodes."""


ROS2: dict[str, Callable[[list[str]], None]] = {
    'action': check_call, 'service': check_call, 'topic': check_topic, 'run': check_run,
    'launch': check_launch, 'param': check_param, 'security': nothing, 'bag': nothing,
    'pkg': nothing, 'control': nothing,
}


# YAML by its kind


def check_yaml(block: Block, folder: Path) -> str:
    """Load a block as what its keys say it is, and return that; ``folder`` has the files of it."""
    content = yaml.safe_load(block.text)
    assert isinstance(content, dict), f'{block}: is no mapping'
    errors = []
    for kind, loader in YAML.items():
        try:
            if loader(content, block.text, folder):
                return kind
        except DynIdError as error:
            errors.append(f'{kind}: {error}')
    raise AssertionError(f'{block}: is nothing that a loader takes: {"; ".join(errors)}')


def is_parameters(content: dict[str, Any], text: str, folder: Path) -> bool:
    """Return whether it is a parameter file, of parameters that nodes have."""
    sections = [value.get('ros__parameters') for value in content.values()
                if isinstance(value, dict)]
    given = {name for section in sections if section for name in section}
    if given:
        assert given <= parameter_names(), given - parameter_names()
    return bool(given)


def is_options(content: dict[str, Any], text: str, folder: Path) -> bool:
    """Return whether it is the options of a composite design."""
    return 'segments' in content and parse_request('composite', content) is not None


def is_recipe(content: dict[str, Any], text: str, folder: Path) -> bool:
    """Return whether it is a recipe."""
    return recipe_from_text(text) is not None


def is_robot(content: dict[str, Any], text: str, folder: Path) -> bool:
    """Return whether it is a robot YAML, or a part of one that fits a robot we know."""
    if not set(content) <= ROBOT_KEYS:
        return False
    path = folder / 'of_a_page.yaml'
    if isinstance(content.get('urdf'), dict):
        content = {**content, 'urdf': 'my_arm.urdf'}
    errors = []
    for base in (None, *BASES):
        known = {} if base is None else base_content(base)
        if base is not None and {'urdf', 'screws'} & set(content):
            break
        path.write_text(yaml.safe_dump({**known, **content}))
        try:
            load_robot(path)
            return True
        except DynIdError as error:
            errors.append(str(error))
    raise RobotError('; '.join(errors))


def base_content(name: str) -> dict[str, Any]:
    """Return the robot YAML of a robot, with the path of its URDF."""
    path = Path(name) if '/' in name else PACKAGE / 'config' / 'robots' / f'{name}.yaml'
    content = yaml.safe_load(path.read_text('utf-8'))
    beside = path.parent / content['urdf']
    urdf = beside if beside.is_file() else PACKAGE / content['urdf']
    return {**{key: content[key] for key in ('gravity', 'effort_kind', 'limits', 'drive_gains')
               if key in content}, 'urdf': str(urdf)}


YAML: dict[str, Callable[[dict[str, Any], str, Path], bool]] = {
    'parameters': is_parameters, 'options': is_options, 'robot': is_robot, 'recipe': is_recipe}
