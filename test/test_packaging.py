"""What is installed is complete, and nothing names the machine it was written on."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import setuptools

ROOT = Path(__file__).resolve().parents[1]
MACHINE_PATH = re.compile('(?<![\\w.}~])/(?:wor' + 'k|roo' + 't|hom' + 'e/\\w+|tmp/ve' + 'nv)/')


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what setup.py passes to setuptools."""
    passed: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, 'setup', passed.update)
    monkeypatch.chdir(ROOT)
    exec(compile((ROOT / 'setup.py').read_text(), 'setup.py', 'exec'), {'__name__': 'setup'})
    return passed


def committed() -> list[Path]:
    """Return every committed file; skip outside a git repository."""
    command = ['git', 'ls-files', '-z']
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip('committed files: not a git repository')
    return [path for name in listed.stdout.split('\0') if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize('folder', ['config', 'launch', 'urdf'])
def test_shared_files_are_installed_at_the_same_place(
    installed: dict[str, Any], folder: str
) -> None:
    targets = {
        f'{target}/{Path(name).name}'
        for target, names in installed['data_files']
        for name in names
    }
    files = [p for p in (ROOT / folder).rglob('*') if p.is_file() and p.suffix != '.pyc']
    missing = [p for p in files if f'share/robot_dynid/{p.relative_to(ROOT)}' not in targets]
    assert not missing


def test_ament_finds_the_package(installed: dict[str, Any]) -> None:
    targets = dict(installed['data_files'])
    assert targets['share/ament_index/resource_index/packages'] == ['resource/robot_dynid']
    assert targets['share/robot_dynid'] == ['package.xml']


def test_files_beside_the_modules_are_package_data(installed: dict[str, Any]) -> None:
    package = ROOT / 'robot_dynid'
    patterns = installed['package_data']['robot_dynid']
    files = [p for p in package.rglob('*') if p.is_file() and '__pycache__' not in p.parts]
    others = [str(p.relative_to(package)) for p in files if p.suffix != '.py']
    missing = [name for name in others if not any(fnmatch(name, p) for p in patterns)]
    assert not missing


def test_every_folder_of_modules_is_a_package(installed: dict[str, Any]) -> None:
    folders = {p.parent.relative_to(ROOT) for p in (ROOT / 'robot_dynid').rglob('*.py')}
    assert {'.'.join(folder.parts) for folder in folders} == set(installed['packages'])


def test_versions_agree(installed: dict[str, Any]) -> None:
    for name in ('package.xml', 'robot_dynid_interfaces/package.xml'):
        assert f'<version>{installed["version"]}</version>' in (ROOT / name).read_text()


def test_no_committed_file_names_a_path_of_one_machine() -> None:
    wrong = []
    for path in committed():
        text = path.read_bytes().decode('utf-8', errors='ignore')
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                wrong.append(f'{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}')
    assert not wrong, '\n'.join(wrong)
