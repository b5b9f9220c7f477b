#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "sim/ranks/ranks.hpp"
#include "sim/search/results.hpp"

/// The other ranks.
namespace tidegate {
namespace {

constexpr std::chrono::milliseconds look_every(1);

// Questions on their way to the threads, and answers on their way back.
class Desk {
 public:
  void put(const Question& question) {
    const std::lock_guard hold(guard_);
    for (const Question::Item& item : question.items)
      waiting_.push_back({question.kind, question.batch, item});
    work_.notify_all();
  }

  void answer(const Evaluator& evaluator, const std::stop_token& stops) {
    std::unique_lock hold(guard_);
    while (work_.wait(hold, stops, [&] { return !waiting_.empty(); })) {
      const Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      hold.unlock();
      Answer answer = answer_to(evaluator, next.kind, next.item, next.batch);
      hold.lock();
      answers_.push_back(std::move(answer));
      news_.notify_one();
    }
  }

  /// What is there, after a while at most.
  std::vector<Answer> answers() {
    std::unique_lock hold(guard_);
    news_.wait_for(hold, look_every, [&] { return !answers_.empty(); });
    return std::exchange(answers_, {});
  }

 private:
  struct Waiting {
    Question::Kind kind;
    std::uint32_t batch;
    Question::Item item;
  };
  std::mutex guard_;
  std::condition_variable_any work_;
  std::condition_variable news_;
  std::deque<Waiting> waiting_;
  std::vector<Answer> answers_;
};

}  // namespace

Answer answer_to(const Evaluator& evaluator, Question::Kind kind, const Question::Item& item,
                 std::uint32_t batch) {
  Answer answer{.batch = batch,
                .number = item.number,
                .screening = std::nullopt,
                .trial = std::nullopt,
                .error = nullptr};
  try {
    if (kind == Question::Kind::screen) {
      answer.screening = evaluator.screen(item.sets);
    } else {
      answer.trial = evaluator.simulate(item.sets);
    }
  } catch (...) {
    answer.error = std::current_exception();
  }
  return answer;
}

void serve(Link& link, std::size_t threads,
           const std::function<std::unique_ptr<Evaluator>()>& make) {
  std::unique_ptr<Evaluator> evaluator;
  Hello hello{.threads = static_cast<std::uint32_t>(threads), .fingerprint = "", .error = nullptr};
  try {
    evaluator = make();
    hello.fingerprint = fingerprint_of(*evaluator);
  } catch (...) {
    hello.error = std::current_exception();
  }
  link.send(0, encode(hello));
  Desk desk;
  std::vector<std::jthread> here;
  for (std::size_t t = 0; t < threads && !hello.error; ++t)
    here.emplace_back([&](const std::stop_token& stops) { desk.answer(*evaluator, stops); });
  for (;;) {
    while (const auto message = link.receive()) {
      if (message->text == stop_word) return;
      desk.put(decode_question(message->text));
    }
    const std::vector<Answer> answers = desk.answers();
    if (!answers.empty()) link.send(0, encode(answers));
  }
}

}  // namespace tidegate
