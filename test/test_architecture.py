"""Hold the direction of imports and the habits of the code, read from its syntax trees."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import FOLDERS, PACKAGE, ROOT, SOURCES, below, nodes_of

# From the bottom up: a room may import itself and the rows before it.
ROOMS = (
    ('blas', 'errors', 'registry', 'threads', 'version', 'workers'),
    ('files', 'types', 'kernels', 'yaml_text'),
    ('numbers', 'settings'),
    ('document', 'figures', 'plain'),
    ('robot',),
    ('dynamics', 'friction', 'signals', 'trajectories'),
    ('collision', 'effects', 'plausibility'),
    ('reduction',),
    ('estimation',),
    ('excitation', 'export'),
    ('execution', 'identified'),
    ('monitoring',),
    ('validation',),
    ('identification',),
    ('io', 'simulation'),
    ('report', 'setting_up'),
    ('__init__',),
    ('cli', 'ros'),
    ('robot_dynid_extras',),
    ('robot_dynid_evaluation',),
)
LEVEL = {name: level for level, row in enumerate(ROOMS) for name in row}
OUTSIDE_CORE = {'export', 'io', 'simulation', 'report', 'setting_up', '__init__', 'cli', 'ros',
                'robot_dynid_evaluation'}

NOT_IN_CORE = {'logging', 'random', 'time', 'rich', 'mujoco', 'rclpy', 'pickle', 'subprocess'}
MESSAGE_SUFFIXES = ('_msgs', '_srvs', '_interfaces')

PACKAGES = tuple(FOLDERS)
ALL_SOURCES = [*SOURCES, *(
    path for folder in (ROOT / 'test', ROOT / 'tools', ROOT / 'examples', PACKAGE / 'launch')
    for path in sorted(folder.rglob('*.py')))]


def short(path: Path) -> str:
    """Return the path below the folder of its package, as in a message."""
    return str(below(path, ROOT))


def room_of(path: Path) -> str:
    """Return the room of a file: what is below the core, or one of the other packages."""
    package, *inside = below(path, ROOT).parts
    return package if package != 'robot_dynid' or not inside else inside[0].removesuffix('.py')


#: files of the extras that print, read files or talk to nodes
OUTSIDE_CORE_OF_EXTRAS = {'verb.py', 'client.py', 'node_part.py', 'recordings.py', 'report.py',
                          'statuses.py'}
CORE = [path for path in SOURCES if room_of(path) not in OUTSIDE_CORE
        and not (room_of(path) == 'robot_dynid_extras' and path.name in OUTSIDE_CORE_OF_EXTRAS)]


#: a module of the packages in a string, also as its beginning or with the name of an object
IN_STRING = re.compile(
    rf'((?:{"|".join(PACKAGES[1:])}|robot_dynid\.(?:{"|".join(LEVEL)}))\b[\w.]*)(?::\w+)?')


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, full module name) of every import, also those inside functions."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = below(path, ROOT).with_suffix('').parts
            base = '.'.join(parts[: len(parts) - node.level]) if node.level else ''
            module = '.'.join(name for name in (base, node.module) if name)
            yield from ((node.lineno, f'{module}.{alias.name}') for alias in node.names)


def in_strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, full module name) of every string that is the name of a module."""
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) \
                and (match := IN_STRING.fullmatch(node.value)):
            yield node.lineno, match[1].rstrip('.')


def imported_rooms(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, room) of every import from the packages, by a string too."""
    for line, name in (*imported(path), *in_strings(path)):
        top, _, rest = name.partition('.')
        if top == 'robot_dynid':
            room = rest.partition('.')[0]
            yield line, room if room in LEVEL else '__init__'
        elif top in PACKAGES:
            yield line, top


def test_every_module_belongs_to_a_room() -> None:
    unknown = {room_of(path) for path in SOURCES} - set(LEVEL)
    assert not unknown, f'add to ROOMS: {sorted(unknown)}'


def test_imports_point_down_only() -> None:
    wrong = [
        f'{short(path)}:{line} imports {room}'
        for path in SOURCES
        for line, room in imported_rooms(path)
        if LEVEL[room] > LEVEL[room_of(path)]
    ]
    assert not wrong, '\n'.join(wrong)


def circles(uses: dict[str, set[str]]) -> list[str]:
    """Return the names that import each other in a circle."""
    left = {name: set(used) - {name} for name, used in uses.items()}
    while free := [name for name, used in left.items() if not used & set(left)]:
        for name in free:
            del left[name]
    return sorted(left)


def test_rooms_of_one_row_do_not_import_each_other_in_a_circle() -> None:
    uses: dict[str, set[str]] = {name: set() for name in LEVEL}
    for path in SOURCES:
        uses[room_of(path)].update(room for _, room in imported_rooms(path))
    assert not circles(uses)


def module_of(path: Path) -> str:
    """Return the name a file is imported by."""
    name = '.'.join(below(path, ROOT).with_suffix('').parts)
    return name.removesuffix('.__init__')


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions count; those for type checkers alone do not."""
    known = {module_of(path) for path in SOURCES}
    uses: dict[str, set[str]] = {}
    for path in SOURCES:
        hidden = {line for node in nodes_of(path) if isinstance(node, ast.If)
                  and ast.unparse(node.test) == 'TYPE_CHECKING'
                  for line in range(node.lineno, (node.end_lineno or 0) + 1)}
        uses[module_of(path)] = {
            name if name in known else name.rpartition('.')[0]
            for line, name in imported(path) if line not in hidden} & known
    assert not circles(uses)


