"""First start after an installation: compiled beside the node, which says how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')

from in_process import Spinner
from std_srvs.srv import Trigger

from robot_dynid.ros.common import kernel_compilation
from robot_dynid.ros.common.kernel_compilation import KernelCompilation, NotReady
from robot_dynid.ros.common.services import ServiceThread

KERNELS = ('first', 'second', 'third')
#: stands for the process that compiles: it makes one file for every kernel
COMPILES = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
for name in sys.argv[2:]:
    (folder / name).touch()
    end = time.monotonic() + 60.0
    while not (folder / f'after {name}').exists() and time.monotonic() < end:
        time.sleep(0.01)
"""


class Heard:
    """Takes the place of the logger of a node."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str) -> None:
        self.lines.append(text)

    warning = error = info


@pytest.fixture
def log(node: Any, monkeypatch: pytest.MonkeyPatch) -> Heard:
    heard = Heard()
    monkeypatch.setattr(node, 'get_logger', lambda: heard)
    monkeypatch.setattr(kernel_compilation, 'COMPILATION_LOOK', 0.02)
    monkeypatch.setattr(kernel_compilation, 'NEWS_PERIOD', 0.1)
    return heard


def missing(folder: Path) -> Callable[[], tuple[str, ...]]:
    return lambda: tuple(name for name in KERNELS if not (folder / name).exists())


def test_a_node_says_how_far_it_is_and_refuses_meanwhile(
    node: Any, log: Heard, tmp_path: Path
) -> None:
    loaded: list[str] = []
    compilation = KernelCompilation(
        node, (sys.executable, '-c', COMPILES, str(tmp_path), *KERNELS), missing(tmp_path),
        lambda: loaded.append('all'))
    services = ServiceThread(node, 'services', require=compilation.require)
    services.offer(Trigger, 'act', lambda request, response: None)
    services.start()
    spinner, ready = Spinner(node), list[Any]()
    compilation.start(lambda: ready.append(list(loaded)))
    assert not compilation.ready
    client = node.create_client(Trigger, '~/act')
    spinner.wait(client.service_is_ready)
    spinner.wait(lambda: compilation.done == 1)
    early = spinner.answer(client.call_async(Trigger.Request()))
    assert not early.success
    assert early.message.startswith('not ready yet: compiling numerical kernels, 1 of 3 (')
    for count, name in enumerate(KERNELS, 1):
        words = f'compiling numerical kernels, {count} of 3 ('
        spinner.wait(lambda words=words: any(line.startswith(words) for line in log.lines))
        assert compilation.fraction == count / 3 and not ready
        (tmp_path / f'after {name}').touch()
    spinner.wait(lambda: ready)
    assert spinner.answer(client.call_async(Trigger.Request())).success
    services.close()
    compilation.close()
    assert ready == [['all']], 'once, after everything is loaded'
    assert compilation.fraction == 1.0
    assert log.lines[0].startswith('compiling 3 numerical kernels, once after an installation')
    assert log.lines[-1].startswith('compiled 3 numerical kernels (')


def test_what_is_compiled_already_starts_at_once_and_without_a_word(node: Any, log: Heard) -> None:
    ready: list[bool] = []
    compilation = KernelCompilation(node, ('false',), tuple, lambda: None)
    compilation.start(lambda: ready.append(True))
    compilation.require()
    assert (ready, log.lines, compilation.fraction) == ([True], [], 1.0)


def test_a_process_that_dies_leaves_the_work_to_the_node(
    node: Any, log: Heard, tmp_path: Path
) -> None:
    loaded: list[bool] = []
    compilation = KernelCompilation(
        node, ('false',), missing(tmp_path), lambda: loaded.append(True))
    spinner, ready = Spinner(node), list[Any]()
    compilation.start(lambda: ready.append(True))
    spinner.wait(lambda: ready)
    assert loaded
    assert any('3 kernels were not stored' in line and 'exit code 1' in line and
               'NUMBA_CACHE_DIR' in line for line in log.lines)


def test_where_nothing_can_be_stored_the_node_says_so_and_compiles_itself(
    node: Any, log: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_compilation, 'storage_problem', lambda: 'no folder')
    ready: list[bool] = []
    compilation = KernelCompilation(
        node, ('false',), missing(tmp_path),
        lambda: [(tmp_path / name).touch() for name in KERNELS])
    compilation.start(lambda: ready.append(True))
    Spinner(node).wait(lambda: ready)
    assert log.lines[0] == 'no folder'
    assert log.lines[1].startswith('compiling 3 numerical kernels, in memory; ')
    assert log.lines[-1].startswith('compiled 3 numerical kernels')
    assert not any('stored by the process' in line for line in log.lines)


def test_closing_ends_the_process(node: Any, log: Heard, tmp_path: Path) -> None:
    compilation = KernelCompilation(node, ('sleep', '600'), missing(tmp_path),
                                    lambda: pytest.fail('nothing is to be loaded'))
    compilation.start(lambda: None)
    begin = time.monotonic()
    compilation.close()
    assert time.monotonic() - begin < 300.0
    with pytest.raises(NotReady, match='0 of 3'):
        compilation.require()
