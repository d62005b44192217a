// Gravity compensation and feed-forward of an identified arm, without ROS.
//
//   effort = g(q) + D (qd_ref - qd) + ramp (K (q_ref - q) + M qdd_ref + C qd_ref + friction)
//
// Two arrangements:
// - this loop holds the arm: the weight acts from the first cycle on, and so does damping;
//   stiffness and feed-forward rise within the ramp after activation;
// - the drives hold it (`drives_hold`), and the effort is added to theirs: all of it rises from
//   zero within the ramp.
// Friction is that along the reference, with its history: along the measured motion it would feed
// back, and swing.
//
// Nothing here allocates, locks, throws or prints. Efforts keep within limits of magnitude and
// rate. Without a finite reference the arm is held where it is. On any fault the loop switches
// off, until it is activated again: the effort goes to zero where the drives hold the arm, else
// to the weight at the last good position, and the caller must let the drives brake.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace feedforward_controller {

enum class Outcome {
  running,
  blind,  // a state or an effort is not finite, for less than `patience` cycles
  off,    // by a fault, or not activated
};

enum class Fault {none, not_finite, stale, out_of_range};

inline const char * text(Fault fault)
{
  switch (fault) {
    case Fault::not_finite: return "a position, velocity or effort is not finite";
    case Fault::stale: return "the states do not change while the reference moves";
    case Fault::out_of_range: return "a position is outside of the range of the recordings";
    default: return "not activated";
  }
}

// rad (m) that the reference may move while all states stay bit for bit the same: more than
// stiction and encoder steps explain.
constexpr double STILL_TRAVEL = 0.01;

template<class Arm>
class Feedforward {
public:
  using Joints = std::array<double, Arm::joints>;

  struct Settings {
    Joints stiffness{};      // N m/rad (N/m)
    Joints damping{};        // N m s/rad (N s/m)
    Joints effort_limit{};   // N m (N)
    Joints effort_rate{};    // N m/s (N/s)
    bool drives_hold = false;
    double ramp = 1.0;       // s
    double margin = 0.1;     // rad (m) beyond the range of the recordings
    double stale = 0.05;     // s
    int patience = 5;        // cycles
  };

  struct Reference {
    Joints position{}, velocity{}, acceleration{};
  };

  // Begin to hold the arm where it is; nothing begins with a fault.
  Fault activate(const Settings & settings, const Joints & position, const Joints & velocity)
  {
    settings_ = settings;
    fault_ = examine(position, velocity);
    active_ = fault_ == Fault::none;
    if (active_) {
      since_ = still_ = travel_ = 0.0;
      blind_ = 0;
      good_ = seen_[0] = position;
      seen_[1] = velocity;
      last_ = Joints{};
      if (!settings.drives_hold) {
        Arm::gravity(position.data(), last_.data());
        clip(last_);
      }
      hold(position);
    }
    return fault_;
  }

  void deactivate() {active_ = false;}

  // What switched it off.
  Fault fault() const {return fault_;}

  // Fill `effort` for the next cycle; `period` [s] is the time since the last one.
  Outcome update(
    double period, const Joints & position, const Joints & velocity, const Reference & reference,
    Joints & effort)
  {
    const double step = period > 0.0 ? period : 0.0;
    if (active_) {
      fault_ = examine(position, velocity);
      if (fault_ == Fault::none) {
        if (blind_ > 0) {  // what was going on when it went blind is over
          hold(position);
        }
        follow(reference, position);
        fault_ = stale(step, position, velocity);
      }
      if (fault_ == Fault::none) {
        compute(position, velocity, effort);
        fault_ = finite(effort) ? Fault::none : Fault::not_finite;
      }
      if (fault_ == Fault::none) {
        good_ = position;
        blind_ = 0;
        since_ += step;
        limit(step, effort);
        return Outcome::running;
      }
      active_ = fault_ == Fault::not_finite && ++blind_ <= settings_.patience;
    }
    if (!settings_.drives_hold) {
      Arm::gravity(good_.data(), effort.data());
    } else {
      effort = active_ ? last_ : Joints{};
    }
    limit(step, effort);
    return active_ ? Outcome::blind : Outcome::off;
  }

private:
  static bool finite(const Joints & values)
  {
    return std::all_of(values.begin(), values.end(), [](double v) {return std::isfinite(v);});
  }

  Fault examine(const Joints & position, const Joints & velocity) const
  {
    if (!finite(position) || !finite(velocity)) {
      return Fault::not_finite;
    }
    for (int j = 0; j < Arm::joints; ++j) {
      if (position[j] < Arm::lowest(j) - settings_.margin ||
        position[j] > Arm::highest(j) + settings_.margin)
      {
        return Fault::out_of_range;
      }
    }
    return Fault::none;
  }

  Fault stale(double step, const Joints & position, const Joints & velocity)
  {
    if (position != seen_[0] || velocity != seen_[1]) {
      seen_[0] = position;
      seen_[1] = velocity;
      still_ = travel_ = 0.0;
    }
    double speed = 0.0;
    for (const double one : target_.velocity) {
      speed = std::max(speed, std::abs(one));
    }
    still_ += step;
    travel_ += speed * step;
    return still_ > settings_.stale && travel_ > STILL_TRAVEL ? Fault::stale : Fault::none;
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

  void compute(const Joints & position, const Joints & velocity, Joints & effort)
  {
    const double ramp = settings_.ramp > 0.0 ? std::min(since_ / settings_.ramp, 1.0) : 1.0;
    const double at_once = settings_.drives_hold ? ramp : 1.0;
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
      effort[j] = at_once * (weight[j] + damper) +
        ramp * (spring + motion[j] - weight[j] + friction[j]);
    }
  }

  void clip(Joints & effort) const
  {
    for (int j = 0; j < Arm::joints; ++j) {
      const double most = settings_.effort_limit[j];
      effort[j] = std::max(-most, std::min(most, effort[j]));
    }
  }

  void limit(double step, Joints & effort)
  {
    clip(effort);
    for (int j = 0; j < Arm::joints; ++j) {
      const double most = settings_.effort_rate[j] * step;
      effort[j] = std::max(last_[j] - most, std::min(last_[j] + most, effort[j]));
    }
    last_ = effort;
  }

  Settings settings_{};
  Reference target_{};
  Joints good_{}, last_{};
  std::array<Joints, 2> seen_{};  // position and velocity when they last changed
  typename Arm::FrictionState friction_{};
  double since_ = 0.0, still_ = 0.0, travel_ = 0.0;
  int blind_ = 0;
  Fault fault_ = Fault::none;
  bool active_ = false, following_ = false;
};

}  // namespace feedforward_controller
