"""Diagnosis of DDS: communication between two processes of this computer."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from robot_dynid.setting_up.diagnosis import ERROR, OK, Diagnosis

#: domain IDs available on every system (ports of Linux)
DOMAINS = range(102)
#: environment variables with settings files of DDS implementations
PROFILES = ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE', 'CYCLONEDDS_URI')
SHARED_MEMORY = Path('/dev/shm')
#: bytes of shared memory per Fast DDS participant
SHARED_BYTES = 10e6
#: file name prefix of a Fast DDS port in shared memory, and time [s] until it has its size
PORT_FILE, MAKING = 'fastdds_port', 10.0
#: multicast group of discovery
GROUP = '239.255.0.1'


@dataclass(frozen=True)
class Talk:
    """Result of a message between two processes.

    ``heard`` after ``seconds``; ``error`` is the reason why a node could not be created,
    ``middleware`` the implementation of DDS.
    """

    heard: bool
    seconds: float = 0.0
    error: str = ''
    middleware: str = ''


@dataclass(frozen=True)
class Surroundings:
    """Transports of DDS on the computer.

    ``shared_memory`` and ``multicast`` are the reasons why they are unusable, or empty;
    ``unfinished`` are ports that block nodes.
    """

    shared_memory: str = ''
    multicast: str = ''
    unfinished: tuple[Path, ...] = ()


def surroundings(folder: Path = SHARED_MEMORY) -> Surroundings:
    """Check shared memory and multicast of this computer."""
    return Surroundings(_shared_memory(folder), _multicast(), tuple(unfinished_ports(folder)))


def unfinished_ports(folder: Path = SHARED_MEMORY) -> list[Path]:
    """Return incomplete Fast DDS ports in shared memory, left by killed processes.

    A node that opens such a port waits for ever and ignores SIGTERM.
    """
    ports = []
    for path in folder.glob(f'{PORT_FILE}*[0-9]'):
        with suppress(FileNotFoundError):  # its node has just ended
            state = path.stat()
            if state.st_size == 0 and time.time() - state.st_mtime > MAKING:
                ports.append(path)
    return sorted(ports)


def _shared_memory(folder: Path) -> str:
    if not os.access(folder, os.W_OK | os.X_OK):
        return f'{folder} is missing or may not be written'
    state = os.statvfs(folder)
    free = state.f_bavail * state.f_frsize
    return '' if free > SHARED_BYTES else f'{folder} has {free / 1e6:.0f} MB left'


def _multicast() -> str:
    """Return the reason why a datagram to a group does not return, '' if it does."""
    try:
        with (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener,
              socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaker):
            listener.bind(('', 0))
            listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                                socket.inet_aton(GROUP) + socket.inet_aton('127.0.0.1'))
            listener.settimeout(1.0)
            speaker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                               socket.inet_aton('127.0.0.1'))
            speaker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            speaker.sendto(b'robot_dynid', (GROUP, listener.getsockname()[1]))
            listener.recv(64)
    except OSError as error:
        return f'a multicast datagram on the loopback does not arrive ({error})'
    return ''


def dds_diagnoses(
    environment: Mapping[str, str], talk: Talk, means: Surroundings
) -> list[Diagnosis]:
    """Check that DDS delivers messages between processes, and list all reasons if not."""
    where = talk.middleware or environment.get('RMW_IMPLEMENTATION') or 'default middleware'
    reasons = [Diagnosis(
        'shared memory', ERROR, where, f'{path} is left over from a killed process: nodes that '
        'need it wait forever', f'rm {path}') for path in means.unfinished]
    if talk.heard:
        return [Diagnosis('dds', OK, where, f'two processes hear each other after '
                          f'{talk.seconds:.1f} s ({domain(environment)})'), *reasons]
    reasons += _settings(environment, talk)
    for name, reason, remedy in (
            ('shared memory', means.shared_memory, 'remove old files fastrtps_* there, free space '
             '(docker run --shm-size), or switch shared memory off in a profile'),
            ('multicast', means.multicast, 'let the firewall pass UDP from port 7400 on, switch '
             'multicast on (ip link set lo multicast on), or name peers in ROS_STATIC_PEERS')):
        if reason:
            reasons.append(Diagnosis(name, ERROR, where, reason, remedy))
    if reasons:
        return reasons
    what = talk.error or 'two processes of this computer do not hear each other'
    return [Diagnosis('dds', ERROR, where, what, 'try with a firewall off, and with another '
                      'RMW_IMPLEMENTATION (rmw_fastrtps_cpp, rmw_cyclonedds_cpp)')]


def domain(environment: Mapping[str, str]) -> str:
    """Describe which nodes can be discovered."""
    reach = environment.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET')
    return f'ROS_DOMAIN_ID {environment.get("ROS_DOMAIN_ID") or 0}, discovery range {reach}'


def _settings(environment: Mapping[str, str], talk: Talk) -> Iterator[Diagnosis]:
    """Yield invalid settings, and settings that may prevent discovery."""
    domain = environment.get('ROS_DOMAIN_ID', '')
    if domain and not (domain.isdecimal() and int(domain) in DOMAINS):
        yield Diagnosis(
            'domain', ERROR, 'ROS_DOMAIN_ID', f'is {domain!r}, not a number from {DOMAINS[0]} to '
            f'{DOMAINS[-1]}', 'export ROS_DOMAIN_ID=0, or that of the robot')
    if (asked := environment.get('RMW_IMPLEMENTATION')) and asked in talk.error:
        yield Diagnosis(
            'middleware', ERROR, 'RMW_IMPLEMENTATION', f'{asked} is not installed',
            f'apt install ros-{environment.get("ROS_DISTRO", "DISTRO")}-{asked.replace("_", "-")}'
            ', or unset RMW_IMPLEMENTATION')
    if environment.get('ROS_AUTOMATIC_DISCOVERY_RANGE', '').upper() == 'OFF':
        yield Diagnosis(
            'discovery', ERROR, 'ROS_AUTOMATIC_DISCOVERY_RANGE', 'is OFF: no node finds another',
            'export ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET, or LOCALHOST')
    if server := environment.get('ROS_DISCOVERY_SERVER'):
        yield Diagnosis(
            'discovery', ERROR, 'ROS_DISCOVERY_SERVER', f'nodes ask the server {server}, which '
            'does not answer', 'start it (fastdds discovery), or unset ROS_DISCOVERY_SERVER')
    for variable in PROFILES:
        if path := environment.get(variable):
            yield Diagnosis(
                'profile', ERROR, variable, f'settings of DDS come from {path}',
                f'unset {variable} and try again; its transports, interfaces or peers can exclude '
                'other nodes')
