"""The two ROS packages, as the finders of rosdep, bloom and colcon see them."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {'robot_dynid', 'robot_dynid_interfaces'}


def test_package_finders_see_both_packages_and_no_other() -> None:
    """rosdep and bloom look for packages with catkin_pkg."""
    packages = pytest.importorskip('catkin_pkg.packages')
    assert {*packages.find_packages(str(ROOT))} == PACKAGES


@pytest.mark.parametrize('name', sorted(PACKAGES))
def test_a_package_has_all_that_its_release_branch_needs(name: str) -> None:
    """bloom exports the folder of a package alone."""
    folder = ROOT / name
    assert f'Changelog for package {name}' in (folder / 'CHANGELOG.rst').read_text()
    assert not [path for path in folder.rglob('*') if path.is_symlink()]
    licence = folder / 'LICENSE'
    assert 'file="LICENSE"' not in (folder / 'package.xml').read_text() or (
        licence.read_bytes() == (ROOT / 'LICENSE').read_bytes())


def test_the_root_is_no_package() -> None:
    """colcon goes below a folder only if it is no package itself."""
    assert not any((ROOT / name).exists() for name in ('package.xml', 'setup.py', 'setup.cfg'))
