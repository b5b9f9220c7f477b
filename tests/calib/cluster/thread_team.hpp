#pragma once

#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "calib/cluster/team.hpp"

namespace tidegate::test {

/// A team whose ranks are threads of this process: what MPI does, as far as a Team asks for it.
class ThreadTeam : public calib::Team {
 public:
  struct Room {
    explicit Room(std::int32_t ranks)
        : texts(static_cast<std::size_t>(ranks)),
          flags(static_cast<std::size_t>(ranks)),
          meeting(ranks) {}
    std::vector<std::string> texts;
    std::vector<char> flags;
    std::barrier<> meeting;
  };
  ThreadTeam(Room& room, std::int32_t rank) : room_(room), rank_(rank) {}

  std::int32_t rank() const override { return rank_; }
  std::int32_t size() const override { return static_cast<std::int32_t>(room_.texts.size()); }
  std::int32_t rank_on_host() const override { return rank_; }
  std::int32_t host() const override { return 0; }
  std::int32_t hosts() const override { return 1; }
  void barrier() override { room_.meeting.arrive_and_wait(); }
  std::vector<std::string> gather(const std::string& text) override {
    room_.texts[static_cast<std::size_t>(rank_)] = text;
    barrier();
    std::vector<std::string> all;
    if (rank_ == 0) all = room_.texts;
    barrier();
    return all;
  }
  std::string broadcast(const std::string& text) override {
    if (rank_ == 0) room_.texts[0] = text;
    barrier();
    std::string got = room_.texts[0];
    barrier();
    return got;
  }
  bool any(bool holds) override {
    room_.flags[static_cast<std::size_t>(rank_)] = holds ? 1 : 0;
    barrier();
    bool all = false;
    for (const char flag : room_.flags) all = all || flag != 0;
    barrier();
    return all;
  }
  Seconds all_reduce(std::int64_t) override { return Seconds(1); }
  Seconds send(std::int32_t, std::int64_t) override { return Seconds(1); }

 private:
  Room& room_;
  std::int32_t rank_;
};

/// Runs `work` on each of so many ranks. It must not throw.
inline void on_ranks(std::int32_t ranks, const std::function<void(calib::Team&)>& work) {
  ThreadTeam::Room room(ranks);
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&room, r, &work] {
      ThreadTeam team(room, r);
      work(team);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tidegate::test
