"""Linear algebra runs in one thread wherever the package is entered, however many there are."""

from __future__ import annotations

import ast
import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from identified_models import nominal_model, states
from threadpoolctl import threadpool_info, threadpool_limits

import robot_dynid
from robot_dynid.blas import one_blas_thread
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.states import rollout
from robot_dynid.threads import threads_at_most
from robot_dynid.types import Samples

PACKAGE = Path(robot_dynid.__file__).parent
CORE = {'collision', 'estimation', 'excitation', 'execution', 'identification', 'identified',
        'monitoring', 'reduction', 'residual', 'signals', 'trajectories', 'validation'}
#: public functions that read, arrange or describe, and multiply no matrices that could be large
WITHOUT_ALGEBRA = {
    'add_digests', 'add_recording_digests', 'after_caution', 'all_items', 'announcement',
    'build_scene', 'check_points', 'check_pose', 'elements', 'excitation_segments', 'faults',
    'file_of', 'identification_report', 'in_pieces', 'interval_factor', 'keeping_clear',
    'known_robots', 'law_from', 'lifted_by', 'link_table', 'load_log', 'load_robot',
    'load_trajectory', 'motion_limits', 'owned_settings', 'parse_request', 'quick_items',
    'read_recipe', 'recipe_from_text', 'refused_recordings', 'require_any_joint',
    'require_every_joint', 'sampled', 'save_trajectory', 'set_load', 'set_payload', 'shortage',
    'split_window', 'states_leave_out', 'stiff_leaves_out', 'total_duration', 'unguarded',
    'unseen', 'usable', 'validate_result', 'validation_report', 'validation_request',
    'verdict', 'with_command', 'with_moves', 'without_refused', 'write_report',
}
THREADS, MANY = 2, 20_000
#: s: what the waiting threads of BLAS spin at least, and what all else in a process may take
SPIN, NOTHING = 0.02, 0.004


def blas_threads() -> set[int]:
    """Return how many threads each loaded BLAS may use.

    Not that of SCS, a solver of the oracle CVXPY, which is built for one thread.
    """
    return {info['num_threads'] for info in threadpool_info()
            if info['user_api'] == 'blas' and 'scs.libs' not in Path(info['filepath']).parts}


@pytest.fixture
def threads() -> Iterator[None]:
    """Allow BLAS as many threads as it has outside of this suite."""
    with threadpool_limits(limits=THREADS, user_api='blas'):
        assert blas_threads() == {THREADS}
        yield
    assert blas_threads() == {1}


def time_of_others(call: Callable[[], Any]) -> float:
    """Return the processor time [s] of all other threads during a call and just after it."""
    before = time.process_time() - time.thread_time()
    call()
    time.sleep(SPIN)
    return time.process_time() - time.thread_time() - before


def held_to_one_thread(function: Callable[..., Any]) -> bool:
    """Whether a function is decorated."""
    decorated = one_blas_thread()(lambda: None).__code__
    while getattr(function, '__code__', None) is not decorated:
        if not hasattr(function, '__wrapped__'):
            return False
        function = function.__wrapped__
    return True


def imported(path: Path) -> Iterator[Any]:
    """Yield what a module of the command line or of a node imports from the core."""
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        names = node.module.split('.') if isinstance(node, ast.ImportFrom) and node.module else []
        if names[:1] == ['robot_dynid'] and {*names[1:2]} <= CORE:
            module = import_module('.'.join(names))
            yield from (getattr(module, alias.name) for alias in node.names)


def public_functions() -> dict[str, Callable[..., Any]]:
    """Return by name the functions of the core that users, the command line and nodes call."""
    found = [getattr(robot_dynid, name) for name in robot_dynid.__all__]
    for path in (*PACKAGE.glob('cli/*.py'), *PACKAGE.glob('ros/**/*.py')):
        found += imported(path)
    return {one.__name__: one for one in found if inspect.isfunction(one)}


def test_every_public_function_is_held_to_one_thread() -> None:
    functions = public_functions()
    assert {'identify', 'validate', 'design', 'identify_payload',
            'contact_events'} <= functions.keys()
    free = {name for name, one in functions.items() if not held_to_one_thread(one)}
    assert free == WITHOUT_ALGEBRA


def test_every_reduction_is_held_to_one_thread() -> None:
    from robot_dynid.reduction import METHODS

    assert all(held_to_one_thread(method) for method in METHODS.values())


def test_motions_of_models_with_any_law_are_held_to_one_thread() -> None:
    """Residual models and friction laws that are not compiled bring products of their own."""
    assert held_to_one_thread(IdentifiedModel.predicted)
    assert held_to_one_thread(rollout)


def model_with_coupled_axes() -> IdentifiedModel:
    """Return a model whose friction needs products, too, and whose covariance is known."""
    model = nominal_model('tx40')
    count = len(model.values)
    return replace(model, std=np.ones(count), correlation_factor=np.eye(count))


