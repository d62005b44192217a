#include "feedforward_controller/feedforward_controller.hpp"

#include <algorithm>
#include <iterator>
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
constexpr int KINDS = 3;
const char * const REFERENCES[KINDS] = {
  hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
  hardware_interface::HW_IF_ACCELERATION};

bool usable(double value) {return value >= 0.0 && value < 1e9;}

}  // namespace

CallbackReturn FeedforwardController::on_init()
{
  for (const char * name : {"stiffness", "damping"}) {
    auto_declare<std::vector<double>>(name, std::vector<double>(Arm::joints, 0.0));
  }
  for (const char * name : {"effort_limits", "effort_rates"}) {
    auto_declare<std::vector<double>>(name, {});
  }
  for (const char * name : {"joints", "pass_through"}) {
    auto_declare<std::vector<std::string>>(name, {});
  }
  const Loop::Settings usual;
  auto_declare<double>("ramp", usual.ramp);
  auto_declare<double>("range_margin", usual.margin);
  auto_declare<double>("stale", usual.stale);
  auto_declare<int>("patience", usual.patience);
  for (int j = 0; j < Arm::joints; ++j) {
    joints_.push_back(Arm::joint_name(j));
  }
  return CallbackReturn::SUCCESS;
}

std::string FeedforwardController::interface(int joint, const char * name) const
{
  return joints_[joint] + "/" + name;
}

InterfaceConfiguration FeedforwardController::command_interface_configuration() const
{
  InterfaceConfiguration wanted{interface_configuration_type::INDIVIDUAL, {}};
  for (int j = 0; j < Arm::joints; ++j) {
    wanted.names.push_back(interface(j, hardware_interface::HW_IF_EFFORT));
  }
  for (const int kind : passed_) {
    for (int j = 0; j < Arm::joints; ++j) {
      wanted.names.push_back(interface(j, REFERENCES[kind]));
    }
  }
  return wanted;
}

InterfaceConfiguration FeedforwardController::state_interface_configuration() const
{
  InterfaceConfiguration wanted{interface_configuration_type::INDIVIDUAL, {}};
  for (int j = 0; j < Arm::joints; ++j) {
    wanted.names.push_back(interface(j, hardware_interface::HW_IF_POSITION));
    wanted.names.push_back(interface(j, hardware_interface::HW_IF_VELOCITY));
  }
  return wanted;
}

std::vector<hardware_interface::CommandInterface>
FeedforwardController::on_export_reference_interfaces()
{
  reference_interfaces_.assign(KINDS * Arm::joints, NONE);
  std::vector<hardware_interface::CommandInterface> exported;
  for (int i = 0; i < KINDS * Arm::joints; ++i) {
    exported.emplace_back(
      get_node()->get_name(), interface(i / KINDS, REFERENCES[i % KINDS]),
      &reference_interfaces_[i]);
  }
  return exported;
}

CallbackReturn FeedforwardController::on_configure(const rclcpp_lifecycle::State &)
{
  if (!read_parameters()) {
    return CallbackReturn::ERROR;
  }
  RCLCPP_INFO(
    get_node()->get_logger(), "model %s; %s", Arm::digest(), settings_.drives_hold ?
    "efforts are added to those of drives that hold the arm" : "its efforts hold the arm");
  return CallbackReturn::SUCCESS;
}

