"""Tests of the excitation node on a machine that holds it up."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest

ATTEMPTS = 3


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Try a test again in which the node said that it was held up, as by other processes.

    It gives up every motion then, whatever the test is about; no parameter of it is for that.
    """
    stage = pyfuncitem.funcargs.get('stage')
    if not hasattr(stage, 'held_up'):
        return None
    given = {name: pyfuncitem.funcargs[name]
             for name in inspect.signature(pyfuncitem.obj).parameters}
    for left in reversed(range(ATTEMPTS)):
        before = stage.held_up
        try:
            pyfuncitem.obj(**given)
            break
        except AssertionError:
            if not left or stage.held_up == before:
                raise
            warnings.warn(f'{pyfuncitem.name}: the node was held up; tried again', stacklevel=1)
            stage.reset(**stage.changed)
    return True
