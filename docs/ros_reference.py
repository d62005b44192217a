"""Reference of the ROS interface, made of the interface files and of the nodes themselves.

Names, types and quality of service are asked of the running nodes, parameters of the dataclasses
that the nodes declare, fields of the interface files. Only the sentences beside the names are
written by hand, in ros_topics.yaml; a name without a sentence, or a sentence without a name, is an
error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'robot_dynid'
INTERFACES = ROOT / 'robot_dynid_interfaces'
SENTENCES = Path(__file__).with_name('ros_topics.yaml')
#: sections of the kinds of interface files
PARTS = {'.msg': ('Message',), '.srv': ('Request', 'Response'),
         '.action': ('Goal', 'Result', 'Feedback')}
#: place in a page where generated text stands
PLACE = re.compile(r'^<!-- generated: (\w+) -->$', re.M)
#: s without a change after which a graph is at rest
AT_REST = 0.5
#: what every node of rclpy has
OF_RCLPY = re.compile(
    r'/rosout|/parameter_events|.*/(\w+_)?(parameters?|parameter_types)(_atomically)?|'
    r'.*/get_type_description')


@dataclass(frozen=True)
class FieldLine:
    """A field or constant of an interface: type, name, default or value, comment before it."""

    kind: str
    name: str
    value: str
    comment: str


def interface_files() -> list[Path]:
    """Return the files of all interfaces: actions, services, messages."""
    return [path for kind in ('action', 'srv', 'msg')
            for path in sorted((INTERFACES / kind).iterdir())]


def parsed(path: Path) -> tuple[str, list[list[FieldLine]]]:
    """Return the comment at the head of an interface file, and the fields of its sections."""
    head, sections = '', []
    for section in re.split(r'^---$', path.read_text('utf-8'), flags=re.M):
        lines, comment = [], list[str]()
        for line in section.splitlines():
            if line.startswith('#'):
                comment.append(line.removeprefix('#').strip())
            elif not line.strip():
                if comment and not lines and not sections and not head:
                    head = ' '.join(comment)
                comment = comment if lines and not comment else []
            else:
                kind, name, *rest = line.split(maxsplit=2)
                value = rest[0].removeprefix('=').strip() if rest else ''
                lines.append(FieldLine(kind, name, value, ' '.join(comment)))
                comment = []
        sections.append(lines)
    if not head and len(sections) > 1 and not sections[0]:
        head = ' '.join(line.removeprefix('#').strip()
                        for line in path.read_text('utf-8').partition('---')[0].splitlines())
    return head, sections


def cell(text: str) -> str:
    """Return text that does not break a table."""
    escaped = re.sub(r'(?<!`)(~/\w+)', r'`\1`', text.replace('|', '\\|')).replace('<', '&lt;')
    return escaped[:1].upper() + escaped[1:]


def interface(path: Path) -> str:
    """Return the Markdown of an interface file."""
    head, sections = parsed(path)
    text = [f'### {path.stem}', '', f'`robot_dynid_interfaces/{path.parent.name}/{path.stem}`. '
            f'{cell(head)}', '']
    for title, section in zip(PARTS[path.suffix], sections, strict=True):
        if not section:
            text += [f'{title}: empty.', '']
            continue
        text += [f'| {title} | type | meaning |', '|---|---|---|']
        text += [f'| `{line.name}{" = " + line.value if line.value else ""}` | `{line.kind}` | '
                 f'{cell(line.comment)} |' for line in section]
        text.append('')
    return '\n'.join(text)


def structs() -> dict[str, tuple[type[Any], ...]]:
    """Return the dataclasses whose fields are the parameters of each node."""
    from robot_dynid.execution.guards import GuardSettings
    from robot_dynid.ros.excitation.settings import ExcitationSettings
    from robot_dynid.ros.identifier.node import PARTS, IdentifierParameters
    from robot_dynid.ros.simulated_robot.node import SimulatedRobotParameters

    return {'identifier': (IdentifierParameters, *(part.parameters for part in PARTS.values())),
            'excitation': (ExcitationSettings, GuardSettings),
            'simulated_robot': (SimulatedRobotParameters,)}


def comments(node: str) -> dict[str, str]:
    """Return the comment before each parameter in the parameter file of a node.

    One comment may be about several parameters in a row.
    """
    known = {entry.name for struct in structs()[node] for entry in fields(struct)}
    found, comment, fresh = dict[str, str](), list[str](), False
    for line in (PACKAGE / 'config' / f'{node}.yaml').read_text('utf-8').splitlines():
        text = line.strip()
        match = re.match(r'(?:# )?(\w+): ', text)
        if match and match[1] in known:
            found[match[1]] = ' '.join(comment)
            fresh = False
        elif text.startswith('# '):
            comment = [*comment, text[2:]] if fresh else [text[2:]]
            fresh = True
    return found


def parameters(node: str) -> str:
    """Return the table of the parameters of a node.

    Where a parameter has no description of its own, the comment of the parameter file tells.
    """
    from robot_dynid.settings import settings_of

    told = comments(node)
    text = ['| parameter | default | allowed | meaning |', '|---|---|---|---|']
    for name, one in (item for struct in structs()[node] for item in settings_of(struct).items()):
        choices = ', '.join(f'`{choice}`' for choice in one.choices)
        default = list(one.default) if isinstance(one.default, tuple) else one.default
        shown = str(default).lower() if isinstance(default, bool) else default
        live = ' May be set while the node runs.' if one.live else ''
        meaning = cell(one.help or told.get(name, '')).rstrip('.')
        text.append(f'| `{name}` | `{shown if shown != "" else repr("")}` | '
                    f'{choices or one.allowed} | '
                    f'{meaning}.{live} |')
    return '\n'.join(text)


@dataclass(frozen=True)
class Entity:
    """What a node has in the graph: side, name as written in the code, type, quality."""

    side: str
    name: str
    kind: str
    quality: str = ''


def nodes() -> dict[str, tuple[Any, dict[str, str]]]:
    """Return the nodes with the parameters with which they have most."""
    from robot_dynid.ros.excitation.node import ExcitationNode
    from robot_dynid.ros.identifier.node import Identifier
    from robot_dynid.ros.simulated_robot.node import SimulatedRobot

    return {'identifier': (Identifier, {
                'robot': 'ur10e', 'health': 'true',
                'optional_topics': '[motor_states, effort, joint_torques]'}),
            'excitation': (ExcitationNode, {'robot': 'planar_3r'}),
            'simulated_robot': (SimulatedRobot, {'simulation': 'seven_axis_drives'})}


@contextmanager
def running(name: str) -> Iterator[Any]:
    """Make a node in this process, and end it with the block."""
    import rclpy
    from rclpy import logging
    from rclpy.signals import SignalHandlerOptions

    kind, given = nodes()[name]
    level = logging.get_logger_level('')  # one for all loggers of the process
    words = [word for key, value in given.items() for word in ('-p', f'{key}:={value}')]
    rclpy.init(args=['--ros-args', '--log-level', 'error', *words],
               signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = kind()
        try:
            yield node
        finally:
            for end in ('close', 'stop'):
                getattr(node, end, lambda: None)()
            node.destroy_node()
    finally:
        rclpy.shutdown()
        logging.set_logger_level('', level)


def type_name(kind: Any) -> str:
    """Return ``package/msg/Name`` of a class of messages, services or actions."""
    package, folder, *_ = kind.__module__.split('.')
    return f'{package}/{folder}/{kind.__name__}'


def own(name: str, node: str) -> str:
    """Return a name as in the code: ``~/x`` below the node, ``x`` where it is relative."""
    if name.startswith(f'/{node}/'):
        return f'~{name[len(node) + 1:]}'
    return name if name in ('/clock', '/diagnostics') else name.removeprefix('/')


def quality(profile: Any) -> str:
    """Return what a subscriber has to know of a quality of service."""
    words = [profile.reliability.name.lower().replace('_', ' '), f'depth {profile.depth}']
    if profile.durability.name == 'TRANSIENT_LOCAL':
        words.append('latched')
    return ', '.join(words)


def of_graph(node: Any) -> list[Entity]:
    """Return services and actions of a node, as soon as the graph of its domain is at rest.

    All have actions; services of its threads are of nodes beside it, some in a participant of
    their own, and the domain has no others.
    """
    from rclpy import action

    asked = {'serves action': action.get_action_server_names_and_types_by_node,
             'calls action': action.get_action_client_names_and_types_by_node}
    found, since = (list[Entity](), list[Entity]()), time.monotonic()
    end = since + 20.0
    while time.monotonic() < min(end, since + AT_REST if all(found) else end):
        before, found = found, (
            [Entity(side, used, kind) for side, ask in asked.items()
             for used, (kind,) in ask(node, node.get_name(), node.get_namespace())],
            [Entity('serves', used, kind) for used, (kind,) in node.get_service_names_and_types()])
        since = since if found == before else time.monotonic()
        time.sleep(0.01)
    return [*found[0], *found[1]]


def entities(name: str) -> list[Entity]:
    """Return topics, services and actions of a running node, without those of rclpy itself."""
    with running(name) as node:
        found = [
            *(Entity('publishes', p.topic_name, type_name(p.msg_type), quality(p.qos_profile))
              for p in node.publishers),
            *(Entity('subscribes', s.topic_name, type_name(s.msg_type), quality(s.qos_profile))
              for s in node.subscriptions),
            *of_graph(node),
        ]
    ours: dict[tuple[str, str], Entity] = {}
    for e in sorted(found, key=lambda e: e.quality):  # the more demanding one of two is told
        if not OF_RCLPY.fullmatch(e.name) and '/_action/' not in e.name:
            ours[e.side, own(e.name, name)] = Entity(e.side, own(e.name, name), e.kind, e.quality)
    return [ours[key] for key in sorted(ours)]


def with_sentences(name: str, found: list[Entity]) -> list[tuple[Entity, str]]:
    """Return the entities with their sentences; raises ValueError where they do not match.

    A sentence with a type and a side is of something that comes only later, when the node is used.
    """
    told = yaml.safe_load(SENTENCES.read_text('utf-8'))[name]
    later = [Entity(entry['side'], key.split()[-1], entry['type'], entry['quality'])
             for key, entry in told.items() if isinstance(entry, dict)]
    rows, unused = [], set(told)
    for entity in sorted([*found, *later], key=lambda e: (e.side, e.name)):
        entry = told.get(entity.name)
        if entry is None:
            raise ValueError(f'{SENTENCES.name}: no sentence for {entity.side} {entity.name} of '
                             f'{name}')
        unused.discard(entity.name)
        rows.append((entity, entry if isinstance(entry, str) else entry['text']))
    if unused:
        raise ValueError(f'{SENTENCES.name}: {name} has no {", ".join(sorted(unused))}')
    return rows


def table(name: str) -> str:
    """Return the table of topics, services and actions of a node."""
    text = ['| | name | type | meaning |', '|---|---|---|---|']
    for entity, sentence in with_sentences(name, entities(name)):
        quality_words = f' ({entity.quality})' if entity.quality else ''
        text.append(f'| {entity.side} | `{entity.name}` | `{entity.kind}`{quality_words} | '
                    f'{cell(sentence)} |')
    return '\n'.join(text)


def file_parameters() -> str:
    """Return the table of what each node may write and what its requests may name."""
    from robot_dynid.ros.common.files_directory import FileParameters

    names = ('recording_directory', *(entry.name for entry in fields(FileParameters)))
    text = ['| node | parameter | default | meaning |', '|---|---|---|---|']
    text += [f'| `{node}` {row.replace(" |  | ", " | ")}' for node in structs()
             for row in parameters(node).splitlines()
             if row.split('`')[1:2] and row.split('`')[1] in names]
    return '\n'.join(text)


def generated(what: str) -> str:
    """Return the text of a place: a node, its parameters, files, interfaces, drivers, commands."""
    if what == 'files':
        return file_parameters()
    if what == 'driver_facts':
        import driver_tables

        return driver_tables.details()
    if what == 'commands':
        import tables

        return tables.commands()
    if what == 'interfaces':
        return '\n'.join(interface(path) for path in interface_files())
    return f'{table(what)}\n\nParameters:\n\n{parameters(what)}'


def fill(app: Any, page: str, source: list[str]) -> None:
    """Put generated text into the pages with places for it (event ``source-read`` of Sphinx)."""
    if PLACE.search(source[0]):
        from robot_dynid_evaluation.ros_domain import own_domain

        with own_domain():
            source[0] = PLACE.sub(lambda match: generated(match[1]), source[0])
