"""Compiled code where it cannot be stored: one message, and kernels that work all the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MODULE = """
from robot_dynid.kernels.newton_euler import compiled


@compiled
def twice(number):
    return 2.0 * number
"""
CALL = """
import json, warnings
from kernel_of_a_test import twice
from robot_dynid.kernels.compilation import compilation_heard, ready_signatures, storage_problem
before, heard = ready_signatures(twice), []
with compilation_heard(heard.append), warnings.catch_warnings(record=True) as told:
    warnings.simplefilter('always')
    found = [twice(2.0), twice(3)]
print(json.dumps([found, before, heard, ready_signatures(twice), storage_problem(),
                  [f'{one.category.__name__}: {one.message}' for one in told]]))
"""
#: root, whom no permission stops, without what makes it so
AS_OTHERS = ('setpriv', '--bounding-set=-all', '--inh-caps=-all') if os.geteuid() == 0 else ()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with a kernel, which can be removed again when it is read-only."""
    if AS_OTHERS and shutil.which(AS_OTHERS[0]) is None:
        pytest.skip('root is stopped by no permission: setpriv of util-linux is missing')
    folder = tmp_path / 'site'
    folder.mkdir()
    (folder / 'kernel_of_a_test.py').write_text(MODULE)
    yield folder
    for one in (folder, *folder.rglob('*')):
        one.chmod(0o755)


def lock(folder: Path) -> None:
    """Make a folder and all below read-only."""
    for one in (*folder.rglob('*'), folder):
        one.chmod(0o555 if one.is_dir() else 0o444)


def called(root: Path, site: Path, **more: str) -> Any:
    """Return what CALL prints in a process of an account without a home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(
        ('NUMBA', 'XDG', 'HOME'))}
    path = os.pathsep.join([str(site), str(root)])
    done = subprocess.run(
        [*AS_OTHERS, sys.executable, '-c', CALL], capture_output=True, text=True, timeout=60,
        check=False, env={**kept, 'HOME': str(site / 'none'), 'PYTHONPATH': path, **more})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_where_nothing_can_be_written_it_is_said_once_and_compiled_in_memory(
    root: Path, site: Path
) -> None:
    """As under a service account, in a container with read-only packages."""
    lock(site)
    folder = str(site / 'x')
    found, before, heard, ready, problem, told = called(root, site, NUMBA_CACHE_DIR=folder)
    assert (found, before, heard, ready) == ([4.0, 6.0], 0, ['twice'] * 2, 2)
    assert told == [f'UnstoredKernelsWarning: {problem}']
    assert f'nothing can be written to NUMBA_CACHE_DIR={folder} or the folders in ' in problem
    assert 'set the environment variable NUMBA_CACHE_DIR to a folder that' in problem


def test_what_is_stored_is_used_where_it_cannot_be_written(root: Path, site: Path) -> None:
    """As in an image of a container whose build compiled the kernels."""
    assert called(root, site)[2:] == [['twice'] * 2, 2, None, []]
    lock(site)
    found, before, heard, ready, problem, told = called(root, site)
    assert (found, before, heard, ready, told) == ([4.0, 6.0], 2, [], 2, [])
    assert problem.startswith('the compiled numerical kernels cannot be stored'), 'if asked'


def test_a_folder_that_can_be_written_is_the_remedy(
    root: Path, site: Path, tmp_path: Path
) -> None:
    lock(site)
    for heard in (['twice'] * 2, []):
        assert called(root, site, NUMBA_CACHE_DIR=str(tmp_path / 'kernels'))[2:] == [
            heard, 2, None, []]


def test_compiled_code_that_cannot_be_read_is_compiled_in_memory(
    root: Path, site: Path
) -> None:
    """As where another account's compiled code is in the way."""
    called(root, site)
    for index in (site / '__pycache__').glob('*.nbi'):
        index.chmod(0)
    found, _, heard, ready, problem, told = called(root, site)
    assert (found, heard, ready, told) == (
        [4.0, 6.0], ['twice'] * 2, 2, [f'UnstoredKernelsWarning: {problem}'])
    assert 'Permission denied' in problem
