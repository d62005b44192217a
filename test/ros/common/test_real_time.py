"""Real-time scheduling of all threads but those that compute for long, where it is permitted."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip('rclpy')

SCRIPT = """
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from robot_dynid.ros.common import real_time

ended = threading.Event()
threads = [threading.Thread(target=ended.wait, name=name) for name in ('listener', 'design_0')]
for thread in threads:
    thread.start()
print(repr(real_time.ask_real_time(real_time.WATCHING, ('design',))))
ids = [0, *(thread.native_id for thread in threads)]
print([os.sched_getscheduler(thread) for thread in ids])
pool = ThreadPoolExecutor(max_workers=1, initializer=real_time.exempt_thread)
print(pool.submit(lambda: os.sched_getscheduler(0)).result())
real_time.give_up_real_time()
print([os.sched_getscheduler(thread) for thread in ids])
ended.set()
"""


@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='real-time scheduling of Linux')
def test_ask_real_time_exempts_threads_that_compute_for_long() -> None:
    done = subprocess.run([sys.executable, '-c', SCRIPT], timeout=60.0, capture_output=True,
                          text=True, check=True)
    refused, asked, computing, given_up = done.stdout.splitlines()
    own = os.sched_getscheduler(0)  # `make test` runs this on the time that others leave
    assert asked == (f'[1, 1, {own}]' if refused == "''" else f'[{own}, {own}, {own}]')
    assert computing == '0'
    assert given_up == '[0, 0, 0]'


COLLECTIONS = """
import gc
import time
from robot_dynid.ros.common import process

gc.disable()


def seconds():
    begun = time.perf_counter()
    gc.collect()
    return time.perf_counter() - begun


class Node:
    waitables = ()

    def __init__(self):
        self.objects = [[number] for number in range(300_000)]
        self.at_first = seconds()

    def close(self):
        print(seconds() / self.at_first)

    def destroy_node(self):
        pass


process.run('node', Node, lambda node, stop: None)
"""


def test_a_node_that_runs_is_not_held_up_by_a_collection_of_garbage(ros_domain: int) -> None:
    done = subprocess.run([sys.executable, '-c', COLLECTIONS], timeout=60.0, capture_output=True,
                          text=True, check=True)
    assert float(done.stdout) < 0.2  # 0.01 to 0.03, and 1 if all objects are looked at
