"""Read tables of numbers from array files: NumPy, MATLAB, JSON, Parquet."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from robot_dynid.errors import DataError, DynIdError, MissingDependency, clipped
from robot_dynid.files import TEXT_BYTES, budget, open_regular
from robot_dynid.io.findings import require_memory
from robot_dynid.io.tables.matlab import read_matlab
from robot_dynid.io.tables.table import COLUMNS, DEPTH, Layout, RowsOf, arrays_of
from robot_dynid.types import FloatArray

#: largest JSON text [bytes]; its numbers take about ten times as much memory
JSON_BYTES = 4 * TEXT_BYTES


def read_array_table(path: str) -> tuple[Layout, RowsOf]:
    """Return the layout of a table of arrays, and a function that returns its rows in one piece.

    Arrays of the length of the table are columns, those with a second dimension one per entry of
    it: ``q[0]``, ``q[1]``, ... Raises DataError for invalid files, MissingDependency without the
    library of the format.
    """
    ending = Path(path).suffix
    try:
        content = READERS[ending](path)
    except DynIdError:
        raise
    except Exception as error:  # any error of a library
        raise DataError(f'{path}: cannot be read as {ending}: {clipped(str(error), 200)}; copy or '
                        'record it again') from None
    names, columns = _columns(path, dict(arrays_of(content)))
    values = np.column_stack(columns)
    layout = Layout(path, names, ('',) * len(names), (None,) * len(names),
                    numbered=ending == '.npy')

    def rows(texts: Mapping[int, str]) -> Iterator[FloatArray]:
        yield values

    return layout, rows


def _numpy(path: str) -> Any:
    with open_regular(path, DataError) as file:
        try:
            if zipfile.is_zipfile(file):
                _require_size(path, file)
            file.seek(0)
            loaded = np.load(file, allow_pickle=False)
            return loaded if isinstance(loaded, np.ndarray) else dict(loaded)
        except (ValueError, zipfile.BadZipFile) as error:
            raise DataError(f'{path}: is damaged, truncated, or holds objects ({error}); save '
                            'arrays of numbers') from None


def _require_size(path: str, file: BinaryIO) -> None:
    """Raise DataError if the arrays of a .npz unpack to more than the limit."""
    limit = budget(os.fstat(file.fileno()).st_size)
    with zipfile.ZipFile(file) as content:
        if sum(one.file_size for one in content.infolist()) > limit:
            raise DataError(f'{path}: it unpacks to more than {limit} bytes; save its arrays with '
                            'numpy.savez if it is a recording')


def _json(path: str) -> Any:
    with open_regular(path, DataError) as file:
        text = file.read(JSON_BYTES + 1)
    if len(text) > JSON_BYTES:
        raise DataError(f'{path}: has more than {JSON_BYTES} bytes; write a .csv or .npz file')
    try:
        return _from_records(json.loads(text))
    except json.JSONDecodeError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not lines[1].startswith(b'{'):
            raise
        return _from_records([json.loads(line) for line in lines])  # a record on every line


def _from_records(content: Any) -> Any:
    """Return columns of records, [{t: 0, q: [..]}, ..], of names and rows, or of columns."""
    if isinstance(content, Mapping) and {'columns', 'data'} <= set(content):
        return dict(zip(map(str, content['columns']), zip(*content['data'])))
    if isinstance(content, list) and content and all(isinstance(x, Mapping) for x in content):
        flat = [dict(_leaves(one)) for one in content]
        return {name: [one.get(name, np.nan) for one in flat] for name in flat[0]}
    if isinstance(content, Mapping):
        columns = {key: _from_records(value) for key, value in content.items()}
        return columns if len(columns) > 1 else next(
            (value for value in columns.values() if isinstance(value, Mapping)), columns)
    return content


def _leaves(content: Mapping[str, Any], start: str = '') -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and start.count('.') < DEPTH:
            yield from _leaves(value, f'{start}{key}.')
        else:
            yield f'{start}{key}', value


def _parquet(path: str) -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingDependency.of(f'{path}: .parquet needs pyarrow', 'tables') from None
    with open_regular(path, DataError) as file:
        table = parquet.read_table(file)
    require_memory(table.num_rows * table.num_columns)
    return {name: table.column(name).to_pylist() if str(table.schema.field(name).type).startswith(
        ('list', 'large_list', 'fixed_size_list')) else table.column(name).to_numpy()
        for name in table.column_names}


READERS: dict[str, Callable[[str], Any]] = {
    '.npz': _numpy, '.npy': _numpy, '.mat': read_matlab, '.json': _json, '.jsonl': _json,
    '.parquet': _parquet}


def _columns(
    path: str, arrays: dict[str, FloatArray]
) -> tuple[tuple[str, ...], list[FloatArray]]:
    """Return the columns of arrays as long as the table; raises DataError if there are none."""
    shapes = ', '.join(f'{name or "array"} {value.shape}' for name, value in arrays.items())
    if not arrays:
        raise DataError(f'{path}: has no arrays of numbers')
    vectors = [len(value) for value in arrays.values() if value.ndim == 1]
    longest = [max(value.shape) for value in arrays.values()]
    rows = max(vectors, key=vectors.count) if vectors else max(longest, key=longest.count)
    rows = max(rows, max(longest, key=longest.count))
    names, columns = list[str](), list[FloatArray]()
    for name, value in arrays.items():
        if value.ndim == 2 and value.shape[0] == value.shape[1] == rows:
            raise DataError(f'{path}: {name} is {value.shape}: rows and columns cannot be told '
                            'apart; cut the recording, or make it longer')
        if value.ndim == 2 and value.shape[1] == rows:
            value = value.T
        if len(value) != rows:
            continue
        several = value.ndim == 2
        names += [f'{name}[{k}]' if name else str(k + 1) for k in range(value.shape[1])] \
            if several else [name or '1']
        columns += list(value.T) if several else [value]
    if len(names) > COLUMNS or rows < 2:
        raise DataError(f'{path}: not a table of numbers over time; it has {clipped(shapes, 400)}')
    require_memory(rows * len(names))
    outer = {name.partition('.')[0] for name in names}
    if len(outer) == 1 and all('.' in name for name in names):  # all are in one structure
        names = [name.partition('.')[2] for name in names]
    return tuple(names), columns
