"""Requests which the identifier must refuse, and the words it must use."""

from __future__ import annotations

from typing import Any

import numpy as np

JOINTS = tuple(f'joint_{i}' for i in range(1, 8))
ORDER = np.random.default_rng(7).permutation(7)
PERMUTED = [JOINTS[i] for i in ORDER]


def state(**changes: Any) -> dict[str, Any]:
    """Return two states of a good request, with changes."""
    return {name: np.zeros(14) for name in ('position', 'velocity', 'effort')} | changes


def with_bad(value: float) -> np.ndarray[Any, Any]:
    numbers = np.zeros(14)
    numbers[9] = value
    return numbers


BAD_STATES = [
    (state(position=[]), 'position is empty, expected K*7 numbers'),
    (state(position=np.zeros(13)), 'position has 13 numbers, expected a multiple of 7'),
    (state(velocity=np.zeros(7)), 'velocity has 7 numbers, expected 14 as position: 2 states'),
    (state(effort=[]), 'effort has 0 numbers, expected 14'),
    (state(joint_names=[*JOINTS[:6], 'elbow']), "no joint 'elbow'; the model has joint_1, joint"),
    (state(joint_names=[*JOINTS[:6], 'joint_1']), "joint 'joint_1' is named 2 times"),
    (state(joint_names=list(JOINTS[:6])), 'joint_names: joint_7 is missing'),
    (state(position=with_bad(np.nan)), "position[9] is nan: joint 'joint_3' of state 1"),
    (state(velocity=with_bad(np.inf)), "velocity[9] is inf: joint 'joint_3' of state 1"),
    (state(effort=with_bad(-np.inf), joint_names=PERMUTED),
     f"effort[9] is -inf: joint '{PERMUTED[2]}' of state 1"),
    (state(motor_position=np.zeros(14)), 'motor_position has 14 numbers, but the joints'),
]

BAD_ROLLOUTS = [
    ({'effort': np.zeros(15)}, 'effort has 15 numbers, expected 14*T'),
    ({'effort': []}, 'effort has 0 numbers, expected 14*T'),
    ({'dt': 0.0}, 'dt is 0.0, it must be finite and above zero'),
    ({'dt': float('nan')}, 'dt is nan'),
    ({'dt': 1e6}, 'the step of a rollout must be above zero and at most 60 s, is 1e+06 s'),
    ({'dt': 60.0, 'effort': np.zeros(14 * 20_000)},
     'continue from the last state in another call'),
    ({'velocity': with_bad(np.nan)}, "velocity[9] is nan: joint 'joint_3' of state 1"),
]
