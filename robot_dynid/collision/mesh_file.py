"""Vertices of collision meshes: STL and OBJ files natively, others by the library coal."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from robot_dynid.errors import MissingDependency, RobotError
from robot_dynid.robot.urdf import Reader
from robot_dynid.types import FloatArray, frozen

STL_HEADER = 84
STL_TRIANGLE = np.dtype([('normal', '<f4', 3), ('corners', '<f4', (3, 3)), ('colour', '<u2')])


def mesh_vertices(reader: Reader, mesh: Element, where: str) -> FloatArray:
    """Return the vertices (k, 3) m of the convex hull of a <mesh>, scaled.

    Paths are relative to the URDF, ``file://`` or ``package://``. Raises RobotError naming the
    link and the file that is missing or no mesh, MissingDependency when coal is needed to read it.
    """
    name = mesh.get('filename')
    if not name:
        raise reader.fail(where, 'mesh has no attribute filename')
    path = _located(name, Path(reader.source).parent)
    if path is None:
        hint = (' (a package is looked for in AMENT_PREFIX_PATH, ROS_PACKAGE_PATH and the folders '
                'above the URDF)' if name.startswith('package://') else '')
        raise reader.fail(where, f'mesh file {name} is missing{hint}; correct the path or put the '
                                 'file there')
    scale = reader.numbers(mesh.get('scale', '1 1 1'), f'{where} mesh scale', 3)
    try:
        points = _read(path)
        return frozen(points[ConvexHull(points).vertices] * scale)
    except (QhullError, ValueError) as error:
        raise reader.fail(where, f'mesh file {path} is not a mesh with a volume '
                                 f'({str(error).splitlines()[0]})') from None


def _located(name: str, folder: Path) -> Path | None:
    parsed = urlparse(name)
    if parsed.scheme == 'package':
        return _in_package(parsed.netloc, unquote(parsed.path).lstrip('/'), folder)
    path = Path(unquote(parsed.path)) if parsed.scheme == 'file' else folder / name
    return path if path.is_file() else None


def _in_package(package: str, path: str, folder: Path) -> Path | None:
    shares = [Path(p) / 'share' / package
              for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    roots = [Path(p) for p in os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep) if p]
    above = [folder.resolve(), *folder.resolve().parents]
    shares += [root / package for root in roots] + roots + [f / package for f in above]
    shares += [f for f in above if f.name == package]
    return next((share / path for share in shares if (share / path).is_file()), None)


def _read(path: Path) -> FloatArray:
    """Return all vertices (k, 3); raises ValueError when there are none to be found."""
    suffix = path.suffix.lower()
    data = path.read_bytes()
    if suffix == '.stl':
        return _stl(data)
    if suffix == '.obj':
        rows = [line.split()[1:4] for line in data.decode('utf-8', 'replace').splitlines()
                if line.startswith('v ')]
        return np.array(rows, dtype=np.float64).reshape(-1, 3)
    return _by_coal(path)


def _stl(data: bytes) -> FloatArray:
    count = int.from_bytes(data[80:STL_HEADER], 'little') if len(data) >= STL_HEADER else -1
    if len(data) == STL_HEADER + count * STL_TRIANGLE.itemsize:
        triangles = np.frombuffer(data, STL_TRIANGLE, count, STL_HEADER)
        return triangles['corners'].reshape(-1, 3).astype(np.float64)
    rows = [line.split()[1:] for line in data.decode('utf-8', 'replace').splitlines()
            if line.split()[:1] == ['vertex']]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _by_coal(path: Path) -> FloatArray:
    try:
        import coal
    except ImportError:
        raise MissingDependency(f'{path}: this kind of mesh is read by the library coal: '
                                'pip install coal (or convert it to STL)') from None
    try:
        mesh = coal.MeshLoader(coal.BV_OBBRSS).load(str(path))
    except Exception as error:  # coal raises what its importer raises
        raise RobotError(f'{path}: is not a mesh coal can read ({error})') from None
    return np.array(mesh.vertices(), dtype=np.float64)
