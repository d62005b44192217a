"""Records of what long tests and benchmarks measured, which docs/trust_page.py makes a page of.

Each is a JSON file of its figures in the folder that the environment variable ROBOT_DYNID_TRUST
names, with digests of the code that they speak of.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from robot_dynid.files import atomic_write
from robot_dynid.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
#: names the folder of records; without it none are kept
VARIABLE = 'ROBOT_DYNID_TRUST'
CORE = 'robot_dynid/robot_dynid'
EXTRAS, EVALUATION = 'robot_dynid/robot_dynid_extras', 'robot_dynid_evaluation'
_NODE = f'{CORE}/ros/common', f'{CORE}/ros/identifier', f'{CORE}/ros/recording'
_FIT = f'{CORE}/estimation', f'{CORE}/identification', f'{CORE}/signals'
#: folders and files that the figures of a kind of record speak of
SOURCES = {
    'load': (*_NODE, f'{CORE}/kernels', 'test/ros/test_load.py', 'test/support/load_client.py'),
    'kills': (*_NODE, f'{CORE}/io', f'{CORE}/files.py', 'test/ros/test_load.py'),
    'resumed': (*_FIT, f'{CORE}/workers.py', 'test/identification/test_by_recording.py'),
    'stops': (f'{CORE}/execution', f'{CORE}/ros/excitation', f'{CORE}/ros/simulated_robot',
              f'{EVALUATION}/stops', f'{EVALUATION}/bench/stops.py'),
    'health': (f'{EXTRAS}/health', f'{CORE}/monitoring', f'{EVALUATION}/bench/health.py'),
    'fleet': (f'{EXTRAS}/fleet', *_FIT, f'{EVALUATION}/bench/fleet.py'),
    'months': (f'{EXTRAS}/fleet', *_FIT, 'test/extras/test_fleet.py'),
    'inputs': (f'{CORE}/io', f'{CORE}/robot', f'{CORE}/yaml_text.py', f'{CORE}/identified',
               f'{CORE}/settings.py', 'test/fuzz', 'test/support/fuzzing.py'),
    'many': (*_FIT, f'{CORE}/io', f'{CORE}/workers.py', f'{EVALUATION}/bench/many.py'),
    'plan': (*_FIT, f'{CORE}/io', f'{EXTRAS}/fleet', f'{EVALUATION}/bench/plan.py')}
#: age [days] up to which a record may speak of code that has changed since: `make soak` runs once
#: a week, and may fail once
FRESH = 14


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
        'sources': {source: digest(source) for source in SOURCES[kind]},
        'figures': _plain(figures)}
    name = re.sub(r'\W+', '-', f'{kind} {part}'.strip())
    Path(folder).mkdir(parents=True, exist_ok=True)
    atomic_write(Path(folder) / f'{name}.json', json.dumps(record, indent=1) + '\n')


def digest(source: str) -> str:
    """Return a digest of a file of the repository, or of the code in a folder."""
    path = ROOT / source
    files = [path] if path.is_file() else sorted(
        file for file in path.rglob('*') if file.suffix in ('.py', '.cpp', '.hpp', '.yaml'))
    content = hashlib.sha256()
    for file in files:
        content.update(f'{file.relative_to(ROOT)}\0'.encode() + file.read_bytes())
    return content.hexdigest()[:12]


def outdated(record: Mapping[str, Any], today: date) -> list[str]:
    """Return the sources that changed since a record, if it is older than FRESH days.

    A record without digests says nothing about them: all may have changed.
    """
    if (today - date.fromisoformat(record['date'])).days <= FRESH:
        return []
    measured = record.get('sources', {})
    return [source for source in SOURCES[record['kind']]
            if measured.get(source) != digest(source)]


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
