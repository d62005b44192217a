"""Linear bounds on link parameters beyond physical consistency, also from collision shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from robot_dynid.collision.shapes import collision_ellipsoid
from robot_dynid.errors import RobotError, UsageError
from robot_dynid.numbers import LENGTH, SIZE, NumberRange, is_number, shown
from robot_dynid.robot.inertia import PARAMETERS
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray


def resolve_collision(bounds: Bounds, robot: RobotModel) -> Bounds:
    """Return `bounds` with ellipsoids of the collision primitives in place of COLLISION.

    Raises UsageError naming the link and why its URDF gives none. Links that the robot does not
    move are unchanged; `limits_of` refuses them.
    """

    def resolved(name: str, link: LinkBounds) -> LinkBounds:
        if link.ellipsoid != COLLISION or name not in robot.tree.bodies:
            return link
        try:
            placement, radii = collision_ellipsoid(robot, name)
        except (RobotError, UsageError) as error:
            raise UsageError(
                f'bounds: no ellipsoid of {name} from its collision primitives: {error}; give '
                'ellipsoid: {centre: [x, y, z], radii: [x, y, z]}') from None
        x, y, z = map(_triple, placement[:3, :3])
        return replace(link, ellipsoid=Ellipsoid(
            _triple(placement[:3, 3]), _triple(radii), (x, y, z)))

    return replace(bounds, links=tuple((name, resolved(name, link))
                                       for name, link in bounds.links))


def _triple(values: Iterable[float]) -> Vector:
    x, y, z = map(float, values)
    return x, y, z


Vector = tuple[float, float, float]
Range = tuple[float, float]
AXES = ('x', 'y', 'z')
MASSES = NumberRange(0.0, 1e7, 'kg')
UNTURNED: tuple[Vector, Vector, Vector] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
#: instead of an ellipsoid: that of the collision primitives of the robot's URDF
COLLISION: Literal['collision'] = 'collision'
#: parameters that vanish for a link symmetric along an axis
MIRRORED = {'x': ('mx', 'Ixy', 'Ixz'), 'y': ('my', 'Ixy', 'Iyz'), 'z': ('mz', 'Ixz', 'Iyz')}
M, MX, MY, MZ = range(4)


@dataclass(frozen=True)
class Ellipsoid:
    """A bounding ellipsoid in the link frame: `centre` [m] and `radii` [m] along its axes.

    The axes are the columns of `rotation`, by default those of the link.
    """

    centre: Vector
    radii: Vector
    rotation: tuple[Vector, Vector, Vector] = UNTURNED

    @property
    def row(self) -> FloatArray:
        """Row (10,) whose product with the parameters is tr(Q P).

        The product is not negative if all mass is inside; then the centre of mass is inside, too.
        Source: Wensing, Kim, Slotine, RA-L 2018, section IV.
        """
        rotation = np.asarray(self.rotation)
        shape = rotation @ np.diag(1.0 / np.square(self.radii)) @ rotation.T
        centre = np.asarray(self.centre)
        q = np.block([[-shape, (shape @ centre)[:, None]],
                      [(shape @ centre)[None], 1.0 - centre @ shape @ centre]])
        return _row_of_trace(q)


def _row_of_trace(q: FloatArray) -> FloatArray:
    """Return the row (10,) with ``row @ parameters = tr(Q P)``."""
    shape = q[:3, :3]
    second = 0.5 * np.trace(shape) * np.eye(3) - shape  # I = tr(S) 1 - S, backwards
    row = np.zeros(10)
    row[M], row[MX:MZ + 1] = q[3, 3], 2.0 * q[3, :3]
    for index, (i, j) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))):
        row[4 + index] = second[i, j] * (1.0 if i == j else 2.0)
    return row


@dataclass(frozen=True)
class LinkBounds:
    """Bounds of one moving body, in the frame of its link; None means no bound.

    `mass` [kg] least and largest; `com_lower` and `com_upper` [m] corners of a box around the
    centre of mass; `ellipsoid` around all mass, or COLLISION; `symmetric` the axes (of x, y, z)
    along which the body is symmetric.
    """

    mass: Range | None = None
    com_lower: Vector | None = None
    com_upper: Vector | None = None
    ellipsoid: Ellipsoid | Literal['collision'] | None = None
    symmetric: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bounds:
    """Bounds by name of the moving link, and of the `total_mass` of all [kg]."""

    links: tuple[tuple[str, LinkBounds], ...] = ()
    total_mass: Range | None = None

    def __post_init__(self) -> None:
        for name, link in self.links:
            _check_range(f'mass of {name}', link.mass)
            lower, upper = link.com_lower or (-np.inf,) * 3, link.com_upper or (np.inf,) * 3
            for axis, low, high in zip(AXES, lower, upper, strict=True):
                if not low <= high:
                    raise UsageError(f'bounds: centre of mass of {name} along {axis}: {low} to '
                                     f'{high} m is empty; give the lower end first')
            if isinstance(link.ellipsoid, Ellipsoid) and not min(link.ellipsoid.radii) > 0.0:
                raise UsageError(f'bounds: ellipsoid of {name}: radii must be positive, are '
                                 f'{link.ellipsoid.radii}')
            if set(link.symmetric) - set(AXES):
                raise UsageError(f'bounds: {name} symmetric along {link.symmetric}: use x, y, z')
        _check_range('total mass', self.total_mass)

    def of(self, name: str) -> LinkBounds:
        """Return the bounds of one link."""
        return dict(self.links).get(name, LinkBounds())


def _check_range(what: str, given: Range | None) -> None:
    if given is None:
        return
    low, high = given
    if not high > 0.0 or low < 0.0:
        raise UsageError(f'bounds: {what} from {low} to {high} kg: masses are above zero')
    if not low <= high:
        raise UsageError(f'bounds: {what} from {low} to {high} kg is empty; give the lower end '
                         'first')


@dataclass(frozen=True, eq=False)
class Limits:
    """Linear constraints ``matrix @ standard >= offset``, or ``==`` where `equal`.

    `labels` (m,); `matrix` (m, p); `offset` (m,); `largest` (m, n) contribution of link j to row
    i, for rows about several links.
    """

    labels: tuple[str, ...]
    matrix: FloatArray
    offset: FloatArray
    equal: NDArray[np.bool_]
    largest: FloatArray


def limits_of(bounds: Bounds, robot: RobotModel, parameters: int) -> Limits:
    """Return the constraints of `bounds` on `parameters` standard parameters, ten per link first.

    Raises UsageError naming a link that does not exist or whose ellipsoid is still COLLISION, and
    if no masses add up to the total mass.
    """
    unknown = [name for name, _ in bounds.links if name not in robot.tree.bodies]
    if unknown:
        raise UsageError(f'bounds: {robot.name} moves no link {", ".join(unknown)}; it moves '
                         f'{", ".join(robot.tree.bodies)}')
    open_ones = [name for name, link in bounds.links if isinstance(link.ellipsoid, str)]
    if open_ones:
        raise UsageError(f"bounds: the ellipsoid of {', '.join(open_ones)} has no numbers yet: "
                         'with_collision(bounds, robot) takes them from the URDF')
    ranges = np.array([bounds.of(name).mass or (0.0, np.inf) for name in robot.tree.bodies])
    rows = []
    for i, name in enumerate(robot.tree.bodies):
        for label, row, offset, equal in _link_rows(bounds.of(name)):
            wide = np.zeros(parameters)
            wide[10 * i:10 * i + 10] = row
            rows.append((f'{label} of {name}', wide, offset, equal, np.zeros(robot.tree.n)))
    if bounds.total_mass is not None:
        low, high = bounds.total_mass
        if ranges[:, 0].sum() > high or ranges[:, 1].sum() < low:
            raise UsageError(f'bounds: no masses within the bounds of the links add up to {low} '
                             f'to {high} kg')
        masses = np.zeros(parameters)
        masses[:10 * robot.tree.n:10] = 1.0
        rows.append(('minimum total mass', masses, low, False, ranges[:, 1]))
        rows.append(('maximum total mass', -masses, -high, False, -ranges[:, 0]))
    return Limits(
        tuple(r[0] for r in rows), np.array([r[1] for r in rows]).reshape(-1, parameters),
        np.array([r[2] for r in rows]), np.array([r[3] for r in rows], dtype=np.bool_),
        np.array([r[4] for r in rows]).reshape(-1, robot.tree.n))


def _link_rows(link: LinkBounds) -> list[tuple[str, FloatArray, float, bool]]:
    """Return (label, row (10,), offset, equality) of every bound."""
    unit = np.eye(10)
    rows = []
    if link.mass is not None:
        rows.append(('least mass', unit[M], link.mass[0], False))
        if np.isfinite(link.mass[1]):
            rows.append(('most mass', -unit[M], -link.mass[1], False))
    for corner, sign, side in ((link.com_lower, 1.0, 'least'), (link.com_upper, -1.0, 'most')):
        for axis, value in enumerate(corner or ()):
            if np.isfinite(value):
                rows.append((f'{side} {AXES[axis]} of the centre of mass',
                             sign * (unit[MX + axis] - value * unit[M]), 0.0, False))
    if isinstance(link.ellipsoid, Ellipsoid):
        rows.append(('bounding ellipsoid', link.ellipsoid.row, 0.0, False))
    mirrored = {p for axis in link.symmetric for p in MIRRORED[axis]}
    rows += [(f'symmetry ({p})', unit[i], 0.0, True) for i, p in enumerate(PARAMETERS)
             if p in mirrored]
    return rows


def read_bounds(value: Any, key: str) -> Bounds:
    """Return bounds from ``{total_mass: [a, b], links: {NAME: {...}}}``; Bounds pass unchanged.

    Keys of a link: `mass` is ``[a, b]``, `com` is ``[[x, y, z], [x, y, z]]``, `ellipsoid` is
    ``{centre: [x, y, z], radii: [x, y, z]}`` or ``collision``, `symmetric` a list of axes. Raises
    UsageError naming the key.
    """
    if isinstance(value, Bounds):
        return value
    content = _mapping(value or {}, key, ('total_mass', 'links'))
    links = content.get('links') or {}
    if not isinstance(links, Mapping):
        raise UsageError(f'{key}: links must be a mapping of names, is {shown(links)}')
    return Bounds(
        tuple((str(name), _link(entry, f'{key}: {name}')) for name, entry in links.items()),
        _range(content.get('total_mass'), f'{key}: total_mass'))


def _link(content: Any, where: str) -> LinkBounds:
    content = _mapping(content, where, ('mass', 'com', 'ellipsoid', 'symmetric'))
    com, shape, symmetric = (content.get(key) for key in ('com', 'ellipsoid', 'symmetric'))
    if com is not None and (not isinstance(com, (list, tuple)) or len(com) != 2):
        raise UsageError(f'{where}: com must be two corners of a box, is {shown(com)}')
    lower, upper = (_vector(c, f'{where}: com') for c in com) if com else (None, None)
    if isinstance(shape, str) and shape != COLLISION:
        raise UsageError(f'{where}: ellipsoid is {shape!r}: give centre and radii, or say '
                         f'{COLLISION}')
    if shape is not None and shape != COLLISION:
        shape = _mapping(shape, f'{where}: ellipsoid', ('centre', 'radii'))
        radii = SIZE.array(shape.get('radii'), (3,), f'{where}: radii')
        shape = Ellipsoid(_vector(shape.get('centre'), f'{where}: centre'), _triple(radii))
    if symmetric is not None and not isinstance(symmetric, (list, tuple, str)):
        raise UsageError(f'{where}: symmetric must be a list of axes, is {shown(symmetric)}')
    return LinkBounds(_range(content.get('mass'), f'{where}: mass'), lower, upper, shape,
                      tuple(str(axis) for axis in symmetric or ()))


def _mapping(content: Any, where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(content, Mapping) or set(content) - set(keys):
        raise UsageError(f'{where} must be a mapping with keys of {", ".join(keys)}, '
                         f'is {shown(content)}')
    return content


def _vector(value: Any, where: str) -> Vector:
    return _triple(_numbers(value, 3, where, LENGTH))


def _range(value: Any, where: str) -> Range | None:
    if value is None:
        return None
    low, high = _numbers(value, 2, where, MASSES)
    return low, high


def _numbers(value: Any, count: int, where: str, allowed: NumberRange) -> list[float]:
    """Return numbers of the range; infinite ones mean no bound."""
    if not isinstance(value, (list, tuple)) or len(value) != count or not all(
            is_number(v) for v in value):
        raise UsageError(f'{where} must be {count} numbers, is {shown(value)}')
    return [v if v in (np.inf, -np.inf) else allowed.read(v, where) for v in value]
