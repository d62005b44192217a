"""Contact: external torque along a recording, sample by sample as a robot would send them.

    python examples/contact.py MODEL.yaml RECORDING [JOINT TORQUE BEGIN END]

With JOINT, TORQUE [N m], BEGIN and END [s] a push is added to the recorded effort, to see when it
is noticed. On line the node `identifier` does the same: topics ~/external_torque and ~/contact.
"""

import sys
from dataclasses import replace

import numpy as np

from robot_dynid import IdentifiedModel, contact_events, load_log


def pushed(log, joint, torque, begin, end):
    """Return a recording in which something pushes with the motor of a joint, and unloads it."""
    effort = np.array(log.effort)
    while_pushed = (log.time - log.time[0] >= begin) & (log.time - log.time[0] <= end)
    effort[while_pushed, log.joints.index(joint)] -= torque
    return replace(log, effort=effort)


def main(model_file, recording, joint='', *push):
    """Observe, and print the contacts."""
    model = IdentifiedModel.load(model_file)
    log = load_log(recording, model.robot)
    if joint:
        log = pushed(log, joint, *(float(number) for number in push))
    (found,) = contact_events(model, [log])
    for j, name in enumerate(model.joints):
        print(f'{name:>24}: threshold in motion {found.moving[j]:.2f} N m, '
              f'at most {np.abs(found.torque[:, j]).max():.2f} N m')
    for contact in found.contacts:
        print(f'contact from {contact.start - found.time[0]:.2f} to '
              f'{contact.stop - found.time[0]:.2f} s: {contact.joint}, {contact.peak:.2f} N m')
    print('every joint was watched all the time:', 'yes' if found.watched else 'no')


if __name__ == '__main__':
    main(*sys.argv[1:])
