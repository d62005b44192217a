"""Records of what long tests and benchmarks measured, which docs/trust_page.py makes a page of.

Each is a JSON file of its figures in the folder that the environment variable ROBOT_DYNID_TRUST
names.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from robot_dynid.files import atomic_write
from robot_dynid.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
#: names the folder of records; without it none are kept
VARIABLE = 'ROBOT_DYNID_TRUST'


def keep(kind: str, figures: Mapping[str, Any], seconds: float, part: str = '') -> None:
    """Write a record into the folder that VARIABLE names; do nothing without it.

    ``seconds`` is how long was measured; ``part`` tells records of one kind apart. Figures that
    are not finite are null.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    record = {
        'kind': kind, 'part': part, 'date': f'{datetime.now(timezone.utc):%Y-%m-%d}',
        'seconds': round(seconds, 1), 'machine': _machine(), 'version': _version(),
        'figures': _plain(figures)}
    name = re.sub(r'\W+', '-', f'{kind} {part}'.strip())
    Path(folder).mkdir(parents=True, exist_ok=True)
    atomic_write(Path(folder) / f'{name}.json', json.dumps(record, indent=1) + '\n')


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _machine() -> str:
    """Return cores, memory and processor of this machine."""
    memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30
    try:
        names = re.findall(r'^model name\s*: (.*)$', Path('/proc/cpuinfo').read_text(), re.M)
    except OSError:
        names = []
    processor = names[0] if names else platform.machine()
    return f'{os.cpu_count()} cores ({processor}), {memory:.0f} GB'


def _version() -> str:
    """Return the version, with the commit where it is known."""
    command = ['git', '-C', str(ROOT), 'rev-parse', '--short', 'HEAD']
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return VERSION
    return f'{VERSION} ({done.stdout.strip()})' if done.returncode == 0 else VERSION
