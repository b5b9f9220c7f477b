#include "sim/ranks/ranks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/search/results.hpp"

namespace tidegate {
namespace {

using std::chrono::milliseconds;

// Between two looks at arrived messages; a helper has work for longer than that.
constexpr milliseconds look_every(1);
// How long an interrupted search waits for what others have begun.
constexpr milliseconds patience(500);
// Candidates of a thread elsewhere that are under way at the same time at most, so that none waits
// for the next.
constexpr std::size_t screenings_ahead = 8, simulations_ahead = 2;
// Fewer are not worth a message.
constexpr std::size_t least_screenings = 8, least_simulations = 2;

}  // namespace

struct Ranks::Task {
  Question::Kind kind;
  const std::vector<Sets>& list;
  std::function<void(Answer&)> take;
  const std::function<bool()>& is_stopped;
  std::atomic<std::size_t> next = 0;
  std::mutex guard = {};  // of what follows
  std::condition_variable news = {};
  std::size_t answered = 0;
  std::size_t failed_at = 0;
  std::exception_ptr failure = {};

  std::size_t begun() const { return std::min(next.load(), list.size()); }
  // Nothing else will begin, and what has begun is there.
  bool is_over() const { return answered == begun() && (answered == list.size() || is_stopped()); }
  void accept(Answer& answer) {
    const std::lock_guard hold(guard);
    ++answered;
    if (answer.error && (!failure || answer.number < failed_at))
      failed_at = answer.number, failure = answer.error;
    if (!answer.error) take(answer);
    news.notify_one();
  }
};

Ranks::Ranks(Link& link, const Evaluator& evaluator, std::size_t threads)
    : link_(link), evaluator_(evaluator), threads_(threads), helpers_(link.size()) {
  greet();
}

void Ranks::greet() {
  const std::string own = fingerprint_of(evaluator_);
  for (std::size_t heard = 1; heard < link_.size();) {
    const auto message = link_.receive();
    if (!message) {
      std::this_thread::sleep_for(look_every);
      continue;
    }
    const Hello hello = decode_hello(message->text);
    if (hello.error) std::rethrow_exception(hello.error);
    if (hello.fingerprint != own) {
      throw InputError(
          {evaluator_.path(), 0, 0}, "",
          fmt::format("process {} has read another scenario or profile, or is of another version; "
                      "give all of them the same files",
                      message->from));
    }
    helpers_[message->from].threads = hello.threads;
    ++heard;
  }
}

std::vector<Screening> Ranks::screen(const std::vector<Sets>& list) {
  if (list.size() < least_screenings) return Threads(evaluator_, 1).screen(list);
  std::vector<Screening> screenings(list.size());
  const std::function<bool()> never = [] { return false; };
  Task task{.kind = Question::Kind::screen,
            .list = list,
            .take = [&](Answer& a) { screenings[a.number] = std::move(*a.screening); },
            .is_stopped = never};
  run(task);
  return screenings;
}

void Ranks::simulate(const std::vector<Sets>& list, const Done& done,
                     const std::function<bool()>& is_stopped) {
  if (list.size() < least_simulations)
    return Threads(evaluator_, 1).simulate(list, done, is_stopped);
  Task task{.kind = Question::Kind::simulate,
            .list = list,
            .take = [&](Answer& a) { done(a.number, std::move(*a.trial)); },
            .is_stopped = is_stopped};
  run(task);
}

void Ranks::run(Task& task) {
  ++batch_;
  {
    std::vector<std::jthread> here;
    for (std::size_t t = 0; t < std::min(threads_, task.list.size()); ++t)
      here.emplace_back([&] { work_here(task); });
    milliseconds left = patience;
    while (left.count() > 0) {
      hand_out(task);
      take_answers(task);
      std::unique_lock hold(task.guard);
      if (task.is_over()) break;
      task.news.wait_for(hold, look_every);
      if (task.is_stopped()) left -= look_every;
    }
  }
  if (task.failure) std::rethrow_exception(task.failure);
}

// Less ahead towards the end, so that all are done at the same time.
void Ranks::hand_out(Task& task) {
  std::size_t all = threads_;
  for (const Helper& helper : helpers_) all += helper.threads;
  const bool is_screening = task.kind == Question::Kind::screen;
  const std::size_t most = is_screening ? screenings_ahead : simulations_ahead;
  for (std::size_t r = 1; r < helpers_.size() && !task.is_stopped(); ++r) {
    Helper& helper = helpers_[r];
    const std::size_t left = task.list.size() - task.begun();
    const std::size_t ahead = std::clamp<std::size_t>(left / (2 * all), 1, most);
    Question question{.kind = task.kind, .batch = batch_, .items = {}};
    while (helper.asked + question.items.size() < ahead * helper.threads) {
      const std::size_t i = task.next.fetch_add(1);
      if (i >= task.list.size()) break;
      question.items.push_back({static_cast<std::uint32_t>(i), task.list[i]});
    }
    if (question.items.empty()) continue;
    helper.asked += question.items.size();
    link_.send(r, encode(question));
  }
}

// Those of an interrupted batch come too late.
void Ranks::take_answers(Task& task) {
  while (const auto message = link_.receive()) {
    for (Answer& answer : decode_answers(message->text)) {
      --helpers_[message->from].asked;
      if (answer.batch == batch_) task.accept(answer);
    }
  }
}

void Ranks::work_here(Task& task) const {
  while (!task.is_stopped()) {
    const std::size_t i = task.next.fetch_add(1);
    if (i >= task.list.size()) return;
    Answer answer =
        answer_to(evaluator_, task.kind, {static_cast<std::uint32_t>(i), task.list[i]}, batch_);
    task.accept(answer);
  }
}

StopOthers::~StopOthers() {
  try {
    for (std::size_t r = 1; r < link_.size(); ++r) link_.send(r, stop_word);
  } catch (const std::exception&) {
    // Then nobody is left to be told.
  }
}

}  // namespace tidegate
