"""The identified parameters inside the URDF they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import ModelError, UsageError, reported
from robot_dynid.files import HEAD, atomic_write
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.inertia import (
    com_from_parameters,
    move_parameters,
    parameters_from_com,
    pseudo_inertia,
)
from robot_dynid.robot.model import STANDARD_GRAVITY, Link, RobotModel
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.robot.urdf_text import Element, UrdfText, number_text
from robot_dynid.types import FloatArray
from robot_dynid.version import VERSION

#: in the head of every export; no other file is replaced by one
MARK = b'<!-- inertials identified by robot_dynid'
#: part of the sum of moments that rounding in other readers stays below (MuJoCo allows none)
LEAST_MOMENT = 1e-12
#: part of the sum of moments by which an impossible inertia is brought beyond a flat body's
FROM_FLAT = 1e-6
#: links fixed to a body keep their inertials if they leave it this part of its own
LEAST_REST = 1e-3
#: part of the largest possible size that inertials too large for their body are scaled to
SCALED_TO = 0.5
#: relative difference of parameters that is rounding only
ROUNDING = 1e-12
INERTIA = {'ixx': (0, 0), 'ixy': (0, 1), 'ixz': (0, 2), 'iyy': (1, 1), 'iyz': (1, 2),
           'izz': (2, 2)}


class Export(NamedTuple):
    """A URDF ``text`` with identified inertials, the links that differ, and what to know."""

    text: str
    changed_links: tuple[str, ...]
    warnings: tuple[str, ...]

    def save(self, path: str | Path) -> None:
        """Write the text, with a comment that names this software, in place of an earlier export.

        Raises UsageError for a path where something else is, DynIdError when the file cannot be
        written.
        """
        before, after = _split_at_declaration(self.text)
        comment = f'{MARK.decode()} {VERSION} -->'
        end = '\r\n' if '\r\n' in self.text else '\n'
        known = MARK in self.text.encode()[:HEAD]
        atomic_write(path, self.text if known else f'{before}{comment}{end}{after}', MARK)


def _split_at_declaration(text: str) -> tuple[str, str]:
    """Return a byte order mark and ``<?xml ...?>`` with its line break, and the rest."""
    found = re.match(r'\ufeff?(?:<\?xml\s.*?\?>[ \t]*\r?\n?)?', text, re.DOTALL)
    assert found is not None  # it matches the empty text
    return text[:found.end()], text[found.end():]


@reported
@one_blas_thread()
def exported_urdf(model: IdentifiedModel, urdf_text: str, source: str = 'URDF') -> Export:
    """Return ``urdf_text`` with the inertials, damping and friction of ``model``.

    Inertials are about the centre of mass in the axes of the link. Links fixed to a moving one
    keep their own inertials and it gets what is left of the identified body; where that would be
    impossible theirs are scaled down. Everything else stays as it is written. Raises ModelError
    when the model has no physically feasible parameters or belongs to another robot, RobotError
    when the text is unusable.
    """
    links = physical_links(model)
    selection = Selection(base_link=model.robot.base_link, joints=model.joints)
    try:
        robot = robot_from_urdf(urdf_text, selection, source)
    except UsageError as error:
        raise ModelError(f'the model was identified for another robot: {error}') from None
    model.require(robot.with_gravity(model.robot.gravity))
    warnings: list[str] = []
    changes: dict[str, FloatArray] = {}
    for body in range(robot.n):
        changes |= _shares(robot, body, links[body], warnings)
    text = UrdfText(urdf_text, source)
    elements = text.root.named('link')
    for name, parameters in changes.items():
        _write_inertial(text, elements[name], parameters)
    warnings += _write_friction(text, model)
    warnings += [*_left_out(model), *_shapes(text, robot)]
    return Export(text.changed(), tuple(changes), tuple(warnings))


@one_blas_thread()
def physical_links(model: IdentifiedModel) -> FloatArray:
    """Return the feasible parameters (n, 10) of the links.

    Raises ModelError when there are none, or a body cannot have them.
    """
    links = model.feasible_links
    if links is None:
        raise ModelError(
            f'the model of {model.robot.name} has no physically feasible parameters (method '
            f'{model.method or "unknown"}), so it has no inertials to write; identify with '
            '--method feasible')
    for name, parameters in zip(model.robot.bodies, links, strict=True):
        if not is_physical(parameters):
            raise ModelError(f'link {name!r}: no body has the parameters of the model; identify '
                             'again with --method feasible')
    return links


def is_physical(parameters: ArrayLike) -> bool:
    """Return whether a body of positive density has the standard ``parameters`` (10,)."""
    if not np.asarray(parameters)[0] > 0.0:
        return False
    margin, total = _margin(com_from_parameters(parameters)[2])
    return bool(margin > LEAST_MOMENT * total)


def _margin(inertia: FloatArray) -> tuple[float, float]:
    """Return by how much two principal moments exceed the third at least, and their sum."""
    moments = np.linalg.eigvalsh(inertia)
    return float(moments[0] + moments[1] - moments[2]), float(np.abs(moments).sum())


def _shares(
    robot: RobotModel, body: int, identified: FloatArray, warnings: list[str]
) -> dict[str, FloatArray]:
    """Return the inertials of the links of a body, by name, where they change."""
    own, *others = _members(robot, body)
    kept = {link.name: _possible(link, warnings) for link in others if link.has_inertial}
    places = {link.name: link.placement for link in others}
    total = np.sum([move_parameters(kept[name], places[name]) for name in kept], axis=0) \
        if kept else np.zeros(10)
    # the largest factor by which the others may be multiplied is the inverse of this
    taken = eigh(pseudo_inertia(total), pseudo_inertia(identified), eigvals_only=True)[-1]
    scale = 1.0 if taken <= 1.0 - LEAST_REST else SCALED_TO / taken
    if scale < 1.0:
        warnings.append(
            f'link {own.name!r}: the inertials of {", ".join(kept)}, which move with it, leave no '
            f'possible rest of the identified body; they are multiplied by {scale:.3g}')
    shares = {name: scale * kept[name] for name in kept}
    shares = {own.name: identified - scale * total, **shares}
    has = {link.name: link for link in (own, *others)}
    return {name: share for name, share in shares.items()
            if not has[name].has_inertial or not _same(share, has[name].parameters)}


def _members(robot: RobotModel, body: int) -> list[Link]:
    """Return the links of a body, the one its joint moves first."""
    members = [link for link in robot.links if link.body == body]
    return sorted(members, key=lambda link: link.name != robot.bodies[body])


def _possible(link: Link, warnings: list[str]) -> FloatArray:
    """Return the parameters of a link, with more inertia where no body has them."""
    mass, com, inertia = com_from_parameters(link.parameters)
    margin, total = _margin(inertia)
    if margin >= -LEAST_MOMENT * total:  # flat bodies, too
        return link.parameters
    more = FROM_FLAT * total - margin
    warnings.append(f'link {link.name!r}: no body has its inertia, which was not identified; '
                    f'raised by {more:.3g} kg m^2 about every axis')
    return parameters_from_com(mass, com, inertia + more * np.eye(3))


def _same(a: FloatArray, b: FloatArray) -> bool:
    """Compare mass, first and second moments, each kind by its largest number."""
    return all(np.abs(a[kind] - b[kind]).max() <= ROUNDING * np.abs(b[kind]).max()
               for kind in (slice(0, 1), slice(1, 4), slice(4, 10)))


def _write_inertial(text: UrdfText, link: Element, parameters: FloatArray) -> None:
    mass, com, inertia = com_from_parameters(parameters)
    moments = {name: [float(inertia[place])] for name, place in INERTIA.items()}
    inertial = link.find('inertial')
    if inertial is None:
        numbers = ' '.join(f'{name}="{number_text(m)}"' for name, m in moments.items())
        text.insert(link, [
            '<inertial>', f'\t<origin xyz="{number_text(com)}" rpy="0 0 0"/>',
            f'\t<mass value="{number_text([mass])}"/>', f'\t<inertia {numbers}/>', '</inertial>'])
        return
    origin, weight, tensor = (inertial.find(tag) for tag in ('origin', 'mass', 'inertia'))
    assert weight is not None and tensor is not None  # the reader insists on them
    text.set_numbers(weight, {'value': [mass]})
    text.set_numbers(tensor, moments)
    if origin is None:
        text.insert(inertial, [f'<origin xyz="{number_text(com)}" rpy="0 0 0"/>'])
    else:
        turned = {'rpy': [0.0, 0.0, 0.0]} if 'rpy' in origin.attributes else {}
        text.set_numbers(origin, {'xyz': list(com), **turned})


def _write_friction(text: UrdfText, model: IdentifiedModel) -> list[str]:
    """Write damping and friction of every joint; return what had to be changed for it."""
    notes = []
    elements = text.root.named('joint')
    for i, name in enumerate(model.joints, 1):
        values = {tag: sum(model.standard[name] for name in names) / ways
                  for tag, (names, ways) in _sliding(model, i).items()}
        for tag, value in values.items():
            if value < 0.0:
                notes.append(f'joint {name}: the identified {tag} {value:.3g} is negative; 0 is '
                             'written')
        numbers = {tag: [max(value, 0.0)] for tag, value in values.items()}
        dynamics = elements[name].find('dynamics')
        if dynamics is not None:
            text.set_numbers(dynamics, numbers)
        elif any(number[0] for number in numbers.values()):
            written = ' '.join(f'{tag}="{number_text(n)}"' for tag, n in numbers.items())
            text.append(elements[name], f'<dynamics {written}/>')
    return notes


def _sliding(model: IdentifiedModel, joint: int) -> dict[str, tuple[list[str], int]]:
    """Return the parameters of damping and friction of a joint, and the number of ways.

    Amplitudes of presliding add up to friction; a law by direction is averaged.
    """
    law = model.structure.laws[joint - 1]
    ways = 1 if set(law.viscous) <= set(law.odd) else 2
    return {tag: ([f'{p}{joint}' for p in names], ways)
            for tag, names in (('damping', law.viscous), ('friction', law.holding))}


def _left_out(model: IdentifiedModel) -> Iterator[str]:
    """Yield the properties that a URDF cannot hold."""
    written = {name for i in range(model.robot.n)
               for names, _ in _sliding(model, i + 1).values() for name in names}
    others = model.reduction.standard[10 * model.robot.n:]
    left = [name for name in others if name not in written and model.standard[name] != 0.0]
    if left:
        yield (f'only in the model file, a URDF cannot hold them: {", ".join(left)} (rotor '
               'inertia, offsets, friction other than damping and friction of one joint)')
    if not np.array_equal(model.robot.gravity, STANDARD_GRAVITY):
        yield (f'gravity is {model.robot.gravity.tolist()} m/s^2 in the base frame, which a URDF '
               'cannot hold; set it where the URDF is used')
    if model.not_identified:
        yield f'not identified, do not rely on them: {", ".join(model.not_identified)}'


def _shapes(text: UrdfText, robot: RobotModel) -> Iterator[str]:
    """Yield the links without inertial to which some readers give the mass of their shape."""
    elements = text.root.named('link')
    found = [link.name for link in robot.links
             if not link.has_inertial and link.name not in robot.bodies
             and elements[link.name].find('collision') is not None]
    if found:
        yield (f'{", ".join(found)}: no inertial but a collision shape, whose mass MuJoCo adds '
               'unless its compiler has inertiafromgeom="false"')
