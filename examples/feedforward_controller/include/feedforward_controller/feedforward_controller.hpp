// ros2_control plugin around `Feedforward`: states and references in, efforts out. References
// may be passed through to drives that hold the arm by themselves.
#pragma once

#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "feedforward_controller/arm.hpp"
#include "feedforward_controller/feedforward.hpp"

namespace feedforward_controller {

class FeedforwardController : public controller_interface::ChainableControllerInterface {
public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State &) override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State &) override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override;
  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time &, const rclcpp::Duration &) override;
  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time &, const rclcpp::Duration & period) override;

protected:
  std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() override;

private:
  using Loop = Feedforward<Arm>;

  bool read_parameters();
  std::string interface(int joint, const char * name) const;
  void read(Loop::Joints & position, Loop::Joints & velocity) const;
  Loop::Reference reference() const;
  bool pass_through();

  Loop loop_;
  Loop::Settings settings_;
  std::vector<std::string> joints_;
  std::vector<int> passed_;  // numbers in REFERENCES; their command interfaces follow the efforts
  bool reported_ = false;
};

}  // namespace feedforward_controller