def uses(model: IdentifiedModel) -> dict[str, Callable[[], Any]]:
    """Return a call with many states of every public method that takes numbers."""
    q, qd, qdd = states(model, MANY)
    effort = 0.1 * qdd
    samples = Samples(model.joints, np.arange(MANY) * 1e-3, q, qd, qdd, effort=effort,
                      measured=effort)
    held = np.zeros((200, 20, model.robot.n))
    return {
        'accelerations': lambda: model.accelerations(q, qd, effort),
        'forward': lambda: model.forward(q, qd, effort),
        'forward_by_parameters': lambda: model.forward_by_parameters(q, qd, effort),
        'forward_derivatives': lambda: model.forward_derivatives(q, qd, effort),
        'friction': lambda: model.friction(q, qd, qdd),
        'frictionless_effort': lambda: model.frictionless_effort(q, qd, qdd),
        'gravity': lambda: model.gravity(q),
        'inverse': lambda: model.inverse(q, qd, qdd),
        'inverse_by_parameters': lambda: model.inverse_by_parameters(q, qd, qdd),
        'effort_interval': lambda: model.effort_interval(q, qd, qdd),
        'inverse_derivatives': lambda: model.inverse_derivatives(q, qd, qdd),
        'mass_matrix': lambda: model.mass_matrix(q),
        'outside': lambda: model.outside(q, qd, qdd),
        'predicted': lambda: model.predicted(samples),
        'residual': lambda: model.residual(samples),
        'rollout': lambda: model.rollout(q[:200], 0.0 * qd[:200], held, 1e-3),
        'without_ripple': lambda: model.without_ripple(samples),
    }


def numeric_methods() -> set[str]:
    """Return the public methods of a model with an array among their arguments."""
    found = inspect.getmembers(IdentifiedModel, inspect.isfunction)
    return {name for name, one in found if not name.startswith('_') and any(
        word in str(argument.annotation) for argument in
        list(inspect.signature(one).parameters.values())[1:]
        for word in ('Array', 'Samples'))}


def test_a_model_leaves_the_other_threads_alone(threads: None) -> None:
    model = model_with_coupled_axes()
    calls = uses(model)
    assert calls.keys() | {'forward_elastic', 'inverse_elastic'} == numeric_methods()
    for call in calls.values():
        with one_blas_thread():
            call()  # compiles, and fills what is kept
    time.sleep(0.2)
    with threads_at_most(1):  # kernels may share states out: their threads do not spin
        found = {name: time_of_others(call) for name, call in calls.items()}
    assert max(found.values()) < NOTHING, found
    big = np.ones((MANY, 64))
    assert time_of_others(lambda: big @ big.T[:, :64]) > NOTHING, 'the clock sees no thread'


def test_large_algebra_in_a_decorated_function_has_one_thread(threads: None) -> None:
    big = np.random.default_rng(0).normal(size=(400, 400))

    @one_blas_thread()
    def algebra() -> set[int]:
        scipy.linalg.qr(np.linalg.inv(big) @ big)
        return blas_threads()

    assert algebra() == {1}
    assert blas_threads() == {THREADS}


class Elsewhere:
    """A block in another thread, entered and left on request."""

    def __init__(self) -> None:
        self._inside, self._leave = Event(), Event()
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        with one_blas_thread():
            self._inside.set()
            self._leave.wait(60.0)

    def enter(self) -> None:
        """Return once the block is entered."""
        self._thread.start()
        assert self._inside.wait(60.0)

    def leave(self) -> None:
        """Return once the block is left."""
        self._leave.set()
        self._thread.join(60.0)


def test_the_last_of_overlapping_blocks_restores(threads: None) -> None:
    elsewhere = Elsewhere()
    with one_blas_thread():
        elsewhere.enter()
    assert blas_threads() == {1}, 'the other block still works'
    elsewhere.leave()
    assert blas_threads() == {THREADS}


def test_a_block_in_any_thread_counts(threads: None) -> None:
    elsewhere = Elsewhere()
    elsewhere.enter()
    assert blas_threads() == {1}
    with one_blas_thread():
        elsewhere.leave()
        assert blas_threads() == {1}
    assert blas_threads() == {THREADS}


def test_blas_limit_of_others_applies_after_one_blas_thread() -> None:
    elsewhere = Elsewhere()
    elsewhere.enter()
    elsewhere.leave()
    with threadpool_limits(limits=THREADS, user_api='blas'):
        assert blas_threads() == {THREADS}


def test_an_error_restores(threads: None) -> None:
    with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
        raise ZeroDivisionError
    assert blas_threads() == {THREADS}


def test_the_suite_itself_runs_with_one_thread() -> None:
    assert {info['num_threads'] for info in threadpool_info()} == {1}
