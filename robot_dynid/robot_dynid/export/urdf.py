"""Write identified parameters into the URDF they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import MissingDependency, ModelError, UsageError
from robot_dynid.export.identified_arm import LEAST_MOMENT, IdentifiedArm, margin_of
from robot_dynid.export.text_file import TextFile
from robot_dynid.export.written import WRITTEN_ROUNDING, Form, SlidingFriction, Written
from robot_dynid.robot.description import LinkDescription
from robot_dynid.robot.inertia import (
    com_from_parameters,
    move_parameters,
    parameters_from_com,
    pseudo_inertia,
)
from robot_dynid.robot.model import STANDARD_GRAVITY, Link, RobotModel
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import Reader, parse_urdf, robot_from_urdf
from robot_dynid.robot.urdf_text import INERTIA, Element, UrdfText, number_text
from robot_dynid.types import FloatArray
from robot_dynid.version import VERSION

#: header of every export
MARK = b'<!-- inertials identified by robot_dynid'
#: the first line of the comment with the parameter card
CARD = '<!-- where the parameters of the links come from'
#: encoding in an XML declaration that differs from that of exports
ENCODING = re.compile(r'(encoding\s*=\s*["\'])(?!utf-8["\'])[^"\']*', re.IGNORECASE)
#: margin over a flat body's inertia when raising an invalid one, relative to the sum of moments
FROM_FLAT = 1e-6
FORM = Form('a URDF', damping=True, dry=True)
#: smallest share of its inertial left to a body by links fixed to it
LEAST_REST = 1e-3
#: scale, relative to the largest possible, of inertials too large for their body
SCALED_TO = 0.5


@dataclass(frozen=True, eq=False)
class UrdfFile(TextFile):
    """The ``text`` of a URDF, of which ``selection`` is the robot.

    Comments in the file name this software and, in the lines ``origins``, the origin of every link
    parameter.
    """

    selection: Selection | None = None
    origins: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """Text with its comments, in UTF-8."""
        # a byte order mark and all <?...?> at the start with line breaks
        start = re.match(r'\ufeff?(?:<\?.*?\?>[ \t]*\r?\n?)*', self.text, re.DOTALL)
        assert start is not None  # it matches the empty text
        head, after = self.text[:start.end()], self.text[start.end():]
        end = '\r\n' if '\r\n' in self.text else '\n'
        lines = [f'     {line.replace("--", "- -")}' for line in self.origins]
        card = end.join([CARD, *lines, '-->', '']) if lines else ''
        for begin in (self.mark.decode(), CARD):  # of an earlier export
            after = re.sub(rf'{re.escape(begin)}.*?-->\r?\n?', '', after, count=1,
                           flags=re.DOTALL)
        head = ENCODING.sub(r'\1UTF-8', head)
        return f'{head}{self.mark.decode()} {VERSION} -->{end}{card}{after}'

    def parse(self) -> None:
        """Read the content as a URDF; raises RobotError."""
        robot_from_urdf(self.content, self.selection, 'the written URDF')

    def load(self) -> dict[str, Any]:
        """Return the version of Pinocchio; raises ModelError if it refuses the content.

        Raises MissingDependency without Pinocchio.
        """
        from robot_dynid.export.pinocchio import read_urdf

        return {'tool': read_urdf(self.content)}


@dataclass(frozen=True, eq=False)
class Export(UrdfFile):
    """URDF with identified inertials, and the changed links."""

    changed_links: tuple[str, ...] = ()
    mark = MARK

    def parse(self) -> None:
        """Parse the content as a URDF, also by Pinocchio if installed."""
        super().parse()
        with suppress(MissingDependency):
            super().load()

    def load(self) -> dict[str, Any]:
        """Return the error of MuJoCo's accelerations; raises ModelError if it refuses the URDF.

        Raises MissingDependency without MuJoCo.
        """
        from robot_dynid.export.mujoco import check, urdf_model

        return {} if self.written is None else check(
            self.written, urdf_model(self.written.arm.robot, self.content))


def with_name(urdf_text: str, robot: RobotModel) -> str:
    """Return a URDF that names its ``robot``, which other readers require."""
    text = UrdfText(urdf_text, robot.source)
    if 'name' not in text.root.attributes:
        text.add_attribute(text.root, 'name', robot.name)
    return text.changed()


@one_blas_thread()
def exported_urdf(arm: IdentifiedArm, urdf_text: str, source: str = 'URDF') -> Export:
    """Return ``urdf_text`` with the inertials, damping and friction of ``arm``.

    Inertials are about the centre of mass in the axes of the link. Links fixed to a moving one
    keep their inertials and it gets the rest of the identified body; if that is invalid theirs are
    scaled down. Everything else is unchanged. Raises ModelError for the URDF of another robot,
    RobotError if the text is unusable.
    """
    selection = Selection(base_link=arm.robot.base_link, joints=arm.robot.joints)
    try:
        robot = robot_from_urdf(urdf_text, selection, source)
    except UsageError as error:
        raise ModelError(f'the model was identified for another robot: {error}') from None
    if robot.with_gravity(arm.robot.gravity).hash() != arm.robot.hash():
        raise ModelError(f'{source}: is not the {arm.robot.name} of the model: joints, geometry '
                         'or gravity differ; give the URDF it was identified with')
    warnings: list[str] = []
    changes = _at_rest(robot, urdf_text, source, warnings)
    for body in range(robot.n):
        changes |= _shares(robot, body, arm.mechanism.bodies[body], warnings)
    text = UrdfText(with_name(urdf_text, robot), source)
    elements = text.root.named('link')
    for name, parameters in changes.items():
        _write_inertial(text, elements[name], parameters)
    for link in robot.links:  # readers differ on inertia without mass
        if not link.has_inertial and link.name not in changes:
            inertial = elements[link.name].find('inertial')
            tensor = None if inertial is None else inertial.find('inertia')
            if tensor is not None:
                text.set_numbers(tensor, {name: [0.0] for name in INERTIA})
    written = Written(arm, FORM)
    _write_friction(text, arm.robot.joints, written.friction)
    warnings += [*written.warnings(), *unusual_gravity(arm), *_shapes(text, robot)]
    return Export(text.changed(), tuple(warnings), selection, written=written,
                  changed_links=tuple(changes))


def _shares(
    robot: RobotModel, body: int, identified: FloatArray, warnings: list[str]
) -> dict[str, FloatArray]:
    """Return the inertials of the links of a body, by name, if they change."""
    main, *others = _members(robot, body)
    fixed = {link.name: _possible(link, warnings) for link in others if link.has_inertial}
    places = {link.name: link.placement for link in others}
    total = np.sum([move_parameters(fixed[name], places[name]) for name in fixed], axis=0) \
        if fixed else np.zeros(10)
    # the inverse is the largest factor for the others
    taken = eigh(pseudo_inertia(total), pseudo_inertia(identified), eigvals_only=True)[-1]
    scale = 1.0 if taken <= 1.0 - LEAST_REST else SCALED_TO / taken
    if scale < 1.0:
        warnings.append(
            f'link {main.name!r}: the inertials of {", ".join(fixed)}, fixed to it, exceed the '
            f'identified body; they are multiplied by {scale:.3g}')
    shares = {name: scale * fixed[name] for name in fixed}
    shares = {main.name: identified - scale * total, **shares}
    has = {link.name: link for link in (main, *others)}
    return {name: share for name, share in shares.items()
            if not has[name].has_inertial or not _same(share, has[name].parameters)}


def _at_rest(
    robot: RobotModel, urdf_text: str, source: str, warnings: list[str]
) -> dict[str, FloatArray]:
    """Return valid inertials, by name, of the links at rest with invalid ones."""
    reader, moving = Reader(source), {link.name for link in robot.links}
    links = map(reader.link, parse_urdf(urdf_text, source).findall('link'))
    possible = {link.name: (link, _possible(link, warnings))
                for link in links if link.has_inertial and link.name not in moving}
    return {name: parameters for name, (link, parameters) in possible.items()
            if parameters is not link.parameters}


def _members(robot: RobotModel, body: int) -> list[Link]:
    """Return the links of a body, the one moved by its joint first."""
    members = [link for link in robot.links if link.body == body]
    return sorted(members, key=lambda link: link.name != robot.bodies[body])


def _possible(link: Link | LinkDescription, warnings: list[str]) -> FloatArray:
    """Return the parameters of a link, with inertia raised if it is invalid."""
    mass, com, inertia = com_from_parameters(link.parameters)
    margin, total = margin_of(inertia)
    if margin >= -LEAST_MOMENT * total:  # flat bodies, too
        return link.parameters
    more = FROM_FLAT * total - margin
    warnings.append(f'link {link.name!r}: no body has its inertia, which was not identified; '
                    f'raised by {more:.3g} kg m^2 about every axis')
    return parameters_from_com(mass, com, inertia + more * np.eye(3))


def _same(a: FloatArray, b: FloatArray) -> bool:
    """Compare mass, first and second moments, each kind by its largest number."""
    return all(np.abs(a[kind] - b[kind]).max() <= WRITTEN_ROUNDING * np.abs(b[kind]).max()
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
    assert weight is not None and tensor is not None  # required by the reader
    text.set_numbers(weight, {'value': [mass]})
    text.set_numbers(tensor, moments)
    if origin is None:
        text.insert(inertial, [f'<origin xyz="{number_text(com)}" rpy="0 0 0"/>'])
    else:
        turned = {'rpy': [0.0, 0.0, 0.0]} if 'rpy' in origin.attributes else {}
        text.set_numbers(origin, {'xyz': list(com), **turned})


def _write_friction(
    text: UrdfText, joints: Sequence[str], friction: SlidingFriction
) -> None:
    """Write damping and friction of every joint."""
    elements = text.root.named('joint')
    for i, name in enumerate(joints):
        numbers = {'damping': [friction.damping[i]], 'friction': [friction.dry[i]]}
        dynamics = elements[name].find('dynamics')
        if dynamics is not None:
            text.set_numbers(dynamics, numbers)
        elif any(number[0] for number in numbers.values()):
            written = ' '.join(f'{tag}="{number_text(n)}"' for tag, n in numbers.items())
            text.append(elements[name], f'<dynamics {written}/>')


def unusual_gravity(arm: IdentifiedArm, form: str = 'a URDF') -> Iterator[str]:
    """Yield a sentence about unusual gravity, which ``form`` cannot hold."""
    compensated = arm.robot.drive.kind == 'gravity_compensated_torque'
    if not compensated and not np.array_equal(arm.robot.gravity, STANDARD_GRAVITY):
        yield (f'gravity is {arm.robot.gravity.tolist()} m/s^2 in the base frame, which {form} '
               'cannot hold; set it where it is used')


def _shapes(text: UrdfText, robot: RobotModel) -> Iterator[str]:
    """Yield the links without inertial that some readers give the mass of their shape."""
    elements = text.root.named('link')
    bare = [link.name for link in robot.links
            if not link.has_inertial and link.name not in robot.bodies
            and elements[link.name].find('collision') is not None]
    if bare:
        yield (f'{", ".join(bare)}: no inertial but a collision shape, whose mass MuJoCo adds '
               'unless its compiler has inertiafromgeom="false"')
