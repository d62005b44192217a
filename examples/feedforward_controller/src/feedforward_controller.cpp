#include "feedforward_controller/feedforward_controller.hpp"

#include <algorithm>
#include <limits>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace feedforward_controller {

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;

namespace {

constexpr double NONE = std::numeric_limits<double>::quiet_NaN();
const char * const REFERENCES[] = {
  hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
  hardware_interface::HW_IF_ACCELERATION};

std::string joint_interface(int joint, const char * name)
{
  return std::string(Arm::joint_name(joint)) + "/" + name;
}

}  // namespace

CallbackReturn FeedforwardController::on_init()
{
  for (const char * name : {"stiffness", "damping", "effort_limits"}) {
    auto_declare<std::vector<double>>(name, {});
  }
  auto_declare<double>("ramp", 1.0);
  auto_declare<int>("patience", 5);
  return CallbackReturn::SUCCESS;
}

InterfaceConfiguration FeedforwardController::command_interface_configuration() const
{
  InterfaceConfiguration found{interface_configuration_type::INDIVIDUAL, {}};
  for (int j = 0; j < Arm::joints; ++j) {
    found.names.push_back(joint_interface(j, hardware_interface::HW_IF_EFFORT));
  }
  return found;
}

InterfaceConfiguration FeedforwardController::state_interface_configuration() const
{
  InterfaceConfiguration found{interface_configuration_type::INDIVIDUAL, {}};
  for (int j = 0; j < Arm::joints; ++j) {
    found.names.push_back(joint_interface(j, hardware_interface::HW_IF_POSITION));
    found.names.push_back(joint_interface(j, hardware_interface::HW_IF_VELOCITY));
  }
  return found;
}

std::vector<hardware_interface::CommandInterface>
FeedforwardController::on_export_reference_interfaces()
{
  reference_interfaces_.assign(3 * Arm::joints, NONE);
  std::vector<hardware_interface::CommandInterface> found;
  for (int i = 0; i < 3 * Arm::joints; ++i) {
    found.emplace_back(
      get_node()->get_name(), joint_interface(i / 3, REFERENCES[i % 3]),
      &reference_interfaces_[i]);
  }
  return found;
}

CallbackReturn FeedforwardController::on_configure(const rclcpp_lifecycle::State &)
{
  const auto node = get_node();
  Loop::Joints * const wanted[] = {
    &settings_.stiffness, &settings_.damping, &settings_.effort_limit};
  const char * const names[] = {"stiffness", "damping", "effort_limits"};
  for (int k = 0; k < 3; ++k) {
    const auto values = node->get_parameter(names[k]).as_double_array();
    const bool good = std::all_of(
      values.begin(), values.end(), [](double v) {return v >= 0.0 && v < 1e9;});
    if (values.size() != Arm::joints || !good) {
      RCLCPP_ERROR(
        node->get_logger(), "%s: give %d numbers that are not below zero, one per joint from %s "
        "to %s", names[k], Arm::joints, Arm::joint_name(0), Arm::joint_name(Arm::joints - 1));
      return CallbackReturn::ERROR;
    }
    std::copy(values.begin(), values.end(), wanted[k]->begin());
  }
  settings_.ramp = node->get_parameter("ramp").as_double();
  settings_.patience = static_cast<int>(node->get_parameter("patience").as_int());
  RCLCPP_INFO(node->get_logger(), "model %s", Arm::digest());
  return CallbackReturn::SUCCESS;
}

CallbackReturn FeedforwardController::on_activate(const rclcpp_lifecycle::State &)
{
  std::fill(reference_interfaces_.begin(), reference_interfaces_.end(), NONE);
  Loop::Joints position, velocity;
  read(position, velocity);
  if (!loop_.activate(settings_, position, velocity)) {
    RCLCPP_ERROR(get_node()->get_logger(), "a joint has no position or velocity: not activated");
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn FeedforwardController::on_deactivate(const rclcpp_lifecycle::State &)
{
  loop_.deactivate();
  return CallbackReturn::SUCCESS;
}

return_type FeedforwardController::update_reference_from_subscribers(
  const rclcpp::Time &, const rclcpp::Duration &)
{
  // no controller in front (any more): the arm is held where it is
  std::fill(reference_interfaces_.begin(), reference_interfaces_.end(), NONE);
  return return_type::OK;
}

return_type FeedforwardController::update_and_write_commands(
  const rclcpp::Time &, const rclcpp::Duration & period)
{
  Loop::Joints position, velocity, effort;
  read(position, velocity);
  Loop::Reference reference;
  for (int j = 0; j < Arm::joints; ++j) {
    reference.position[j] = reference_interfaces_[3 * j];
    // a controller in front may leave these out
    const double speed = reference_interfaces_[3 * j + 1];
    const double change = reference_interfaces_[3 * j + 2];
    reference.velocity[j] = std::isfinite(speed) ? speed : 0.0;
    reference.acceleration[j] = std::isfinite(change) ? change : 0.0;
  }
  const Outcome outcome = loop_.update(period.seconds(), position, velocity, reference, effort);
  const bool written = write(effort);
  return written && outcome != Outcome::failed ? return_type::OK : return_type::ERROR;
}

void FeedforwardController::read(Loop::Joints & position, Loop::Joints & velocity) const
{
  for (int j = 0; j < Arm::joints; ++j) {
    position[j] = state_interfaces_[2 * j].get_optional().value_or(NONE);
    velocity[j] = state_interfaces_[2 * j + 1].get_optional().value_or(NONE);
  }
}

bool FeedforwardController::write(const Loop::Joints & effort)
{
  bool good = true;
  for (int j = 0; j < Arm::joints; ++j) {
    good = command_interfaces_[j].set_value(effort[j]) && good;
  }
  return good;
}

}  // namespace feedforward_controller

PLUGINLIB_EXPORT_CLASS(
  feedforward_controller::FeedforwardController,
  controller_interface::ChainableControllerInterface)
