"""docs/architecture.md: its examples are followed literally, its table lists every folder."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'robot_dynid'
PAGE = (ROOT / 'docs' / 'architecture.md').read_text(encoding='utf-8')
#: from the bottom up, as test_architecture.py holds them
ROOMS = runpy.run_path(str(Path(__file__).with_name('test_architecture.py')))['ROOMS']
NEW_FILE = re.compile(r'# ((?:robot_dynid|config|my_lab)/\S+)\n')
TASKS = ('robot', 'verb', 'trajectory type', 'effect', 'friction law', 'estimator', 'explanation',
         'package')


class Example(NamedTuple):
    """A block of code and its language."""

    language: str
    text: str


def sections() -> dict[str, list[Example]]:
    """Return the examples of every section "How do I add"."""
    found = re.split(r'^## How do I add an? (.*)\?$', PAGE, flags=re.M)[1:]
    block = re.compile(r'^```(\w+)\n(.*?)^```$', re.M | re.S)
    return {name: [Example(*one) for one in block.findall(text)]
            for name, text in zip(found[::2], found[1::2], strict=True)}


def hunks(diff: str) -> Iterator[tuple[str, str, str]]:
    """Yield (path, text before, text after) of every part of a diff."""
    parts = re.split(r'^--- (\S+)\n', diff, flags=re.M)[1:]
    for path, text in zip(parts[::2], parts[1::2], strict=True):
        lines = text.splitlines()
        yield path, *('\n'.join(line[1:] for line in lines if line[0] in kept) + '\n'
                      for kept in (' -', ' +'))


def follow(example: Example, copy: Path) -> None:
    """Do what an example says: write a file, change one, run a program or a command."""
    if example.language == 'diff':
        for name, before, after in hunks(example.text):
            path = copy / name
            text = path.read_text()
            assert text.count(before) == 1, f'{name} has changed: {before}'
            path.write_text(text.replace(before, after))
    elif new := NEW_FILE.match(example.text):
        path = copy / new[1]
        assert not path.exists(), path
        path.parent.mkdir(exist_ok=True)
        path.write_text(example.text.removeprefix(new[0]) if path.suffix == '.py'
                        else example.text)
    else:
        run(example, copy)


def run(example: Example, copy: Path) -> None:
    """Run a program, or the command line, with the package of the copy."""
    words = ['sh', '-e', '-c'] if example.language == 'sh' else [sys.executable, '-c']
    environment = {**os.environ, 'PYTHONPATH': str(copy),
                   'PATH': os.pathsep.join(map(str, (
                       copy / 'scripts', Path(sys.executable).parent, os.environ['PATH'])))}
    done = subprocess.run([*words, example.text], env=environment, cwd=copy,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize('task', TASKS)
def test_architecture_page_examples_work(task: str, tmp_path: Path) -> None:
    for name in ('robot_dynid', 'robot_dynid_extras', 'config', 'urdf', 'scripts'):
        shutil.copytree(PACKAGE / name, tmp_path / name)  # with its compiled kernels
    shutil.copytree(ROOT / 'robot_dynid_evaluation', tmp_path / 'robot_dynid_evaluation')
    examples = sections()[task]
    assert any(example.language in ('sh', 'python') and not NEW_FILE.match(example.text)
               for example in examples), 'something is tried'
    for example in examples:
        follow(example, tmp_path)


def test_every_section_is_followed() -> None:
    assert tuple(sections()) == TASKS


def test_the_table_lists_every_folder_in_the_order_of_imports() -> None:
    table = PAGE.partition('## Folders and imports')[2].partition('\n## ')[0]
    listed = [name for row in re.findall(r'^\| (`.*?) \|', table, re.M)
              for name in re.findall(r'`(\w+)/?`', row)]
    assert len(listed) == len(set(listed))
    order = [level for name in listed for level, row in enumerate(ROOMS) if name in row]
    assert order == sorted(order)
    assert set(listed) == {name for row in ROOMS for name in row} - {'__init__'}


def test_the_page_is_linked() -> None:
    assert '(docs/architecture.md)' in (ROOT / 'README.md').read_text()


@pytest.mark.parametrize(('diff', 'message'), [
    ('--- a.py\n one\n-two\n+three\n', ''),
    ('--- a.py\n one\n-three\n+four\n', 'a.py has changed')])
def test_changes_are_refused_where_the_text_differs(
    tmp_path: Path, diff: str, message: str
) -> None:
    (tmp_path / 'a.py').write_text('zero\none\ntwo\n')
    if message:
        with pytest.raises(AssertionError, match=message):
            follow(Example('diff', diff), tmp_path)
    else:
        follow(Example('diff', diff), tmp_path)
        assert (tmp_path / 'a.py').read_text() == 'zero\none\nthree\n'
