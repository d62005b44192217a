"""Model predictive control with an identified model, friction included, by CasADi and IPOPT.

    python examples/predictive_control.py MODEL.yaml

Every period the controller plans efforts for the next ones by direct transcription: inverse
dynamics at the middle of each period, between the effort limits of the robot. The first effort is
held for a period by the compiled rollout of the model, which stands in for the robot.
"""

import sys

import casadi
import numpy as np

from robot_dynid import IdentifiedModel

PERIOD, AHEAD, STEPS = 0.03, 12, 40
#: weights of position and velocity errors, and of efforts in parts of their limits
POSITION, VELOCITY, EFFORT = 100.0, 2.0, 1e-2


def controller(inverse, limit):
    """Return a function of state, target and last plan: the effort to send, and the new plan."""
    opti, n = casadi.Opti(), len(limit)
    q, v, a = (opti.variable(n, AHEAD + extra) for extra in (1, 1, 0))
    start, target = opti.parameter(2 * n), opti.parameter(n)
    opti.subject_to(casadi.vertcat(q[:, 0], v[:, 0]) == start)
    opti.subject_to(v[:, 1:] == v[:, :-1] + PERIOD * a)
    opti.subject_to(q[:, 1:] == q[:, :-1] + 0.5 * PERIOD * (v[:, :-1] + v[:, 1:]))
    effort = inverse(0.5 * (q[:, :-1] + q[:, 1:]), 0.5 * (v[:, :-1] + v[:, 1:]), a)
    share = effort / limit
    opti.subject_to(opti.bounded(-1.0, casadi.vec(share), 1.0))
    away = q[:, 1:] - casadi.repmat(target, 1, AHEAD)
    opti.minimize(POSITION * casadi.sumsqr(away) + VELOCITY * casadi.sumsqr(v[:, 1:])
                  + EFFORT * casadi.sumsqr(share))
    opti.solver('ipopt', {'expand': True, 'print_time': False},
                {'print_level': 0, 'sb': 'yes', 'bound_relax_factor': 0.0})
    return opti.to_function('control', [start, target, q, v, a], [effort[:, 0], q, v, a])


def reach(model, target, inverse=None):
    """Return positions, those that were predicted, and efforts (T, n) from zero to ``target``."""
    n, limit = model.robot.n, model.robot.limits.effort
    control = controller(inverse or model.to_casadi().inverse, limit)
    q, v = np.zeros(n), np.zeros(n)
    plan = [np.zeros((n, AHEAD + extra)) for extra in (1, 1, 0)]
    found = []
    for _ in range(STEPS):
        effort, *plan = (np.array(part) for part in control(np.hstack([q, v]), target, *plan))
        moved = model.rollout(q, v, effort.reshape(1, 1, n), PERIOD)
        q, v = moved.position[0, -1], moved.velocity[0, -1]
        found.append((q, plan[0][:, 1], effort.ravel()))
    return tuple(np.array(part) for part in zip(*found, strict=True))


if __name__ == '__main__':
    identified = IdentifiedModel.load(sys.argv[1])
    goal = np.linspace(0.8, -0.8, identified.robot.n)
    positions, predicted, efforts = reach(identified, goal)
    print('from the target in the end [rad, m]:', np.abs(positions[-1] - goal).max())
    print('from the prediction at most [rad, m]:', np.abs(positions - predicted).max())
    shares = np.abs(efforts) / identified.robot.limits.effort
    print('efforts at most, in parts of their limits:', shares.max())
