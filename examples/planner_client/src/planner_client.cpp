// Efforts of many states from the identifier, as a planner asks for them:
//
//   ros2 run planner_client planner_client --ros-args -r identifier:=/cell1/identifier
//
// One request carries a batch of states, several requests are under way at once, and the client
// keeps enough answers: with the default depth of 10 a burst of answers loses some.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "rclcpp/rclcpp.hpp"
#include "rclcpp/version.h"
#include "robot_dynid_interfaces/msg/dynamic_model.hpp"
#include "robot_dynid_interfaces/srv/compute_inverse_dynamics.hpp"

using namespace std::chrono_literals;
using robot_dynid_interfaces::msg::DynamicModel;
using InverseDynamics = robot_dynid_interfaces::srv::ComputeInverseDynamics;

namespace {

constexpr std::size_t ANSWERS = 1000;  // kept for a client that is busy
constexpr std::size_t BATCH = 500;     // states of a request
constexpr std::size_t BATCHES = 20;
constexpr auto PATIENCE = 20s;

rclcpp::Client<InverseDynamics>::SharedPtr make_client(
  rclcpp::Node & node, const std::string & service)
{
  const auto qos = rclcpp::ServicesQoS().keep_last(ANSWERS);
#if RCLCPP_VERSION_GTE(17, 0, 0)
  return node.create_client<InverseDynamics>(service, qos);
#else  // Humble
  return node.create_client<InverseDynamics>(service, qos.get_rmw_qos_profile());
#endif
}

// Return the joints of the served model, in the order of all arrays; none if no model is served.
std::vector<std::string> served_joints(
  const rclcpp::Node::SharedPtr & node, const std::string & topic)
{
  std::promise<std::vector<std::string>> promise;
  auto joints = promise.get_future();
  bool first = true;
  const auto subscription = node->create_subscription<DynamicModel>(
    topic, rclcpp::QoS(1).transient_local(), [&](const DynamicModel & model) {
      if (first) {promise.set_value(model.joint_names);}
      first = false;
    });
  const auto result = rclcpp::spin_until_future_complete(node, joints, PATIENCE);
  return result == rclcpp::FutureReturnCode::SUCCESS ? joints.get() : std::vector<std::string>{};
}

// A batch of states (row-major, one state after the other) of small motions about zero.
std::shared_ptr<InverseDynamics::Request> make_request(
  const std::vector<std::string> & joints, std::size_t batch)
{
  auto request = std::make_shared<InverseDynamics::Request>();
  request->joint_names = joints;
  for (std::size_t k = 0; k < BATCH; ++k) {
    for (std::size_t j = 0; j < joints.size(); ++j) {
      const double phase = 0.01 * static_cast<double>(batch * BATCH + k) + static_cast<double>(j);
      request->position.push_back(0.1 * std::sin(phase));
      request->velocity.push_back(0.1 * std::cos(phase));
      request->acceleration.push_back(-0.1 * std::sin(phase));
    }
  }
  return request;
}

}  // namespace

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  const auto node = std::make_shared<rclcpp::Node>("planner_client");
  const auto client = make_client(*node, "identifier/inverse_dynamics");
  const auto joints = served_joints(node, "identifier/model");
  if (joints.empty() || !client->wait_for_service(PATIENCE)) {
    RCLCPP_ERROR(node->get_logger(), "no identifier serves a model: start it with one");
    return 1;
  }
  std::vector<rclcpp::Client<InverseDynamics>::SharedFuture> answers;
  for (std::size_t batch = 0; batch < BATCHES; ++batch) {
    answers.push_back(client->async_send_request(make_request(joints, batch)).future.share());
  }
  std::vector<double> largest(joints.size(), 0.0);
  for (const auto & answer : answers) {
    if (rclcpp::spin_until_future_complete(node, answer, PATIENCE) !=
      rclcpp::FutureReturnCode::SUCCESS)
    {
      RCLCPP_ERROR(node->get_logger(), "no answer");
      return 1;
    }
    const auto response = answer.get();
    if (!response->success) {  // the message names what is wrong; nothing was computed
      RCLCPP_ERROR(node->get_logger(), "%s", response->message.c_str());
      return 1;
    }
    for (std::size_t i = 0; i < response->effort.size(); ++i) {
      auto & most = largest[i % joints.size()];
      most = std::max(most, std::abs(response->effort[i]));
    }
  }
  for (std::size_t j = 0; j < joints.size(); ++j) {
    std::printf("%24s: up to %.2f N m in %zu states\n", joints[j].c_str(), largest[j],
                BATCH * BATCHES);
  }
  rclcpp::shutdown();
  return 0;
}