def test_core_is_free_of_ros_output_and_clocks() -> None:
    wrong = [
        f'{short(path)}:{line} imports {name}'
        for path in CORE
        for line, name in imported(path)
        if (top := name.partition('.')[0]) in NOT_IN_CORE or top.endswith(MESSAGE_SUFFIXES)
    ]
    assert not wrong, '\n'.join(wrong)


def forbidden_call(node: ast.Call) -> str | None:
    """Return the name of a call which the core must not make, or None."""
    name = ast.unparse(node.func)
    if name in ('print', 'input', 'exit', 'sys.exit', 'os._exit'):
        return name
    if name.endswith(('.now', '.utcnow', '.today')):
        return f'{name} (the caller passes the time)'
    if name.endswith('default_rng') and not node.args + node.keywords:
        return f'{name} without a seed'
    if name.startswith(('np.random.', 'numpy.random.')) and not name.endswith('default_rng'):
        return f'{name} (pass a Generator)'
    return None


def test_core_prints_nothing_and_draws_only_from_seeded_generators() -> None:
    wrong = [
        f'{short(path)}:{node.lineno} calls {name}'
        for path in CORE
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and (name := forbidden_call(node))
    ]
    assert not wrong, '\n'.join(wrong)


def test_the_kernels_import_numpy_and_nothing_of_the_package() -> None:
    wrong = [f'{short(path)}:{line} imports {name}'
             for path in SOURCES if room_of(path) == 'kernels' for line, name in imported(path)
             if name.partition('.')[0] not in {'numpy', *sys.stdlib_module_names}]
    assert not wrong, '\n'.join(wrong)


#: libraries that an extra brings, and the one module of the package that imports each
OF_EXTRAS = {'plotly': 'report/html.py', 'jinja2': 'report/html.py',
             'mujoco': 'export/mujoco.py', 'casadi': 'export/functions.py',
             'jax': 'export/functions.py'}


def test_libraries_of_extras_are_imported_in_one_place() -> None:
    """There their absence becomes a message with the name of the extra."""
    found = {(name.partition('.')[0], short(path).removeprefix('robot_dynid/'))
             for path in SOURCES if room_of(path) != 'robot_dynid_evaluation'
             for _, name in imported(path) if name.partition('.')[0] in OF_EXTRAS}
    assert found == set(OF_EXTRAS.items())


def test_yaml_is_imported_in_one_place() -> None:
    """Its reader keeps to plain values and to budgets."""
    found = {short(path) for path in SOURCES for _, name in imported(path)
             if name.partition('.')[0] == 'yaml'}
    assert found <= {'robot_dynid/yaml_text.py', 'robot_dynid/io/bag.py'}


#: where a file is opened without `robot_dynid.files`, and why
OPENED_ELSEWHERE = {
    '__init__.py': 'its own stub',
    'cli/terminal.py': 'a page in a browser',
    'cli/main.py': 'the null device in place of a closed standard output',
    'report/html.py': 'its own style sheet',
    'ros/recording/session.py': 'message definitions of the ROS installation',
    'io/bag_writer.py': 'a recording grows by appending to its file',
    'io/sqlite.py': 'a copy in a temporary folder', 'io/storage.py': 'unpacked there, too',
}
OPENING = {'open', 'read_text', 'read_bytes', 'write_text', 'write_bytes', 'fdopen'}


