"""Random limits of motion."""

import numpy as np
from hypothesis import strategies as st

from robot_dynid.trajectories.limits import MotionLimits

POSITIVE = st.floats(0.05, 50.0)


def box(n=3, **changes):
    values = {'lower': -2.0, 'upper': 2.5, 'velocity': 2.0, 'acceleration': 5.0,
              'jerk': np.nan, 'effort': np.nan, **changes}
    joints = tuple(f'joint_{i}' for i in range(n))
    return MotionLimits(joints, **{k: np.broadcast_to(v, (n,)).astype(float)
                                   for k, v in values.items()})


@st.composite
def random_boxes(draw):
    n = draw(st.integers(1, 4))
    rows = [draw(st.tuples(st.floats(-5.0, 5.0), *[POSITIVE] * 4)) for _ in range(n)]
    lower, width, velocity, acceleration, jerk = np.array(rows).T
    jerk = jerk * 10.0 if draw(st.booleans()) else np.full(n, np.nan)
    return box(n, lower=lower, upper=lower + width, velocity=velocity,
               acceleration=acceleration, jerk=jerk)
