// Gravity compensation and feed-forward of an identified arm, without ROS.
//
//   effort = g(q) + D (qd_ref - qd) + ramp (K (q_ref - q) + M qdd_ref + C qd_ref + friction)
//
// The weight is held from the first cycle on, and so is damping. Stiffness and feed-forward rise
// within the ramp after activation. Friction is that along the reference, with its past: along
// the measured motion it would feed back, and swing.
//
// Nothing here allocates, locks, throws or prints. What is wrong ends in holding still:
// - no reference, or one that is not finite: the arm is held where it is;
// - a state that is not finite: the weight at the last good position, without feedback. After
//   `patience` cycles in a row the loop has failed for good: the caller must let the drives brake;
// - efforts are clipped to the limits; one that is not finite is that of the last good weight.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace feedforward_controller {

enum class Outcome {
  running,
  blind,   // the state is not finite: the weight is held, without feedback
  failed,  // blind for too long, or not activated: the effort is still that of the weight
};

template<class Arm>
class Feedforward {
public:
  using Joints = std::array<double, Arm::joints>;

  struct Settings {
    Joints stiffness{};     // N m/rad (N/m)
    Joints damping{};       // N m s/rad (N s/m)
    Joints effort_limit{};  // N m (N)
    double ramp = 1.0;      // s
    int patience = 5;       // cycles
  };

  struct Reference {
    Joints position{}, velocity{}, acceleration{};
  };

  // Begin to hold the arm where it is; false, and nothing begins, for a state that is not finite.
  bool activate(const Settings & settings, const Joints & position, const Joints & velocity)
  {
    active_ = finite(position) && finite(velocity);
    if (active_) {
      settings_ = settings;
      since_ = 0.0;
      blind_ = 0;
      good_ = position;
      hold(position);
    }
    return active_;
  }

  void deactivate() {active_ = false;}

  // Fill `effort` for the next cycle; `period` [s] is the time since the last one.
  Outcome update(
    double period, const Joints & position, const Joints & velocity, const Reference & reference,
    Joints & effort)
  {
    if (!active_ || !finite(position) || !finite(velocity)) {
      hold_weight(effort);
      ++blind_;
      if (active_ && blind_ <= settings_.patience) {
        return Outcome::blind;
      }
      active_ = false;
      return Outcome::failed;
    }
    if (blind_ > 0) {  // what was going on when it went blind is over
      hold(position);
      blind_ = 0;
    }
    good_ = position;
    follow(reference, position);
    loaded(position, velocity, effort);
    since_ += period > 0.0 ? period : 0.0;
    if (!finite(effort)) {
      hold_weight(effort);
    }
    clip(effort);
    return Outcome::running;
  }

private:
  static bool finite(const Joints & values)
  {
    return std::all_of(values.begin(), values.end(), [](double v) {return std::isfinite(v);});
  }

  void hold(const Joints & position)
  {
    target_ = Reference{};
    target_.position = position;
    following_ = false;
    Arm::friction_begin(&friction_, target_.position.data(), target_.velocity.data());
  }

  void follow(const Reference & reference, const Joints & position)
  {
    if (finite(reference.position) && finite(reference.velocity) &&
      finite(reference.acceleration))
    {
      if (!following_) {
        Arm::friction_begin(&friction_, reference.position.data(), reference.velocity.data());
      }
      target_ = reference;
      following_ = true;
    } else if (following_) {
      hold(position);
    }
  }

  void loaded(const Joints & position, const Joints & velocity, Joints & effort)
  {
    const double ramp = settings_.ramp > 0.0 ? std::min(since_ / settings_.ramp, 1.0) : 1.0;
    Joints weight, motion, friction;
    Arm::gravity(position.data(), weight.data());
    Arm::inverse_dynamics(
      position.data(), target_.velocity.data(), target_.acceleration.data(), motion.data());
    Arm::friction_step(
      &friction_, target_.position.data(), target_.velocity.data(), target_.acceleration.data(),
      friction.data());
    for (int j = 0; j < Arm::joints; ++j) {
      const double spring = settings_.stiffness[j] * (target_.position[j] - position[j]);
      const double damper = settings_.damping[j] * (ramp * target_.velocity[j] - velocity[j]);
      effort[j] = weight[j] + damper + ramp * (spring + motion[j] - weight[j] + friction[j]);
    }
  }

  void hold_weight(Joints & effort) const
  {
    Arm::gravity(good_.data(), effort.data());
    clip(effort);
  }

  void clip(Joints & effort) const
  {
    for (int j = 0; j < Arm::joints; ++j) {
      const double limit = settings_.effort_limit[j];
      effort[j] = std::max(-limit, std::min(limit, effort[j]));
    }
  }

  Settings settings_{};
  Reference target_{};
  Joints good_{};
  typename Arm::FrictionState friction_{};
  double since_ = 0.0;
  int blind_ = 0;
  bool active_ = false, following_ = false;
};

}  // namespace feedforward_controller
