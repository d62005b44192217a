"""Read MATLAB files by SciPy in a separate process, because damaged files may crash it.

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

#: exit codes of the process: read, internal fault, version 7.3, no MATLAB file
READ, FAULT, NEWER, OTHER = 0, 1, 3, 4
#: time limit per file [s]
TIMEOUT = 600.0


def read_matlab(path: str) -> dict[str, FloatArray]:
    """Return the arrays (N,), (N, k) of a file by name, those of structures as ``NAME.FIELD``.

    Raises DataError if it is no MATLAB file up to version 7, or is damaged.
    """
    folders = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get('PYTHONPATH')])]
    process = subprocess.run(
        [sys.executable, '-c', f'import {__name__} as matlab; matlab.convert()', path],
        capture_output=True, timeout=TIMEOUT, check=False,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(folders)})
    if process.returncode == NEWER:
        raise DataError(f'{path}: is a MATLAB file of version 7.3 (HDF5), which is not read; in '
                        "MATLAB: save('run.mat', 't', 'q', 'tau', '-v7')")
    if process.returncode == FAULT:
        raise DataError(f'{path}: cannot be read: {process.stderr.decode().splitlines()[-1]}')
    if process.returncode != READ:
        raise DataError(f'{path}: not a MATLAB file, or damaged; copy or save it again')
    names, _, content = process.stdout.partition(b'\n')
    stream = io.BytesIO(content)
    return {name: format.read_array(stream, allow_pickle=False) for name in json.loads(names)}


def convert() -> None:
    """Write the arrays of the file named on the command line to standard output."""
    from scipy.io import loadmat

    try:
        content = loadmat(sys.argv[1], simplify_cells=True)
    except NotImplementedError:
        sys.exit(NEWER)
    except Exception:  # any error of a damaged file
        sys.exit(OTHER)
    arrays = dict(arrays_of({key: value for key, value in content.items()
                             if not key.startswith('__')}))
    stream = io.BytesIO()  # NumPy seeks in a file, which a pipe does not allow
    for array in arrays.values():
        format.write_array(stream, array, allow_pickle=False)
    sys.stdout.buffer.write(json.dumps([*arrays]).encode() + b'\n' + stream.getvalue())
