#include "validate/engine/team_trial.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/core.h>

#include "calib/rig/host_buffer.hpp"
#include "models/base/error.hpp"

namespace tidegate {
namespace {

constexpr std::size_t word = sizeof(float);
constexpr std::int64_t chunk = trial_period * 16384;  // numbers; the pattern begins again after it

std::span<std::byte> numbers(std::span<std::byte> memory, std::int64_t first, std::int64_t count) {
  return memory.subspan(static_cast<std::size_t>(first) * word,
                        static_cast<std::size_t>(count) * word);
}

void fill(const TrialMember& to, std::int64_t member, rig::HostBuffer& host) {
  const std::span<float> pattern = host.as<float>();
  for (std::int64_t i = 0; i < chunk; ++i)
    pattern[static_cast<std::size_t>(i)] = trial_sent(member, i);
  const auto all = static_cast<std::int64_t>(to.out.size() / word);
  for (std::int64_t at = 0; at < all; at += chunk) {
    const std::int64_t count = std::min(chunk, all - at);
    to.seat->copy(numbers(host.bytes(), 0, count), numbers(to.out, at, count));
  }
}

std::int64_t window(const Exchange& e) { return std::min(trial_window, e.received()); }

void clear(const TrialMember& member, const Exchange& e, rig::HostBuffer& host) {
  const auto zeros = numbers(host.bytes(), 0, window(e));
  std::ranges::fill(zeros, std::byte{0});
  for (const std::int64_t at : trial_windows(e))
    member.seat->copy(zeros, numbers(member.in, at, window(e)));
}

void look(const TrialMember& from, const Exchange& e, std::int64_t member, rig::HostBuffer& host,
          const std::string& whose) {
  for (const std::int64_t at : trial_windows(e)) {
    from.seat->copy(numbers(from.in, at, window(e)), numbers(host.bytes(), 0, window(e)));
    for (std::int64_t i = 0; i < window(e); ++i) {
      const float is = host.as<float>()[static_cast<std::size_t>(i)];
      const float should = trial_received(e, member, at + i);
      if (is == should) continue;
      throw MachineError(
          fmt::format("{} received {} in place {} by {} of {} numbers, where {} belongs", whose, is,
                      at + i, name_of(e.kind), e.whole(), should));
    }
  }
}

}  // namespace

void try_team(const Devices& devices, const GpuNeeds::Group& group,
              std::span<const TrialMember> members, std::span<const Exchange> exchanges,
              const std::function<void(const Exchange&)>& run) {
  rig::HostBuffer host(static_cast<std::size_t>(chunk) * word);
  const PinnedPages pinned(devices.at(group.front()), host.bytes());
  for (std::size_t m = 0; m < members.size(); ++m)
    fill(members[m], static_cast<std::int64_t>(m), host);
  for (const Exchange& e : exchanges) {
    for (const TrialMember& member : members) clear(member, e, host);
    run(e);
    for (std::size_t m = 0; m < members.size(); ++m) {
      const std::string whose =
          fmt::format("{}, member {} of {},", to_text(devices, {&group[m], 1}), m, group.size());
      look(members[m], e, static_cast<std::int64_t>(m), host, whose);
    }
  }
}

}  // namespace tidegate
