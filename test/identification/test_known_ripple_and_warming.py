"""identification/identify.py: ripple, stiffness, warm-up and links of an arm of known truth,
within their intervals."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tolerances import COVERAGE_OF_RUNS, KNOWN_DROP
from warming_arm import DAY, Joint, Truth, WarmingArm

from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe

ARM = WarmingArm((
    Joint(12.0, 8.0, 0.5, 0.3, ((1010.0, 0.4), (202.0, 0.3)), 2e4, (0.25, 0.06), 1.5, 40.0),
    Joint(6.0, 4.0, 0.2, 0.2, ((808.0, 0.3),), 1e4),
    Joint(1.0, 0.6, 0.05, 0.05)))
RECIPE = Recipe(friction='coulomb', ramp_width=0.02, cutoff=8.0)
#: deviations of a normal distribution that hold 95 %
NORMAL = 1.96
FIRST = ARM.robot.joints[0]
RUNS = 100
Held = dict[str, list[bool]]


@cache
def run(seed: int) -> tuple[IdentificationResult, list[Truth]]:
    """Return the identification from recordings of a seed, and what is true of them."""
    truths = ARM.recordings(np.random.default_rng(seed))
    return identify(ARM.robot, [truth.log for truth in truths], recipe=RECIPE), truths


def held(seed: int) -> Held:
    """Return, by quantity, whether its 95 % intervals hold the truth."""
    result, truths = run(seed)
    found: Held = {}
    for joint, record in zip(ARM.joints, result.model.record.ripple, strict=True):
        if not joint.waves:
            continue
        ends = record.stiffness
        found.setdefault('stiffness', []).append(
            ends is not None and ends[0] < joint.stiffness < ends[2])
        for wave in record.waves:
            found.setdefault('delay', []).append(
                abs(wave.delay - ARM.late) < NORMAL * wave.delay_std)
    for kind, (drop, std, truth) in drops(result, truths).items():
        found[f'{kind} drop'] = [abs(drop - truth) < NORMAL * std]
    return found | constants(result)


def drops(result: IdentificationResult, truths: list[Truth]
          ) -> dict[str, tuple[float, float, float]]:
    """Return by how much friction fell in the first recording: found, its deviation, and true.

    In N m s/rad and N m.
    """
    one = result.model.parts_of('adaptation')[0]
    if one is None or one.warming is None:
        return {}
    found, joint = {}, ARM.joints[0]
    known = dict(zip(result.model.names, result.model.values.tolist(), strict=True))
    log, warming = truths[0].log, one.warming
    speed, steps = np.gradient(log.position[:, 0], log.time), np.diff(log.time, prepend=DAY)
    heats = np.column_stack([known['fv1'] * speed**2, known['fc1'] * np.abs(speed)])
    warmth = np.zeros(len(warming.seconds))
    for step, heat in zip(steps, heats / warming.power, strict=True):
        power = heat @ warming.scales(warmth)
        warmth += (1.0 - np.exp(-step / warming.seconds)) * (power - warmth)
    for k, (kind, size) in enumerate((('viscous', known['fv1']), ('dry', known['fc1']))):
        true = (joint.viscous, joint.dry)[k] * (1.0 - truths[0].scales[-1, 0, k])
        found[kind] = (float(size * warming.fall[k] @ warmth),
                       float(size * np.linalg.norm(warming.fall_std[k] * warmth)), float(true))
    return found


def constants(result: IdentificationResult) -> Held:
    """Return whether the intervals of links and of friction that stays hold the truth."""
    reduction, robot = result.model.reduction, ARM.robot
    own = {'Ia': 'rotor', 'fv': 'viscous', 'fc': 'dry'}
    others = [0.0 if name.startswith('f0') else getattr(ARM.joints[int(name[-1]) - 1],
                                                        own[name[:2]])
              for name in reduction.standard[10 * robot.n:]]
    truth = reduction.base([*robot.nominal.ravel(), *others])
    half = interval_factor(result.estimate.degrees_of_freedom) * result.estimate.std
    inside = np.abs(result.estimate.values - truth) < half
    friction = np.array([name[0] == 'f' for name in reduction.names])
    stays = np.array([name[-1] != '1' for name in reduction.names])
    return {'links': inside[~friction].tolist(),
            'friction that stays': inside[friction & stays].tolist()}


def claimed(seed: int) -> set[str]:
    """Return what is claimed of joints that do not have it."""
    model = run(seed)[0].model
    found = {f'ripple of {joint}' for joint, one, true in zip(
        model.joints, model.record.ripple, ARM.joints, strict=True)
        if {wave.order for wave in one.waves} - {order for order, _ in true.waves}}
    for joint, one in zip(model.joints, model.parts_of('adaptation'), strict=True):
        if one is not None and one.warming is not None and joint != FIRST:
            found.add(f'warming of {joint}')
        if one is not None and one.slow is not None:
            found.add(f'drift of {joint}')
    return found


def test_effects_of_known_size_are_found_and_no_others() -> None:
    result, truths = run(0)
    for joint, record in zip(ARM.joints, result.model.record.ripple, strict=True):
        assert {wave.order for wave in record.waves} == {order for order, _ in joint.waves}
        for wave in record.waves:
            assert wave.amplitude == pytest.approx(dict(joint.waves)[wave.order], rel=0.05)
            assert abs(wave.delay - ARM.late) < 4.0 * wave.delay_std
        if joint.waves:
            assert record.stiffness is not None
            assert record.stiffness[1] == pytest.approx(joint.stiffness, rel=0.1)
    found = drops(result, truths)
    assert set(found) == {'viscous', 'dry'}
    for drop, std, truth in found.values():
        assert 0.0 < std < 0.25 * drop
        assert drop == pytest.approx(truth, rel=KNOWN_DROP)
    assert not claimed(0) - {f'drift of {FIRST}'}


def told(found: Held) -> dict[str, float]:
    """Print and return the shares of intervals that hold the truth, by quantity."""
    shares = {name: float(np.mean(inside)) for name, inside in found.items()}
    text = ', '.join(f'{name} {100.0 * share:.1f} % of {len(found[name])}'
                     for name, share in shares.items())
    print(f'\narm of known truth, {RUNS} runs, inside 95 % intervals: {text}')  # noqa: T201
    return shares


@pytest.mark.soak
def test_intervals_hold_in_a_hundred_runs() -> None:
    found: dict[str, list[bool]] = {}
    wrong: list[str] = []
    for seed in range(RUNS):
        for name, inside in held(seed).items():
            found.setdefault(name, []).extend(inside)
        wrong += sorted(claimed(seed) - {f'drift of {FIRST}'})
        run.cache_clear()
    assert len(found['stiffness']) == 2 * RUNS
    assert len(found['delay']) == 3 * RUNS
    assert len(found['viscous drop']) == len(found['dry drop']) == RUNS
    shares = told(found)
    assert all(shares[name] >= least for name, least in COVERAGE_OF_RUNS.items()), shares
    assert len(wrong) <= 0.05 * RUNS, wrong