bool FeedforwardController::read_parameters()
{
  const auto node = get_node();
  const auto number = [&](const char * name) {return node->get_parameter(name).as_double();};
  Loop::Joints * const wanted[] = {
    &settings_.stiffness, &settings_.damping, &settings_.effort_limit, &settings_.effort_rate};
  const char * const names[] = {"stiffness", "damping", "effort_limits", "effort_rates"};
  for (int k = 0; k < 4; ++k) {
    const auto values = node->get_parameter(names[k]).as_double_array();
    if (values.size() != Arm::joints || !std::all_of(values.begin(), values.end(), usable)) {
      RCLCPP_ERROR(
        node->get_logger(), "%s: give %d numbers that are not below zero, one per joint from %s "
        "to %s", names[k], Arm::joints, Arm::joint_name(0), Arm::joint_name(Arm::joints - 1));
      return false;
    }
    std::copy(values.begin(), values.end(), wanted[k]->begin());
  }
  settings_.ramp = number("ramp");
  settings_.margin = number("range_margin");
  settings_.stale = number("stale");
  settings_.patience = static_cast<int>(node->get_parameter("patience").as_int());
  if (!usable(settings_.ramp) || !usable(settings_.margin) || !usable(settings_.stale)) {
    RCLCPP_ERROR(
      node->get_logger(), "ramp, range_margin, stale: give numbers that are not below zero");
    return false;
  }
  const auto joints = node->get_parameter("joints").as_string_array();
  if (!joints.empty() && joints.size() != Arm::joints) {
    RCLCPP_ERROR(
      node->get_logger(), "joints: give the %d joints in the order of the model, or none",
      Arm::joints);
    return false;
  }
  if (!joints.empty()) {
    joints_ = joints;
  }
  passed_.clear();
  const auto passed = node->get_parameter("pass_through").as_string_array();
  for (const auto & name : passed) {
    const auto place = std::find(std::begin(REFERENCES), std::end(REFERENCES), name);
    if (place == std::end(REFERENCES)) {
      RCLCPP_ERROR(
        node->get_logger(), "pass_through: %s is none of position, velocity, acceleration",
        name.c_str());
      return false;
    }
    passed_.push_back(static_cast<int>(place - std::begin(REFERENCES)));
  }
  settings_.drives_hold = !passed_.empty();
  return true;
}

CallbackReturn FeedforwardController::on_activate(const rclcpp_lifecycle::State &)
{
  std::fill(reference_interfaces_.begin(), reference_interfaces_.end(), NONE);
  Loop::Joints position, velocity;
  read(position, velocity);
  const Fault fault = loop_.activate(settings_, position, velocity);
  if (fault != Fault::none) {
    RCLCPP_ERROR(get_node()->get_logger(), "not activated: %s", text(fault));
    return CallbackReturn::ERROR;
  }
  reported_ = false;
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
  const Outcome outcome = loop_.update(
    period.seconds(), position, velocity, reference(), effort);
  bool written = pass_through();
  for (int j = 0; j < Arm::joints; ++j) {
    written = command_interfaces_[j].set_value(effort[j]) && written;
  }
  if (outcome == Outcome::off && !reported_) {
    RCLCPP_ERROR(get_node()->get_logger(), "switched off: %s", text(loop_.fault()));
    reported_ = true;
  }
  // drives that hold the arm go on without the effort; without such drives the caller has to act
  const bool held = outcome != Outcome::off || settings_.drives_hold;
  return written && held ? return_type::OK : return_type::ERROR;
}

FeedforwardController::Loop::Reference FeedforwardController::reference() const
{
  Loop::Reference wanted;
  for (int j = 0; j < Arm::joints; ++j) {
    wanted.position[j] = reference_interfaces_[KINDS * j];
    // a controller in front may leave these out
    const double speed = reference_interfaces_[KINDS * j + 1];
    const double change = reference_interfaces_[KINDS * j + 2];
    wanted.velocity[j] = std::isfinite(speed) ? speed : 0.0;
    wanted.acceleration[j] = std::isfinite(change) ? change : 0.0;
  }
  return wanted;
}

bool FeedforwardController::pass_through()
{
  bool written = true;
  std::size_t place = Arm::joints;
  for (const int kind : passed_) {
    for (int j = 0; j < Arm::joints; ++j, ++place) {
      const double value = reference_interfaces_[KINDS * j + kind];
      if (std::isfinite(value)) {  // without a reference the last command stays
        written = command_interfaces_[place].set_value(value) && written;
      }
    }
  }
  return written;
}

void FeedforwardController::read(Loop::Joints & position, Loop::Joints & velocity) const
{
  for (int j = 0; j < Arm::joints; ++j) {
    position[j] = state_interfaces_[2 * j].get_optional().value_or(NONE);
    velocity[j] = state_interfaces_[2 * j + 1].get_optional().value_or(NONE);
  }
}

}  // namespace feedforward_controller

PLUGINLIB_EXPORT_CLASS(
  feedforward_controller::FeedforwardController,
  controller_interface::ChainableControllerInterface)
