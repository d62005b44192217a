"""Recordings in object stores, by names like s3://bucket/run.mcap; through fsspec."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from robot_dynid.errors import DataError, MissingDependency, UsageError

#: between the protocol and the place of a recording in an object store
REMOTE = '://'


def is_remote(word: str) -> bool:
    """Return whether a word names something in an object store."""
    return REMOTE in word


def matching(pattern: str) -> list[str]:
    """Return the objects of a store whose names match a pattern with * or ?, in order.

    Raises MissingDependency without the library of the store, DataError where it does not answer.
    """
    with _store(pattern) as (store, place):
        return sorted(store.unstrip_protocol(one) for one in store.glob(place))


def below(path: str) -> list[str] | None:
    """Return the objects in a folder of a store and below it, in order; None where it is none.

    Raises as `matching`.
    """
    with _store(path) as (store, place):
        if not store.isdir(place):
            return None
        return sorted(store.unstrip_protocol(one) for one in store.find(place))


@contextmanager
def on_this_machine(path: str) -> Iterator[str]:
    """Give the path of a file or folder, of one in an object store that of a copy meanwhile.

    Raises MissingDependency without the library of the store, DataError where it does not answer.
    """
    if not is_remote(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix='robot_dynid_') as folder:
        copy = os.path.join(folder, path.rstrip('/').rpartition('/')[2])
        with _store(path) as (store, place):
            if store.isdir(place):
                os.mkdir(copy)
                for one in store.ls(place, detail=False):
                    store.get_file(one, os.path.join(copy, one.rpartition('/')[2]))
            else:
                store.get_file(place, copy)
        yield copy


@contextmanager
def _store(path: str) -> Iterator[tuple[Any, str]]:
    """Give an object store and a place in it; its errors are those of this package."""
    try:
        import fsspec
    except ImportError:
        raise MissingDependency.of('object stores need fsspec', 'fleet') from None
    try:
        yield fsspec.core.url_to_fs(path)
    except FileNotFoundError:
        raise UsageError(f'{path}: there is no such object') from None
    except (ImportError, ValueError) as error:
        raise MissingDependency(f'{path}: {error}') from None
    except Exception as error:  # stores have errors of their own kinds
        raise DataError(f'{path}: cannot be read: {error}') from None
