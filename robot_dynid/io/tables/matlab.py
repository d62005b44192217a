"""MATLAB files, read by SciPy in a process of its own, which a damaged file may take down.

`scipy.io.loadmat` trusts sizes in the file: a few changed bytes are a segmentation fault.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

from numpy.lib import format

from robot_dynid.errors import DataError
from robot_dynid.io.tables.table import arrays_of
from robot_dynid.types import FloatArray

#: exit codes of the process: read, a fault of its own, version 7.3, no MATLAB file
READ, FAULT, NEWER, OTHER = 0, 1, 3, 4
#: longest that a file takes [s]
TIMEOUT = 600.0


def read_matlab(path: str) -> dict[str, FloatArray]:
    """Return the arrays (N,), (N, k) of a file by name, those of structures as ``NAME.FIELD``.

    Raises DataError for what is no MATLAB file up to version 7, or is damaged.
    """
    folders = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get('PYTHONPATH')])]
    found = subprocess.run(
        [sys.executable, '-c', f'import {__name__} as matlab; matlab.convert()', path],
        capture_output=True, timeout=TIMEOUT, check=False,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(folders)})
    if found.returncode == NEWER:
        raise DataError(f'{path}: is a MATLAB file of version 7.3 (HDF5), which is not read; in '
                        "MATLAB: save('run.mat', 't', 'q', 'tau', '-v7')")
    if found.returncode == FAULT:
        raise DataError(f'{path}: cannot be read: {found.stderr.decode().splitlines()[-1]}')
    if found.returncode != READ:
        raise DataError(f'{path}: is no MATLAB file, or damaged; copy or save it again')
    names, _, content = found.stdout.partition(b'\n')
    stream = io.BytesIO(content)
    return {name: format.read_array(stream, allow_pickle=False) for name in json.loads(names)}


def convert() -> None:
    """Write the arrays of the file that is named on the command line to standard output."""
    from scipy.io import loadmat

    try:
        content = loadmat(sys.argv[1], simplify_cells=True)
    except NotImplementedError:
        sys.exit(NEWER)
    except Exception:  # of a damaged file: any
        sys.exit(OTHER)
    arrays = dict(arrays_of({key: value for key, value in content.items()
                             if not key.startswith('__')}))
    stream = io.BytesIO()  # NumPy looks for its place in a file, which a pipe has not
    for array in arrays.values():
        format.write_array(stream, array, allow_pickle=False)
    sys.stdout.buffer.write(json.dumps([*arrays]).encode() + b'\n' + stream.getvalue())
