#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

/// Names of the parts of a plan, and conditions on its choices (plan.hpp).
namespace tidegate {

enum class TaskId : std::uint32_t {};
enum class WorkId : std::uint32_t {};
enum class LaneId : std::uint16_t {};
enum class PoolId : std::uint16_t {};
enum class OwnerId : std::uint16_t {};
enum class TokenId : std::uint16_t {};
enum class LockId : std::uint16_t {};
enum class BufferId : std::uint32_t {};
enum class NameId : std::uint16_t {};
enum class ChoiceId : std::uint32_t {};
enum class ContentId : std::uint32_t {};

template <class Id>
constexpr std::size_t index(Id id)
  requires std::is_enum_v<Id>
{
  return static_cast<std::size_t>(id);
}

/// Condition of a task or of an effect: always, or only with one outcome of a choice.
struct When {
  std::int32_t code = 0;  ///< 0 always, c + 1 when choice c is yes, -(c + 1) when it is no

  static constexpr When yes(ChoiceId c) { return {static_cast<std::int32_t>(index(c)) + 1}; }
  static constexpr When no(ChoiceId c) { return {-static_cast<std::int32_t>(index(c)) - 1}; }
  constexpr bool is_always() const { return code == 0; }
  constexpr bool wants_yes() const { return code > 0; }
  /// Unless is_always.
  constexpr ChoiceId choice() const {
    return static_cast<ChoiceId>(static_cast<std::uint32_t>(code > 0 ? code : -code) - 1);
  }
  /// outcomes[c]: 1 when choice c is yes; what is missing is no.
  constexpr bool holds(std::span<const std::uint8_t> outcomes) const {
    if (code == 0) return true;
    const std::size_t c = index(choice());
    return (c < outcomes.size() && outcomes[c] != 0) == wants_yes();
  }
  bool operator==(const When&) const = default;
};

}  // namespace tidegate
