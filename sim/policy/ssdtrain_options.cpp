#include <array>
#include <string_view>

#include "sim/policy/ssdtrain.hpp"

namespace tidegate {

SsdTrainOptions read_ssdtrain(yaml::Map& options, const Machine& machine) {
  SsdTrainOptions o;
  o.transport = read_transport(options, machine);
  o.scope.threshold = options.count_or("threshold", o.scope.threshold);
  if (const auto excluded = options.find("excluded")) {
    o.scope.excluded.clear();
    for (const yaml::Node& name : excluded->items()) o.scope.excluded.push_back(name.text());
  }
  o.deduplicates = options.flag_or("deduplicate", o.deduplicates);
  o.prefetches = options.flag_or("prefetch", o.prefetches);
  o.chunk = options.count_or("prefetch_chunk", o.chunk, 1);
  o.prefetches_across = options.flag_or("prefetch_across", o.prefetches_across);
  o.forwards = options.flag_or("forwarding", o.forwards);
  o.cancels = options.flag_or("cancel_forwarded", o.cancels);
  if (o.cancels && !o.forwards) {
    options.at("cancel_forwarded").problem("needs forwarding; leave it out or switch both on");
  }
  o.keeps_last_module = options.flag_or("keep_last_module", o.keeps_last_module);
  if (const auto queue = options.find("launch_queue")) {
    o.launch_queue = static_cast<std::int32_t>(queue->count(1, 1 << 20));
  }
  o.is_adaptive = options.flag_or("adaptive", o.is_adaptive);
  const auto bandwidth = options.find("bandwidth");
  if (bandwidth) o.bandwidth = bandwidth->quantity<BytesPerSecond>();
  if (bandwidth && !o.is_adaptive) bandwidth->problem("needs adaptive; leave it out");
  if (const auto iteration = options.find("profile_iteration")) {
    o.profile_iteration = static_cast<std::int32_t>(iteration->count(1, 100));
    if (!o.is_adaptive) iteration->problem("needs adaptive; leave it out");
  }
  o.records_first = options.flag_or("record_first", o.records_first);
  constexpr std::array<std::string_view, 2> flips = {"after_node", "before_node"};
  o.flips = options.choice_or("keep_switch", flips, 0) == 0 ? KeepSwitch::after_node
                                                            : KeepSwitch::before_node;
  return o;
}

}  // namespace tidegate
