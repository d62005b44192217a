// The loop of examples/feedforward_controller behind functions of C.
#include "feedforward_controller/arm.hpp"
#include "feedforward_controller/feedforward.hpp"

using Loop = feedforward_controller::Feedforward<feedforward_controller::Arm>;
using Joints = Loop::Joints;

static Loop loop;

static Joints joints(const double * from)
{
  Joints values;
  std::copy(from, from + values.size(), values.begin());
  return values;
}

extern "C" int activate(
  const double * stiffness, const double * damping, const double * limit, const double * rate,
  int drives_hold, double ramp, const double * q, const double * qd)
{
  Loop::Settings settings;
  settings.stiffness = joints(stiffness);
  settings.damping = joints(damping);
  settings.effort_limit = joints(limit);
  settings.effort_rate = joints(rate);
  settings.drives_hold = drives_hold;
  settings.ramp = ramp;
  return static_cast<int>(loop.activate(settings, joints(q), joints(qd)));
}

extern "C" int fault() {return static_cast<int>(loop.fault());}

extern "C" int update(
  double period, const double * q, const double * qd, const double * q_ref,
  const double * qd_ref, const double * qdd_ref, double * out)
{
  Joints effort;
  const auto outcome = loop.update(
    period, joints(q), joints(qd), {joints(q_ref), joints(qd_ref), joints(qdd_ref)}, effort);
  std::copy(effort.begin(), effort.end(), out);
  return static_cast<int>(outcome);
}
