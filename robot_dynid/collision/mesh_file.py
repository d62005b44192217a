"""Vertices of collision meshes, read by coal (Assimp): STL, OBJ, COLLADA and others."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

import coal
import numpy as np
from scipy.spatial import ConvexHull, QhullError

from robot_dynid.numbers import NumberRange
from robot_dynid.robot.package_file import located
from robot_dynid.robot.urdf import Reader
from robot_dynid.types import FloatArray, frozen

SCALE = NumberRange(-1e6, 1e6)


def mesh_vertices(reader: Reader, mesh: Element, where: str) -> FloatArray:
    """Return the vertices (k, 3) m of the convex hull of a <mesh>, scaled.

    Paths are relative to the URDF, ``file://`` or ``package://``. Raises RobotError naming the
    link and the file that is missing or no mesh.
    """
    name = mesh.get('filename')
    if not name:
        raise reader.fail(where, 'mesh has no attribute filename')
    path = located(name, Path(reader.source).parent)
    if path is None:
        hint = (' (a package is looked for in AMENT_PREFIX_PATH, ROS_PACKAGE_PATH and the folders '
                'above the URDF)' if name.startswith('package://') else '')
        raise reader.fail(where, f'mesh file {name} is missing{hint}; correct the path or put the '
                                 'file there')
    scale = reader.numbers(mesh.get('scale', '1 1 1'), f'{where} mesh scale', 3, SCALE)
    try:
        points = _vertices(path)
        return frozen(points[ConvexHull(points).vertices] * scale)
    except (QhullError, ValueError) as error:
        raise reader.fail(where, f'mesh file {path} is not a mesh with a volume '
                                 f'({str(error).splitlines()[0]})') from None


def _vertices(path: Path) -> FloatArray:
    """Return all vertices (k, 3) m; raises ValueError when there are none to be found."""
    try:
        mesh = coal.MeshLoader(coal.BV_AABB).load(str(path))
    except Exception as error:  # coal raises what its importer raises
        raise ValueError(f'coal cannot read it: {error}') from None
    return np.array(mesh.vertices(), dtype=np.float64).reshape(-1, 3)
