"""Hold the direction of imports and the habits of the code, read from its syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'robot_dynid'

# From the bottom up: a layer may import its own row and the rows before it.
LAYERS = (
    ('blas', 'errors', 'version'),
    ('types',),
    ('model', 'friction', 'signals'),
    ('regressor',),
    ('reduction',),
    ('experiment', 'information', 'procedure'),
    ('excitation', 'estimation', 'residual'),
    ('identified',),
    ('io', 'simulation'),
    ('report',),
    ('reproduce', '__init__'),
    ('cli', 'ros'),
)
LEVEL = {name: level for level, row in enumerate(LAYERS) for name in row}
OUTSIDE_CORE = {'io', 'simulation', 'report', 'reproduce', '__init__', 'cli', 'ros'}

KERNELS = {'model/_kernels.py', 'model/_forward_kernel.py', 'model/_regressor_kernel.py'}
NOT_IN_CORE = {'logging', 'random', 'time', 'rich', 'mujoco', 'rclpy', 'pickle', 'subprocess'}
MESSAGE_SUFFIXES = ('_msgs', '_srvs', '_interfaces')
LONGEST_MODULE = 600
LONGEST_BODY = 45

SOURCES = sorted(PACKAGE.rglob('*.py'))
ALL_SOURCES = [
    path
    for folder in ('robot_dynid', 'test', 'tools', 'benchmark', 'examples', 'launch')
    for path in sorted((ROOT / folder).rglob('*.py'))
]


def short(path: Path) -> str:
    """Return the path below the root, as in a message."""
    return str(path.relative_to(ROOT))


def layer_of(path: Path) -> str:
    """Return the layer a file belongs to: its folder or module name in the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix('.py')


CORE = [path for path in SOURCES if layer_of(path) not in OUTSIDE_CORE]


def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding='utf-8'), filename=str(path))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, full module name) of every import, also those inside functions."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = path.relative_to(ROOT).with_suffix('').parts
            base = '.'.join(parts[: len(parts) - node.level]) if node.level else ''
            module = '.'.join(name for name in (base, node.module) if name)
            yield from ((node.lineno, f'{module}.{alias.name}') for alias in node.names)


def imported_layers(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, layer) of every import from the package itself."""
    for line, name in imported(path):
        top, _, rest = name.partition('.')
        if top == 'robot_dynid':
            layer = rest.partition('.')[0]
            yield line, layer if layer in LEVEL else '__init__'


def test_every_module_belongs_to_a_layer() -> None:
    unknown = {layer_of(path) for path in SOURCES} - set(LEVEL)
    assert not unknown, f'add to LAYERS: {sorted(unknown)}'


def test_imports_point_down_only() -> None:
    wrong = [
        f'{short(path)}:{line} imports {layer}'
        for path in SOURCES
        for line, layer in imported_layers(path)
        if LEVEL[layer] > LEVEL[layer_of(path)]
    ]
    assert not wrong, '\n'.join(wrong)


def test_layers_of_one_row_do_not_import_each_other_in_a_circle() -> None:
    uses: dict[str, set[str]] = {name: set() for name in LEVEL}
    for path in SOURCES:
        uses[layer_of(path)].update(layer for _, layer in imported_layers(path))
    while free := [name for name, used in uses.items() if not (used - {name}) & set(uses)]:
        for name in free:
            del uses[name]
    assert not uses, f'these import each other: {sorted(uses)}'


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
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and (name := forbidden_call(node))
    ]
    assert not wrong, '\n'.join(wrong)


def test_only_the_kernels_import_numba() -> None:
    wrong = [
        f'{short(path)}:{line}'
        for path in SOURCES
        if str(path.relative_to(PACKAGE)) not in KERNELS
        for line, name in imported(path)
        if name.partition('.')[0] == 'numba'
    ]
    assert not wrong, '\n'.join(wrong)


def test_modules_are_short_and_named_for_what_they_hold() -> None:
    lengths = {path: len(path.read_text(encoding='utf-8').splitlines()) for path in ALL_SOURCES}
    wrong = [f'{short(path)}: {n} lines' for path, n in lengths.items() if n > LONGEST_MODULE]
    wrong += [short(path) for path in ALL_SOURCES if path.stem in ('utils', 'util', 'helpers')]
    assert not wrong, '\n'.join(wrong)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function of a file, nested ones too."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function without its head and docstring."""
    documented = ast.get_docstring(function) is not None
    body = function.body[1:] if documented else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_functions_are_short() -> None:
    wrong = [
        f'{short(path)}:{function.lineno} {function.name}: {length} lines'
        for path in ALL_SOURCES
        for function in functions(path)
        if (length := body_length(function)) > LONGEST_BODY
    ]
    assert not wrong, '\n'.join(wrong)


def test_public_functions_name_their_arguments() -> None:
    wrong = [
        f'{short(path)}:{function.lineno} {function.name} takes **{function.args.kwarg.arg}'
        for path in SOURCES
        for function in functions(path)
        if function.args.kwarg and not function.name.startswith('_')
    ]
    assert not wrong, '\n'.join(wrong)


@pytest.mark.parametrize(
    ('layer', 'source', 'found'),
    [
        ('model', 'def f():\n    from robot_dynid.cli import main\n', 'cli'),
        ('model', 'def f():\n    from ..ros import params\n', 'ros'),
        ('signals', 'import robot_dynid.report.html\n', 'report'),
        ('io', 'from robot_dynid import identify\n', '__init__'),
    ],
)
def test_hidden_upward_imports_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layer: str, source: str, found: str
) -> None:
    """The check itself can fail: an import inside a function or a relative one is caught."""
    monkeypatch.setitem(globals(), 'ROOT', tmp_path)
    path = tmp_path / 'robot_dynid' / layer / 'x.py'
    path.parent.mkdir(parents=True)
    path.write_text(source)
    layers = [name for _, name in imported_layers(path)]
    assert layers == [found]
    assert LEVEL[found] > LEVEL[layer]
