"""Docstrings of the package: arrays have shapes, modules and functions name their object."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from sources import PACKAGE, ROOT, SOURCES, below, nodes_of, tree_of

#: kernels are private; their arrays are described where they are called
DOCUMENTED = [path for path in SOURCES
              if below(path).parts[:2] != ('robot_dynid', 'kernels')
              and below(path).parts[0] != 'robot_dynid_evaluation']

#: symbols such as N, numbers, and the counts that have a name
COUNT = (r'(?:[A-Za-z]|\d+|rows|count|groups|batches|joints|links|coordinates|others|COLUMNS'
         r'|len\(\w+\)|\w+\[-1\]|\.\.\.)')
SIZE = rf'(?:\.\.\.|{COUNT}(?:(?: | ?\+ ?){COUNT})*)'
#: such as (N, n), (n,), (rows, b + 1) or (..., 4, 4)
SHAPE = re.compile(rf'\({SIZE}(?:,|(?:, {SIZE})+)\)')
ARRAY = re.compile(r'\b(FloatArray|NDArray|ArrayLike)\b')


def public_functions(
    node: ast.Module | ast.ClassDef, within: str = ''
) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield (name, function) of all public functions and methods of public classes."""
    for one in node.body:
        if isinstance(one, ast.ClassDef) and not one.name.startswith('_'):
            yield from public_functions(one, f'{one.name}.')
        elif isinstance(one, ast.FunctionDef) and not one.name.startswith('_'):
            yield within + one.name, one


def arrays(function: ast.FunctionDef) -> list[str]:
    """Return the arguments and the result (``return``) that are arrays."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    kinds = [(a.arg, a.annotation) for a in given] + [('return', function.returns)]
    return [name for name, kind in kinds if kind is not None and ARRAY.search(ast.unparse(kind))]


def without_shape(tree: ast.Module) -> Iterator[str]:
    """Yield the public functions with arrays whose docstrings state no shape."""
    for name, function in public_functions(tree):
        if arrays(function) and not SHAPE.search(ast.get_docstring(function) or ''):
            yield f'{function.lineno} {name}: state the shape of {", ".join(arrays(function))}'


def test_arrays_have_shapes() -> None:
    wrong = [f'{below(path)}:{one}' for path in DOCUMENTED
             for one in without_shape(tree_of(path))]
    assert not wrong, '\n'.join(wrong)


@pytest.mark.parametrize(('text', 'count'), [
    ('Return efforts (N, n) N m.', 0), ('Return the values (b,) of it.', 0),
    ('Return (n T, b + 1) rows.', 0), ('Write (rows, len(chosen), N).', 0),
    ('Return (..., 4, 4).', 0), ('Return the friction (N m) of all joints.', 1),
    ('Return the sections (heading, text).', 1), ('', 1)])
def test_shapes_are_seen(text: str, count: int) -> None:
    tree = ast.parse(f'def f(q: FloatArray) -> FloatArray:\n    """{text}"""\n')
    assert len(list(without_shape(tree))) == count


#: beginnings of descriptions that leave the object out
RIDDLE = re.compile(r'(What|Who|How|Which|Where|When|Whether|From|The same|One door)\b')
#: those of functions; a property that is true or false may begin with Whether
VAGUE = re.compile(r'(What|Who|How|Which|Where|When|Why|The same)\b|'
                   r'(Return|Yield) (what|who|how|which|where|when|why|the same)\b')


def riddles(tree: ast.Module) -> Iterator[str]:
    """Yield the descriptions of a module, its classes and its functions that name no object."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            continue
        text = ast.get_docstring(node) or ''
        if (VAGUE if isinstance(node, ast.FunctionDef) else RIDDLE).match(text):
            yield f'{getattr(node, "name", "")}: {text.splitlines()[0]}'


def test_docstrings_name_their_object() -> None:
    wrong = [f'{below(path)} {one}' for path in SOURCES
             for one in riddles(tree_of(path))]
    assert not wrong, '\n'.join(wrong)


@pytest.mark.parametrize(('source', 'count'), [
    ('"""How nodes end."""', 1), ('class A:\n    """What it does."""', 1),
    ('"""End of nodes."""', 0), ('class A:\n    """Whatever a thing is."""', 0),
    ('def f():\n    """Return what it finds."""', 1),
    ('def f():\n    """Whether it is open."""', 0)])
def test_riddles_are_seen(source: str, count: int) -> None:
    assert len(list(riddles(ast.parse(source)))) == count


NOTATION = (ROOT / 'docs' / 'notation.md').read_text()


def test_the_notation_names_code_that_exists() -> None:
    """Every class, function or field in the column of code, but names of parameters."""
    rows = re.findall(r'^\| \$[^|]*\| ([^|]*) \|', NOTATION, re.M)
    names = {part for row in rows for code in re.findall(r'`([^`]*)`', row)
             for name in code.split(', ') for part in name.split('.')
             if part.isidentifier() and len(part) > 3}
    defined = {node.name for path in SOURCES for node in nodes_of(path)
               if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    defined |= {name.id if isinstance(name, ast.Name) else name.attr for path in SOURCES
                for name in nodes_of(path) if isinstance(name, (ast.Name, ast.Attribute))}
    defined |= {part for path in SOURCES for part in path.with_suffix('').parts}
    defined |= {name for path in (PACKAGE / 'robot_dynid' / 'kernels').glob('*.hpp')
                for name in re.findall(r'\w+', path.read_text())}
    assert len(names) > 30
    assert not names - defined