def opens_file(node: ast.AST) -> bool:
    """Return whether a node calls what opens a file by its path."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    owner = ast.unparse(called.value) if isinstance(called, ast.Attribute) else ''
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, 'id', '')
    own = owner in ('self', 'self._writer', 'data')  # methods of that name, of other things
    return name in OPENING and not own and not (owner == '' and name != 'open')


def test_files_are_opened_in_one_place() -> None:
    """There devices, pipes, sizes and half-written files are dealt with."""
    wrong = [f'{short(path)}:{node.lineno}'
             for path in SOURCES if room_of(path) not in ('robot_dynid_evaluation', 'files')
             and short(path).removeprefix('robot_dynid/') not in OPENED_ELSEWHERE
             for node in nodes_of(path) if isinstance(node, ast.Call) and opens_file(node)]
    assert not wrong, '\n'.join(wrong)


@pytest.mark.parametrize(('source', 'found'), [
    ('open(path)', True), ('path.open()', True), ('Path(x).read_text()', True),
    ('gzip.open(path)', True), ('read_text(path)', False), ('self._writer.open()', False)])
def test_opening_is_seen(source: str, found: bool) -> None:
    assert opens_file(ast.parse(source, mode='eval').body) == found


#: what writes to the disk beside robot_dynid/files.py, and why
WRITERS = {
    ('robot_dynid/io/bag_writer.py', 'path.open'):
        'appends to a recording in a folder that was made for it',
    ('robot_dynid/io/sqlite.py', '(folder / file.name).open'):
        'into a temporary folder',
    ('robot_dynid/io/storage.py', 'plain.open'): 'into a temporary folder',
    ('robot_dynid/io/sqlite.py', 'os.truncate'): 'in a temporary folder',
    ('robot_dynid/io/information_file.py', 'np.savez_compressed'): 'into memory',
    ('robot_dynid/cli/main.py', 'os.open'): 'the null device, when nobody reads the output',
    ('robot_dynid/cli/terminal.py', 'open'): 'the null device, where a stream is closed',
}
WRITING = {'write_text', 'write_bytes', 'rename', 'renames', 'symlink_to', 'hardlink_to', 'touch',
           'tofile', 'copy2', 'copyfile', 'copytree', 'savez', 'savez_compressed',
           'NamedTemporaryFile', 'mkstemp'}
WRITING_IN = {'os.replace', 'os.open', 'os.link', 'os.symlink', 'os.truncate', 'np.save',
              'shutil.copy', 'shutil.move', 'json.dump', 'pickle.dump', 'yaml.dump_all'}


def writes(node: ast.Call) -> bool:
    """Return whether a call may make or change a file."""
    name = ast.unparse(node.func)
    last = name.rpartition('.')[2]
    if last in WRITING or name in WRITING_IN:
        return True
    if last == 'replace' and len(node.args) == 1 and not node.keywords:
        return True  # of a path; that of a text takes two
    if last in ('open', 'fdopen', 'GzipFile'):
        words = [ast.unparse(word) for word in (*node.args, *(k.value for k in node.keywords))]
        return any(re.fullmatch(r"'[rbt]*[wax+][rbt+]*'", word) for word in words)
    return False


def test_files_are_written_in_one_place() -> None:
    """There targets are checked, and appear whole or not at all."""
    found = {(short(path), ast.unparse(node.func))
             for path in SOURCES for node in nodes_of(path)
             if isinstance(node, ast.Call) and writes(node)
             and short(path) != 'robot_dynid/files.py'
             and 'fileobj' not in {keyword.arg for keyword in node.keywords}}
    assert found - set(WRITERS) == set(), 'use robot_dynid.files'
    assert set(WRITERS) - found == set(), 'no longer there'


@pytest.mark.parametrize(('source', 'seen'), [
    ("Path(p).write_text('x')", True), ("open(p, 'w')", True), ("p.open(mode='ab')", True),
    ("gzip.open(p, 'wt')", True), ('a.replace(b)', True), ("text.replace('a', 'b')", False),
    ('replace(log, time=t)', False), ("open(p, 'rb')", False), ('os.replace(a, b)', True),
    ("open(p, 'r+b')", True), ('os.open(p, flags)', True), ('a.rename(b)', True)])
def test_writing_is_seen(source: str, seen: bool) -> None:
    call = ast.parse(source).body[0]
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    assert writes(call.value) == seen


def test_private_parts_of_the_kernels_stay_in_their_room() -> None:
    wrong = [
        f'{short(path)}:{line} imports {name}'
        for path in ALL_SOURCES
        if path not in SOURCES or room_of(path) != 'kernels'
        for line, name in imported(path)
        if name.startswith('robot_dynid.kernels.')
        and any(part.startswith('_') for part in name.split('.'))
    ]
    assert not wrong, '\n'.join(wrong)


def test_tests_mirror_the_rooms() -> None:
    """A folder of tests per room; the other packages are tested in ``extras``, ``evaluation``.

    ``fuzz`` gives damaged inputs to readers of all rooms.
    """
    folders = {path.name for path in (ROOT / 'test').iterdir()
               if path.is_dir() and path.name != '__pycache__'}
    packages = {path.parent.name for path in (PACKAGE / 'robot_dynid').glob('*/__init__.py')}
    assert folders == packages | {'evaluation', 'extras', 'fuzz', 'support'}


def test_modules_are_named_for_what_they_hold() -> None:
    wrong = [short(path) for path in ALL_SOURCES if path.stem in ('utils', 'util', 'helpers')]
    assert not wrong, '\n'.join(wrong)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function of a file, nested ones too."""
    for node in nodes_of(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def test_public_functions_name_their_arguments() -> None:
    wrong = [
        f'{short(path)}:{function.lineno} {function.name} takes **{function.args.kwarg.arg}'
        for path in SOURCES
        for function in functions(path)
        if function.args.kwarg and not function.name.startswith('_')
    ]
    assert not wrong, '\n'.join(wrong)


#: private names of others that tests may read: argparse lists its options nowhere else; the build
#: of the kernels for any processor is compared with the one that runs
NEEDED_PRIVATE = {'_actions', '_SubParsersAction', '_portable'}


def private_fields(path: Path) -> Iterator[str]:
    """Yield where a file reads or sets a private field of an object that is not its own.

    Also by its name in a text.
    """
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and re.search(r'(set|get|del)attr$', ast.unparse(node.func)):
            yield from (f'{short(path)}:{node.lineno} {ast.unparse(node)}' for one in node.args[:2]
                        if isinstance(one, ast.Constant)
                        and re.match('_[a-zA-Z]', str(one.value).rpartition('.')[2]))
        if isinstance(node, ast.Attribute) and re.match('_[a-zA-Z]', node.attr) \
                and node.attr not in NEEDED_PRIVATE \
                and not (isinstance(node.value, ast.Name) and node.value.id in ('self', 'cls')):
            yield f'{short(path)}:{node.lineno} {ast.unparse(node)}'




def test_tests_import_nothing_private() -> None:
    wrong = [f'{short(path)}:{line} imports {name}' for path in ALL_SOURCES
             if room_of(path) == 'test' for line, name in imported(path)
             if name.startswith('robot_dynid')
             and re.match('_[a-z]', name.rpartition('.')[2])]
    assert not wrong, '\n'.join(wrong)


def test_tests_leave_private_fields_alone() -> None:
    """What a test must know, the object says in public."""
    wrong = [one for path in ALL_SOURCES if room_of(path) == 'test'
             for one in private_fields(path)]
    assert not wrong, '\n'.join(wrong)


@pytest.mark.parametrize(('source', 'count'), [
    ('made._watch.elapsed()', 1), ('self._log', 0), ('made.__class__', 0), ('made._plan = 1', 1),
    ("patch.setattr(made, '_plan', 1)", 1),
    ("patch.setattr('made._plan', None)", 1), ("getattr(made, 'plan')", 0)])
def test_private_fields_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, count: int
) -> None:
    monkeypatch.setitem(globals(), 'ROOT', tmp_path)
    (tmp_path / 'x.py').write_text(source)
    assert len(list(private_fields(tmp_path / 'x.py'))) == count


