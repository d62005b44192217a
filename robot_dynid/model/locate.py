"""Where the robots and URDF files that come with the package lie."""

from __future__ import annotations

import os
from pathlib import Path


def shared_folders() -> list[Path]:
    """Return the folders that hold ``config`` and ``urdf``: source tree, installed shares."""
    root = Path(__file__).resolve().parents[2]
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    installed = [Path(p) / 'share' / 'robot_dynid' for p in prefixes if p]
    folders = [root, *root.parents[:4], *installed]
    return [f for f in folders if (f / 'config' / 'robots').is_dir()]


def find(relative: str) -> Path | None:
    """Return the first existing file ``relative`` (such as ``urdf/ur10e.urdf``), or None."""
    for folder in shared_folders():
        if (folder / relative).is_file():
            return folder / relative
    return None


def known_robots() -> list[str]:
    """Return the names of the robots that come with the package."""
    names = {p.stem for f in shared_folders() for p in (f / 'config' / 'robots').glob('*.yaml')}
    return sorted(names)
