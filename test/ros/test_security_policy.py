"""config/sros2/robot_dynid.policy.xml: policies of SROS 2: exactly the graph of the running nodes,
so that neither can drift."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from identified_models import feasible_model

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from nodes import made

from robot_dynid.dynamics.wrist import WristSensor
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.excitation.node import ExcitationNode
from robot_dynid.ros.identifier.node import Identifier
from robot_dynid.ros.simulated_robot.node import SimulatedRobot

Rules = dict[str, set[str]]
POLICY = Path('robot_dynid') / 'config' / 'sros2' / 'robot_dynid.policy.xml'
ACTION = re.compile(r'(.+)/_action/\w+')
#: rule of the policy by side of the graph: of topics and services, and of actions
SIDES = {'publisher': ('publish', 'execute'), 'subscriber': ('subscribe', 'call'),
         'service': ('reply', 'execute'), 'client': ('request', 'call')}
#: every node with the parameters with which it uses most
NODES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    'identifier': (Identifier, {
        'robot': 'ur10e', 'monitor': True, 'health': True,
        'optional_topics': '[motor_states, effort, joint_torques]'}),
    'excitation': (ExcitationNode, {'robot': 'planar_3r'}),
    'simulated_robot': (SimulatedRobot, {'simulation': 'seven_axis_drives'}),
}


def allowed(root: Path) -> dict[str, Rules]:
    """Return the names that the policy allows, by node and rule, as the tools of SROS 2 do."""
    found: dict[str, Rules] = {}
    for enclave in ET.parse(root / POLICY).getroot().iter('enclave'):
        (profile,) = enclave.iter('profile')
        node, rules = profile.attrib['node'], defaultdict[str, set[str]](set)
        assert (enclave.attrib['path'], profile.attrib['ns']) == (f'/robot_dynid/{node}', '/')
        for group in profile:
            ((rule, qualifier),) = group.attrib.items()
            assert qualifier == 'ALLOW', 'what is not allowed is denied'
            names = [str(item.text) for item in group]
            assert len(set(names)) == len(names)
            assert not any(set('*?[') & set(name) for name in names), 'no patterns'
            rules[rule] |= {name if name.startswith('/') else f'/{node}{name[1:]}'
                            if name.startswith('~') else f'/{name}' for name in names}
        found[node] = dict(rules)
    return found


def graph(observer: Any) -> Rules:
    """Return what all other nodes of the domain use, by the rules of a policy."""
    rules = defaultdict[str, set[str]](set)
    for name, namespace in observer.get_node_names_and_namespaces():
        for side, (plain, action) in SIDES.items() if name != observer.get_name() else ():
            ask = getattr(observer, f'get_{side}_names_and_types_by_node')
            for used, _ in ask(name, namespace):
                match = ACTION.fullmatch(used)
                rules[action if match else plain].add(match[1] if match else used)
    return dict(rules)


@pytest.mark.ros
@pytest.mark.parametrize('name', NODES)
def test_policy_allows_exactly_what_the_node_uses(
    root: Path, node: Any, name: str, tmp_path: Path
) -> None:
    kind, parameters = NODES[name]
    if name == 'identifier':
        WristSensor('ur10e', load_robot('ur10e').hash(), 'wrist_3_link', np.zeros(10), np.zeros(6),
                    np.eye(3), 1).save(tmp_path / 'sensor.yaml')
        parameters = {**parameters, 'wrist_sensor': tmp_path / 'sensor.yaml'}
    expected = allowed(root)[name]
    with made(kind, **parameters) as used:
        if name == 'identifier':  # the description comes with the first feasible model
            robot = load_robot('ur10e')
            ball = parameters_from_com(1.0, [0.0, 0.0, 0.1], 0.01 * np.eye(3))
            model = feasible_model(robot, robot.nominal + ball, np.random.default_rng(0))
            used.models.serve(model, model.to_yaml())
        end = time.monotonic() + 60.0
        while (found := graph(node)) != expected and time.monotonic() < end:
            time.sleep(0.1)
    assert found == expected


def test_policy_has_an_enclave_for_every_node_and_no_keys_beside_it(root: Path) -> None:
    assert set(allowed(root)) == set(NODES)
    assert [path.name for path in (root / POLICY).parent.iterdir()] == [POLICY.name]