@pytest.mark.parametrize(
    ('room', 'source', 'found'),
    [
        ('robot', 'def f():\n    from robot_dynid.cli import main\n', 'cli'),
        ('robot', 'def f():\n    from ..ros import params\n', 'ros'),
        ('signals', 'import robot_dynid.report.html\n', 'report'),
        ('io', 'from robot_dynid import identify\n', '__init__'),
        ('ros', 'from robot_dynid_evaluation import demo\n', 'robot_dynid_evaluation'),
        ('cli', "x = f'robot_dynid_evaluation.{name}'\n", 'robot_dynid_evaluation'),
        ('cli', "x = {'a': 'robot_dynid_evaluation.bench:BENCHES'}\n", 'robot_dynid_evaluation'),
        ('cli', "x = 'robot_dynid_evaluation'\n", 'robot_dynid_evaluation'),
        ('signals', "x = import_module('robot_dynid.' 'ros.doctor')\n", 'ros'),
    ],
)
def test_hidden_upward_imports_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: str, source: str, found: str
) -> None:
    """The check itself can fail: an import inside a function or a relative one is caught."""
    monkeypatch.setitem(globals(), 'ROOT', tmp_path)
    path = tmp_path / PACKAGE.name / 'robot_dynid' / room / 'x.py'
    path.parent.mkdir(parents=True)
    path.write_text(source)
    rooms = {name for _, name in imported_rooms(path)}
    assert rooms == {found}
    assert LEVEL[found] > LEVEL[room]


def test_a_circle_is_seen() -> None:
    assert circles({'a': {'b'}, 'b': {'c'}, 'c': {'a'}, 'd': {'a'}}) == ['a', 'b', 'c', 'd']
