#include "sim/search/wire.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

using nlohmann::ordered_json;

// Unlimited memory and unlimited time have no number in JSON.
ordered_json number_json(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}
double number_from(const ordered_json& json) {
  return json.is_null() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

ordered_json to_json(const std::vector<Need>& needs) {
  ordered_json list = ordered_json::array();
  for (const Need& need : needs) {
    list.push_back({{"name", need.pool},
                    {"kind", need.is_gpu    ? "gpu"
                             : need.is_host ? "host"
                                            : "storage"},
                    {"needed_bytes", number_json(need.bytes.value())},
                    {"capacity_bytes", number_json(need.capacity.value())}});
  }
  return list;
}

std::vector<Need> needs_from(const ordered_json& json) {
  std::vector<Need> needs;
  for (const ordered_json& pool : json) {
    needs.push_back({.pool = pool.at("name").get<std::string>(),
                     .bytes = Bytes(number_from(pool.at("needed_bytes"))),
                     .capacity = Bytes(number_from(pool.at("capacity_bytes"))),
                     .is_gpu = pool.at("kind") == "gpu",
                     .is_host = pool.at("kind") == "host"});
  }
  return needs;
}

void add_trial(ordered_json& json, const Trial& trial) {
  json["iteration_s"] = trial.iteration_time.value();
  json["tokens_per_second"] = trial.tokens_per_second;
  json["fits"] = trial.fits;
  json["pools"] = to_json(trial.needs);
  json["paths"] = ordered_json::array();
  for (const Trial::Wear& wear : trial.wear) {
    json["paths"].push_back(
        {{"name", wear.path},
         {"written_per_day_bytes", wear.written_per_day.value()},
         {"life_years", wear.life_years ? ordered_json(*wear.life_years) : ordered_json(nullptr)}});
  }
}

Trial trial_from(const ordered_json& json) {
  Trial trial{.iteration_time = Seconds(json.at("iteration_s").get<double>()),
              .tokens_per_second = json.at("tokens_per_second").get<double>(),
              .fits = json.at("fits").get<bool>(),
              .needs = needs_from(json.at("pools")),
              .wear = {}};
  for (const ordered_json& path : json.at("paths")) {
    const ordered_json& life = path.at("life_years");
    trial.wear.push_back(
        {.path = path.at("name").get<std::string>(),
         .written_per_day = Bytes(path.at("written_per_day_bytes").get<double>()),
         .life_years = life.is_null() ? std::nullopt : std::optional(life.get<double>())});
  }
  return trial;
}

ordered_json to_json(const Screening& screening) {
  const Bound& bound = screening.bound;
  return {{"refusal", screening.refusal},
          {"time_s", number_json(bound.time.value())},
          {"kernels_s", number_json(bound.kernels.value())},
          {"passes_s", number_json(bound.passes.value())},
          {"update_s", number_json(bound.update.value())},
          {"limited_by", bound.limited_by},
          {"pools", to_json(bound.needs)}};
}

Screening screening_from(const ordered_json& json) {
  const auto seconds = [&](const char* key) { return Seconds(number_from(json.at(key))); };
  return {.refusal = json.at("refusal").get<std::string>(),
          .bound = {.time = seconds("time_s"),
                    .kernels = seconds("kernels_s"),
                    .passes = seconds("passes_s"),
                    .update = seconds("update_s"),
                    .limited_by = json.at("limited_by").get<std::string>(),
                    .needs = needs_from(json.at("pools"))}};
}

ordered_json to_json(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const InputError& e) {
    ordered_json problems = ordered_json::array();
    for (const Problem& p : e.problems())
      problems.push_back({p.where.file, p.where.line, p.where.column, p.key, p.text});
    return {{"input", problems}};
  } catch (const MachineError& e) {
    return {{"machine", e.what()}};
  } catch (const std::exception& e) {
    return {{"bug", e.what()}};
  }
}

std::exception_ptr error_from(const ordered_json& json) {
  if (json.contains("machine"))
    return std::make_exception_ptr(MachineError(json.at("machine").get<std::string>()));
  if (json.contains("bug"))
    return std::make_exception_ptr(std::logic_error(json.at("bug").get<std::string>()));
  std::vector<Problem> problems;
  for (const ordered_json& p : json.at("input")) {
    problems.push_back({{p.at(0).get<std::string>(), p.at(1).get<int>(), p.at(2).get<int>()},
                        p.at(3).get<std::string>(),
                        p.at(4).get<std::string>()});
  }
  return std::make_exception_ptr(InputError(std::move(problems)));
}

}  // namespace

std::vector<std::string> texts_of(const std::vector<Override>& sets) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : sets) texts.push_back(key + "=" + value);
  return texts;
}

std::string encode(const std::vector<Override>& sets, const Trial& trial) {
  ordered_json json = {{"sets", texts_of(sets)}};
  add_trial(json, trial);
  return json.dump();
}

Result decode_result(const std::string& line) {
  const ordered_json json = ordered_json::parse(line);
  return {json.at("sets").get<std::vector<std::string>>(), trial_from(json)};
}

std::string encode(const Question& question) {
  ordered_json json = {{"simulates", question.kind == Question::Kind::simulate},
                       {"batch", question.batch},
                       {"items", ordered_json::array()}};
  for (const Question::Item& item : question.items)
    json["items"].push_back({item.number, item.sets});
  return json.dump();
}

Question decode_question(const std::string& line) {
  const ordered_json json = ordered_json::parse(line);
  Question question{
      .kind = json.at("simulates").get<bool>() ? Question::Kind::simulate : Question::Kind::screen,
      .batch = json.at("batch").get<std::uint32_t>(),
      .items = {}};
  for (const ordered_json& item : json.at("items")) {
    question.items.push_back(
        {item.at(0).get<std::uint32_t>(), item.at(1).get<std::vector<Override>>()});
  }
  return question;
}

std::string encode(const std::vector<Answer>& answers) {
  ordered_json list = ordered_json::array();
  for (const Answer& answer : answers) {
    ordered_json json = {{"batch", answer.batch}, {"number", answer.number}};
    if (answer.screening) json["screening"] = to_json(*answer.screening);
    if (answer.trial) add_trial(json["trial"], *answer.trial);
    if (answer.error) json["error"] = to_json(answer.error);
    list.push_back(std::move(json));
  }
  return list.dump();
}

std::vector<Answer> decode_answers(const std::string& line) {
  std::vector<Answer> answers;
  for (const ordered_json& json : ordered_json::parse(line)) {
    Answer answer{.batch = json.at("batch").get<std::uint32_t>(),
                  .number = json.at("number").get<std::uint32_t>(),
                  .screening = std::nullopt,
                  .trial = std::nullopt,
                  .error = nullptr};
    if (json.contains("screening")) answer.screening = screening_from(json.at("screening"));
    if (json.contains("trial")) answer.trial = trial_from(json.at("trial"));
    if (json.contains("error")) answer.error = error_from(json.at("error"));
    answers.push_back(std::move(answer));
  }
  return answers;
}

std::string encode(const Hello& hello) {
  ordered_json json = {{"threads", hello.threads}, {"fingerprint", hello.fingerprint}};
  if (hello.error) json["error"] = to_json(hello.error);
  return json.dump();
}

Hello decode_hello(const std::string& line) {
  const ordered_json json = ordered_json::parse(line);
  return {.threads = json.at("threads").get<std::uint32_t>(),
          .fingerprint = json.at("fingerprint").get<std::string>(),
          .error = json.contains("error") ? error_from(json.at("error")) : nullptr};
}

}  // namespace tidegate
