"""Compiled loops of the broad phase: poses of all bodies, distances of capsules around shapes."""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import G_A, G_B, G_C, G_D, G_P, compiled, inlined

POSE = 12
TINY = 1e-300


@compiled
def poses(parents, geometry, q, out):
    """Fill ``out`` (T, n, 12): rotation row by row and origin of every body in the base frame."""
    local = np.empty(12)
    for t in range(q.shape[0]):
        for j in range(q.shape[1]):
            g = geometry[j]
            c, s = np.cos(q[t, j]), np.sin(q[t, j])
            for i in range(9):
                local[i] = g[G_A + i] + g[G_B + i] * c + g[G_C + i] * s
            for i in range(3):
                local[9 + i] = g[G_P + i] + g[G_D + i] * q[t, j]
            parent = parents[j]
            if parent < 0:
                out[t, j] = local
                continue
            for row in range(3):
                a = out[t, parent, 3 * row]
                b = out[t, parent, 3 * row + 1]
                d = out[t, parent, 3 * row + 2]
                for k in range(3):
                    out[t, j, 3 * row + k] = a * local[k] + b * local[3 + k] + d * local[6 + k]
                out[t, j, 9 + row] = (out[t, parent, 9 + row] + a * local[9] + b * local[10]
                                      + d * local[11])


@inlined
def _clip(x):
    return min(max(x, 0.0), 1.0)


@inlined
def _segments(a, b):
    """Return the distance of two segments (6,), each start and end (Ericson 2005, 5.1.9)."""
    ux, uy, uz = a[3] - a[0], a[4] - a[1], a[5] - a[2]
    vx, vy, vz = b[3] - b[0], b[4] - b[1], b[5] - b[2]
    rx, ry, rz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    uu, vv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz
    uv = ux * vx + uy * vy + uz * vz
    ur, vr = ux * rx + uy * ry + uz * rz, vx * rx + vy * ry + vz * rz
    across = uu * vv - uv * uv
    s = 0.0
    if across > 1e-14 * uu * vv:
        s = _clip((uv * vr - ur * vv) / across)
    t = (uv * s + vr) / max(vv, TINY)
    if t < 0.0 or vv == 0.0:
        t, s = 0.0, _clip(-ur / max(uu, TINY))
    elif t > 1.0:
        t, s = 1.0, _clip((uv - ur) / max(uu, TINY))
    dx, dy, dz = rx + s * ux - t * vx, ry + s * uy - t * vy, rz + s * uz - t * vz
    return np.sqrt(dx * dx + dy * dy + dz * dz)


@compiled
def capsule_distances(bodies, ends, radii, pairs, placed, out):
    """Fill ``out`` (T, K) with the distances of the capsules ``pairs`` (K, 2).

    ``bodies`` (S,) of each capsule, negative at rest; ``ends`` (S, 6) in its frame, ``radii``
    (S,); ``placed`` (T, n, 12) poses of the bodies.
    """
    world = np.empty((len(radii), 6))
    for t in range(out.shape[0]):
        for s in range(len(radii)):
            if bodies[s] < 0:
                world[s] = ends[s]
                continue
            pose = placed[t, bodies[s]]
            for row in range(3):
                for end in range(2):
                    world[s, 3 * end + row] = (
                        pose[9 + row] + pose[3 * row] * ends[s, 3 * end]
                        + pose[3 * row + 1] * ends[s, 3 * end + 1]
                        + pose[3 * row + 2] * ends[s, 3 * end + 2])
        for k in range(pairs.shape[0]):
            a, b = pairs[k, 0], pairs[k, 1]
            out[t, k] = _segments(world[a], world[b]) - radii[a] - radii[b]


@inlined
def _outside(start, stop, half, share):
    """Return the signed distance from a box about the origin of a point on a segment (3,)."""
    square, deepest = 0.0, -np.inf
    for i in range(3):
        beyond = abs(start[i] + share * (stop[i] - start[i])) - half[i]
        deepest = max(deepest, beyond)
        square += max(beyond, 0.0) ** 2
    return np.sqrt(square) if square > 0.0 else deepest


@compiled
def nearest_to_box(start, stop, half, steps, out):
    """Fill ``out`` (E,) with where in [0, 1] segments (E, 3) are nearest to, or deepest in, a box.

    The signed distance from a box is convex: golden section finds its one least value.
    """
    ratio = 0.6180339887498949
    for e in range(len(out)):
        low, high = 0.0, 1.0
        for _ in range(steps):
            a, b = high - ratio * (high - low), low + ratio * (high - low)
            if _outside(start[e], stop[e], half, a) <= _outside(start[e], stop[e], half, b):
                high = b
            else:
                low = a
        out[e] = 0.5 * (low + high)
