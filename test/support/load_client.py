"""A client of the identifier that goes on asking until its input ends; a process of its own.

Arguments: what it asks for, the number of joints, a model file. Prints `ready` after its first
answer, and at the end one line of JSON: calls, those refused for the time they would take, seconds
that the fastest and slowest took, and the percentiles between.
"""

from __future__ import annotations

import array
import json
import select
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import numpy as np
import rclpy

from robot_dynid_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    ComputeRollout,
    LoadModel,
    SaveModel,
)

#: s between calls
PAUSES = {'forward': 0.01, 'inverse': 0.01, 'rollout': 0.0, 'model': 0.5, 'save': 0.0}
PERCENTILES = (0, 50, 95, 99, 100)
PATIENCE = 60.0  # s
ACQUAINTANCE = 2.0  # s for a server to find its client: an answer before is lost, so ask again
MOTIONS, SAMPLES, STEP = 64, 1000, 1e-3  # of a rollout


def numbers(count: int) -> array.array[float]:
    """Return random numbers as a message takes them."""
    return array.array('d', np.random.default_rng(count).uniform(-1.0, 1.0, count).tolist())


def requests(kind: str, joints: int, model: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield service, type and request of one call after the other."""
    n, state = joints, {name: numbers(joints) for name in ('position', 'velocity')}
    if kind == 'forward':
        return cycle([('forward_dynamics', ComputeForwardDynamics,
                       ComputeForwardDynamics.Request(**state, effort=numbers(n)))])
    if kind == 'inverse':
        return cycle([('inverse_dynamics', ComputeInverseDynamics,
                       ComputeInverseDynamics.Request(**state, acceleration=numbers(n)))])
    if kind == 'rollout':
        starts = {name: numbers(n * MOTIONS) for name in state}
        return cycle([('rollout', ComputeRollout, ComputeRollout.Request(
            **starts, effort=numbers(n * MOTIONS * SAMPLES), dt=STEP))])
    save = 'save_model', SaveModel, SaveModel.Request(path=f'{model}.copy')
    if kind == 'save':
        return cycle([save])
    return cycle([('load_model', LoadModel, LoadModel.Request(path=model)), save])


def caller(node: Any) -> Callable[[str, Any, Any], Any]:
    """Return a function that calls a service of the identifier and returns its answer."""
    clients: dict[str, Any] = {}

    def call(name: str, kind: Any, request: Any) -> Any:
        patience = [PATIENCE]
        if name not in clients:
            clients[name] = node.create_client(kind, f'identifier/{name}')
            assert clients[name].wait_for_service(PATIENCE), name
            patience = [ACQUAINTANCE, 10.0 * ACQUAINTANCE, PATIENCE]
        for longest in patience:
            future = clients[name].call_async(request)
            rclpy.spin_until_future_complete(node, future, timeout_sec=longest)
            if future.done():
                return future.result()
        raise AssertionError(f'{name} does not answer')

    return call


def main() -> None:
    """Ask for what the first argument says."""
    kind, joints, model = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    rclpy.init()
    call = caller(rclpy.create_node(f'client_{kind}'))
    asked = requests(kind, joints, model)
    for _ in range(2):  # both services of the model
        request, give_up = next(asked), time.monotonic() + PATIENCE
        while not (answer := call(*request)).success:  # the node has just come up
            assert time.monotonic() < give_up, answer.message
            sys.stderr.write(f'{request[0]}: {answer.message}\n')
            time.sleep(0.2)
    sys.stdout.write('ready\n')
    sys.stdout.flush()
    times: list[float] = []
    refused = 0
    while not select.select([sys.stdin], [], [], PAUSES[kind])[0]:
        request = next(asked)
        begin = time.monotonic()
        answer = call(*request)
        times.append(time.monotonic() - begin)
        refused += not answer.success
        assert answer.success or 's per call)' in answer.message, answer.message
    found = dict(zip(map(str, PERCENTILES), np.percentile(times, PERCENTILES), strict=True))
    sys.stdout.write(json.dumps({'calls': len(times), 'refused': refused, **found}) + '\n')
    rclpy.shutdown()


if __name__ == '__main__':
    main()
