#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

/// Logs and traces of real engines on the command line.

using nlohmann::json;
using tidegate::test::Finished;
using tidegate::test::TemporaryFolder;

namespace {

const std::string source = TIDEGATE_SOURCE_DIR;

Finished tidegate_with(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TIDEGATE_EXECUTABLE);
  return tidegate::test::run(arguments);
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// deepspeed/utils/timer.py of 0.16.9.
std::string log_text(int iterations) {
  std::string text = "  train_batch_size ............. 8\n";
  for (int i = 0; i < iterations; ++i)
    text += "[Rank 0] time (ms) | fwd: 1000.00 | bwd: 2000.00 | bwd_inner: 9.00 | step: 500.00\n";
  return text + "time (ms) | fwd: x | step: 1.0\n";
}

// One step: a product, attention and an elementwise kernel of 100 ms each, launched by thread 1.
std::string trace_text() {
  std::string events =
      R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","ts":0,"dur":10,"tid":1})";
  int number = 0;
  for (const char* name : {"sm90_gemm", "flash_fwd_kernel", "vectorized_elementwise_kernel"}) {
    const std::string arguments =
        ",\"args\":{\"device\":0,\"correlation\":" + std::to_string(++number) + "}}";
    events +=
        R"(,{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":1,"dur":1,"tid":1)" +
        arguments + R"(,{"ph":"X","cat":"kernel","ts":5,"dur":100000,"tid":7,"name":")" + name +
        "\"" + arguments;
  }
  return "{\"traceEvents\":[" + events + "]}";
}

}  // namespace

TEST_CASE("a log is compared with a scenario, and every key of the output is documented",
          "[cli][docs]") {
  const TemporaryFolder folder;
  const std::string log = folder.write("train.log", log_text(8));
  const Finished run =
      tidegate_with({"validate", "log", log, "--scenario", "zero_infinity_70b", "--json"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const json output = json::parse(run.out);
  CHECK(output["skipped"] == 2);
  CHECK(output["rows"][0]["measured"]["median"] == 1);
  CHECK(output["mismatches"][0]["logged"] == 8);
  const std::string docs = text_of(source + "/docs/logs.md");
  for (const auto& [key, value] : output.items()) {
    INFO(key);
    CHECK(docs.find("`" + key) != std::string::npos);
  }
  for (const char* list : {"rows", "mismatches", "only_logged", "damaged"}) {
    for (const auto& [key, value] : output[list][0].items()) {
      INFO(list << "[]." << key);
      CHECK(docs.find("`" + key + "`") != std::string::npos);
    }
  }
}

TEST_CASE("the text ends with a command that runs, with the log's settings", "[cli]") {
  const TemporaryFolder folder;
  const std::string log = folder.write("train.log", log_text(8));
  const Finished run = tidegate_with({"validate", "log", log, "--scenario", "zero_infinity_70b"});
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, Containing("train.log:10:18: fwd"));
  CHECK_THAT(run.out, Containing("--scenario zero_infinity_70b --set workload.accumulation=2\n"));
  const std::vector<std::string> gated = {"validate",          "log",    log,  "--scenario",
                                          "zero_infinity_70b", "--gate", "0.1"};
  CHECK(tidegate_with(gated).code == 1);
}

TEST_CASE("a log command says what it lacks", "[cli][input]") {
  const TemporaryFolder folder;
  const std::string log = folder.write("train.log", "nothing\n");
  const Finished alone = tidegate_with({"validate", "log", log});
  CHECK(alone.code == 2);
  CHECK_THAT(alone.err, Containing("add --scenario"));
  const Finished empty = tidegate_with({"validate", "log", log, "--scenario", "zero_infinity_70b"});
  CHECK(empty.code == 2);
  CHECK_THAT(empty.err, Containing("is wall_clock_breakdown on?"));
}

TEST_CASE("GPU times of a trace are used, and the report says so", "[cli]") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("trace.json", trace_text());
  const std::vector<std::string> plain = {"simulate", "llama31_8b_h200", "--no-fixes", "--json"};
  std::vector<std::string> traced = plain;
  traced.insert(traced.end(), {"--gpu-times", trace});
  const Finished before = tidegate_with(plain), after = tidegate_with(traced);
  INFO(after.err);
  REQUIRE(after.code == 0);
  const json report = json::parse(after.out);
  CHECK(report["iteration_s"] != json::parse(before.out)["iteration_s"]);
  CHECK_THAT(report["notes"].dump(), Containing("GPU operator times are those of") &&
                                         Containing("matrix products: 100 ms in the trace"));
  CHECK_THAT(report["assumptions"].dump(), Containing("gpus.gemm_efficiency"));
}

TEST_CASE("a wrong trace is an error with its place", "[cli][input]") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("trace.json", trace_text().substr(0, 90));
  const Finished run = tidegate_with({"simulate", "llama31_8b_h200", "--gpu-times", trace});
  CHECK(run.code == 2);
  CHECK_THAT(run.err, Containing("trace.json:1:"));
}

TEST_CASE("a scenario becomes a folder with a script, or the reason why not", "[cli]") {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "run").string();
  const Finished run = tidegate_with({"validate", "deepspeed", "zero_infinity_70b", "--out", out});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(std::filesystem::exists(out + "/train.py"));
  CHECK(json::accept(text_of(out + "/ds_config.json")));
  // Four ranks.
  CHECK_THAT(run.out, Containing("torch.distributed.run --nproc_per_node 4"));
  CHECK(tidegate_with({"validate", "deepspeed", "zero_infinity_70b", "--out", out}).code == 2);
  const Finished fork = tidegate_with({"validate", "deepspeed", "mlp_offload_70b", "--out", out});
  CHECK(fork.code == 2);
  CHECK_THAT(fork.err, Containing("mlp_offload_70b.yaml:") && Containing("a fork of DeepSpeed"));
}

TEST_CASE("to run DeepSpeed it must be installed, and nothing is written before that is known",
          "[cli]") {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "run").string();
  const Finished run = tidegate_with({"validate", "deepspeed", "zero_infinity_70b", "--out", out,
                                      "--run", "--python", "/no/such/python"});
  CHECK(run.code == 3);
  CHECK_THAT(run.err, Containing("has no DeepSpeed"));
  CHECK_FALSE(std::filesystem::exists(out));
}
