#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sim/plan/plan.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

/// The executable as people and scripts meet it: exit codes, messages, files, formats.

using namespace tidegate;
using nlohmann::json;
using test::Finished;
using test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const std::string source = TIDEGATE_SOURCE_DIR;
const std::string scenarios = source + "/scenarios/";

Finished tidegate_with(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TIDEGATE_EXECUTABLE);
  return test::run(arguments);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A small decoder on a small machine; the parts that a test breaks are separate.
const std::string network = "{layers: 2, hidden: 512, heads: 8, vocabulary: 1000}";
std::string scenario(const std::string& workload, const std::string& policy = "{}",
                     const std::string& hardware = "workstation_rtx4090") {
  return "workload: " + workload + "\nhardware: " + hardware + "\npolicy: " + policy + "\n";
}
const std::string good_workload = "{network: " + network + ", sequence: 128}";

Finished simulate(const TemporaryFolder& folder, const std::string& text) {
  return tidegate_with({"simulate", folder.write("s.yaml", text)});
}

// Exit code 2, and file:line:column of the input before the message.
void check_located(const Finished& run, const std::string& file, const std::string& message) {
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK(run.out.empty());
  CHECK(std::regex_search(run.err, std::regex("/" + file + ":[0-9]+:[0-9]+: ")));
  CHECK_THAT(run.err, Containing(message));
}

json parsed(const Finished& run) {
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(run.err.empty());
  return json::parse(run.out);
}

// Exit code 1 when a gated row misses its gate; either way the rows are printed.
json published_rows(const std::string& name = "52B") {
  const Finished run = tidegate_with({"validate", "published", "--case", name, "--json"});
  INFO(run.err);
  REQUIRE((run.code == 0 || run.code == 1));
  const json rows = json::parse(run.out);
  CHECK(run.code == (rows["missed"] > 0 ? 1 : 0));
  return rows;
}

}  // namespace

TEST_CASE("a wrong scenario is exit code 2 with the place of every fault", "[cli]") {
  const TemporaryFolder folder;
  struct Fault {
    const char* name;
    std::string text, message;
  };
  const std::string swapped =
      "{zero: {stage: 3}, optimizer: {name: zero_infinity, path: nvme, aio: {block_size: ";
  const std::vector<Fault> faults = {
      {"missing unit", scenario(good_workload, swapped + "2}}}"), "has no unit"},
      {"wrong unit", scenario(good_workload, swapped + "2 GB/s}}}"), "block_size: "},
      {"negative size", scenario(good_workload, swapped + "-1 MiB}}}"),
       "must be greater than zero"},
      {"unknown key", scenario("{network: " + network + ", sequense: 128}"),
       "did you mean 'sequence'?"},
      {"unknown policy", scenario(good_workload, "{optimizer: zero_ofload}"),
       "did you mean 'zero_offload'?"},
      {"ratio beyond 1",
       scenario(good_workload, "{zero: {stage: 1}, optimizer: {name: twin_flow, ratio: 1.5}}"),
       "between 0 and 1"},
      {"no layers",
       scenario("{network: {layers: 0, hidden: 512, heads: 8, vocabulary: 1000}, sequence: 128}"),
       "layers: is 0"},
      {"cycle",
       scenario(
           "{layers: [{name: a, after: [b], forward: []}, {name: b, after: [a], forward: []}]}"),
       "waits for itself"},
      {"not YAML", "workload: {network: [\n", "is not YAML"},
      {"unknown machine", scenario(good_workload, "{}", "workstation_rtx4080"),
       "did you mean 'workstation_rtx4090'?"},
      {"too many iterations", scenario(good_workload) + "iterations: 1000000\n", "at most 1000"},
  };
  for (const Fault& fault : faults) {
    INFO(fault.name);
    check_located(simulate(folder, fault.text), "s\\.yaml", fault.message);
  }
}

TEST_CASE("a fault of a file that the scenario names has the place in that file", "[cli]") {
  const TemporaryFolder folder;
  SECTION("a config.json of a family that is not known") {
    folder.write("config.json", R"({"model_type": "mamba", "hidden_size": 64})");
    const Finished run = simulate(folder, scenario("{config: config.json, sequence: 128}"));
    check_located(run, "config\\.json", "'mamba'");
    CHECK_THAT(run.err, Containing("llama"));
  }
  SECTION("a drive without a bandwidth") {
    std::string drive = text_of(source + "/hw_profiles/components/990_pro_2tb.yaml");
    drive = std::regex_replace(drive, std::regex("\nread: [^\n]*"), "");
    folder.write("drive.yaml", drive);
    std::string node = text_of(source + "/hw_profiles/workstation_rtx4090.yaml");
    node = std::regex_replace(node, std::regex("components/990_pro_2tb.yaml"), "drive.yaml");
    node = std::regex_replace(node, std::regex("components/"), source + "/hw_profiles/components/");
    folder.write("node.yaml", node);
    check_located(simulate(folder, scenario(good_workload, "{}", "node.yaml")),
                  "(drive|node)\\.yaml", "paths.nvme.read: is missing");
  }
  SECTION("a machine without the path that a policy needs") {
    std::string node = text_of(source + "/hw_profiles/workstation_rtx4090.yaml");
    node = std::regex_replace(node, std::regex("paths:\n[^\n]*\n"), "");
    node = std::regex_replace(node, std::regex("components/"), source + "/hw_profiles/components/");
    folder.write("node.yaml", node);
    const std::string policy = "{zero: {stage: 3}, optimizer: {name: zero_infinity, path: nvme}}";
    check_located(simulate(folder, scenario(good_workload, policy, "node.yaml")), "s\\.yaml",
                  "needs a storage path");
  }
}

TEST_CASE("a file that cannot be read is exit code 2 with its name", "[cli]") {
  const TemporaryFolder folder;
  const auto said = [](const Finished& run) {
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    return run.err;
  };
  SECTION("a scenario that does not exist: the ones that do, and the nearest") {
    const std::string err = said(tidegate_with({"simulate", "mlp_offload_7b.yaml"}));
    CHECK_THAT(err, Containing("there is no scenario mlp_offload_7b.yaml") &&
                        Containing("did you mean mlp_offload_70b?") &&
                        Containing(source + "/scenarios"));
  }
  SECTION("a folder") {
    const std::string path = folder.path().string();
    CHECK_THAT(said(tidegate_with({"simulate", path})), Containing(path + ": is a folder"));
    CHECK_THAT(said(tidegate_with({"inspect", path})), Containing(path + ": is a folder"));
  }
  SECTION("a binary file") {
    const std::string file = folder.write("b.yaml", std::string("\0\1\2", 3));
    CHECK_THAT(said(tidegate_with({"simulate", file})), Containing("binary"));
  }
  SECTION("a config.json that is not there") {
    CHECK_THAT(said(tidegate_with({"inspect", "none.json"})),
               Containing("none.json: cannot be opened"));
  }
}

TEST_CASE("a wrong command line is exit code 2 with what would be right", "[cli]") {
  const std::string file = scenarios + "mlp_offload_70b.yaml";
  const auto said = [](std::vector<std::string> arguments) {
    const Finished run = tidegate_with(std::move(arguments));
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    return run.err;
  };
  CHECK_THAT(said({"simulate", file, "--set", "policy.optimizer.cache"}),
             Containing("write key=value"));
  CHECK_THAT(said({"simulate", file, "--set", "policy.optimizer.cash=1"}),
             Containing("did you mean 'cache'?"));
  CHECK_THAT(said({"simulate", file, "--set", "machine.gpus.cont=2"}),
             Containing("did you mean 'count'?"));
  CHECK_THAT(said({"simulate", file, "--iterations", "0"}),
             Containing("--iterations: is 0; it must lie between 1 and 1000"));
  CHECK_THAT(said({"simulate", file, "--draws", "many"}),
             Containing("--draws: is 'many'; a whole number is expected"));
  CHECK_THAT(said({"tune", file, "--threads", "1.5"}), Containing("a whole number is expected"));
  CHECK_THAT(said({"simulate", file, "--hardware", "h100"}),
             Containing("there is no profile 'h100'"));
  CHECK_THAT(said({"simulate"}), Containing("name a scenario"));
  CHECK_THAT(said({"simulat", file}), Containing("simulat"));
  CHECK_THAT(said({"simulate", file, "--jason"}), Containing("--jason"));
  CHECK_THAT(said({"validate", "published", "--case", "71B"}),
             Containing("there are: 40B, 52B, 70B"));
  CHECK_THAT(said({"validate", "published", "--json", "--brief"}), Containing("excludes"));
}

TEST_CASE("a file that cannot be written is said before anything is computed", "[cli]") {
  const TemporaryFolder folder;
  const std::string own = scenario(good_workload), file = folder.write("s.yaml", own);
  const std::string none = (folder.path() / "none" / "t").string();
  // Every flag that names a file to write; what the command starts from need not be there yet.
  const std::vector<std::vector<std::string>> commands = {
      {"simulate", file, "--trace"},
      {"simulate", file, "--html"},
      {"simulate", file, "--plan"},
      {"tune", file, "--csv"},
      {"tune", file, "--html"},
      {"tune", file, "--results"},
      {"plan", file, "--catalog", "example_2026", "--csv"},
      {"plan", file, "--catalog", "example_2026", "--html"},
      {"plot", "rok", file, "-o"},
      {"export", file, "--deepspeed"},
      {"validate", "published", "--html"},
      {"validate", "field", "--html"},
      {"validate", "run", file, "--html"},
      {"validate", "run", file, "--trace"},
      {"validate", "suite", "--html"},
      {"calib", "-o"},
      {"calib", "show", file, "--html"}};
  const auto said = [&](std::vector<std::string> command, const std::string& output) {
    command.push_back(output);
    const Finished run = tidegate_with(command);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    return run.err;
  };
  for (const std::vector<std::string>& command : commands) {
    INFO(command[0] << " " << command.back());
    CHECK_THAT(said(command, none),
               Containing("there is no folder " + (folder.path() / "none").string()));
    CHECK_THAT(said(command, folder.path().string()), Containing("is a folder"));
    if (command[0] != "export") CHECK_THAT(said(command, "-"), Containing("no file"));
    if (command[1] == file) CHECK_THAT(said(command, file), Containing(file + " is what"));
  }
  const std::string both = (folder.path() / "both").string();
  CHECK_THAT(said({"simulate", file, "--trace", both, "--html"}, both), Containing("writes too"));
  CHECK(text_of(file) == own);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a command answers though nobody can read what it says beside", "[cli]") {
  // Writing to /dev/full fails.
  const auto code_of = [](const std::string& words) {
    const Finished run =
        test::run({"/bin/sh", "-c",
                   std::string(TIDEGATE_EXECUTABLE) + " " + words + " 2>/dev/full >/dev/null"});
    return run.code;
  };
  const std::string network = source + "/tests/data/hf_configs/qwen2.5-3b.json";
  const std::string engine = source + "/tests/data/ds_configs/zero3_offload_all_auto.json";
  CHECK(code_of("export llama31_8b_h200 --deepspeed -") == 0);
  CHECK(code_of("aio --hf " + network + " --deepspeed " + engine + " --hardware a100_8gpu") == 0);
  CHECK(code_of("simulate --jason") == 2);
  CHECK(code_of("simulate none.yaml") == 2);
}

TEST_CASE("a flag's count may be written as in a scenario", "[cli]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.yaml", scenario(good_workload));
  const auto iterations = [&](const char* count) {
    return parsed(tidegate_with({"simulate", file, "--iterations", count, "--json"}))["iterations"];
  };
  CHECK(iterations("1e1").size() == 10);
  CHECK(iterations("1e1") == iterations("10"));
}

TEST_CASE("where nobody says how long sequences are, inspect and simulate take the same", "[cli]") {
  // What the files say: max_position_embeddings 2048 of GPT-NeoX and OPT, whose table has two rows
  // more; seq_length 2048 of BLOOM; of Llama 3.1 131072, of which 4096 are taken.
  const std::vector<std::pair<std::string, int>> files = {
      {"gpt-neox-20b", 2048}, {"opt-13b", 2048}, {"bloomz-7b1", 2048}, {"llama-3.1-8b", 4096}};
  for (const auto& [name, tokens] : files) {
    INFO(name);
    const std::string file = source + "/tests/data/hf_configs/" + name + ".json";
    CHECK(parsed(tidegate_with({"inspect", file, "--json"}))["tokens"] == tokens);
    const json report =
        parsed(tidegate_with({"simulate", "--hf", file, "--hardware", "titan_rtx_2gpu", "--ranks",
                              "1", "--no-fixes", "--draws", "0", "--iterations", "1", "--json"}));
    CHECK(report["tokens_per_iteration"] == tokens);
  }
}

TEST_CASE("JSON on standard output has the documented keys", "[cli]") {
  const auto has_all = [](const json& object, std::initializer_list<const char*> keys) {
    return std::ranges::all_of(keys, [&](const char* key) { return object.contains(key); });
  };
  const json report = parsed(tidegate_with(
      {"simulate", scenarios + "zero_infinity_70b.yaml", "--iterations", "3", "--json"}));
  CHECK(report["schema"] == "tidegate.report/1");
  CHECK(report["iterations"].size() == 3);
  CHECK(has_all(report, {"fits", "iteration_s", "phases", "pools", "resources", "critical_path",
                         "assumptions"}));

  const json network_facts =
      parsed(tidegate_with({"inspect", scenarios + "configs/llama-2-7b.json", "--json"}));
  CHECK(network_facts["parameters"] == 6738415616);

  const json published = published_rows();
  CHECK(published["schema"] == "tidegate.published/1");
  REQUIRE(!published["rows"].empty());
  CHECK(has_all(published["rows"][0], {"case", "variant", "quantity", "unit", "predicted",
                                       "measured", "relative_error", "in_sample", "gated"}));
  REQUIRE(!published["summary"].empty());
  CHECK(has_all(published["summary"][0],
                {"what", "rows", "mean_absolute_error", "worst_absolute_error", "worst_row"}));
}

TEST_CASE("a trace is JSON and a plan reads back", "[cli]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.yaml", scenario(good_workload));
  const std::string trace = (folder.path() / "trace.json").string(),
                    plan = (folder.path() / "plan.txt").string();
  const Finished run = tidegate_with({"simulate", file, "--trace", trace, "--plan", plan});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(!json::parse(text_of(trace))["traceEvents"].empty());
  const Plan read = read_plan(text_of(plan), plan);
  CHECK(read.iterations == 6);
  CHECK(dump(read) == text_of(plan));
}

TEST_CASE("a run that does not fit is an answer", "[cli]") {
  const std::string file = scenarios + "mlp_offload_70b.yaml";
  const Finished run = tidegate_with({"simulate", file, "--set", "policy.optimizer=resident"});
  CHECK(run.code == 0);
  CHECK_THAT(run.out, Containing("Does not fit.") && Containing("gpu0 (4 alike): ") &&
                          Containing("optimizer states "));
  const json report =
      parsed(tidegate_with({"simulate", file, "--set", "policy.optimizer=resident", "--json"}));
  CHECK(report["fits"] == false);
  CHECK(report["overflows"][0]["pool"] == "gpu0");
  CHECK(report["overflows"][0]["owners"][0]["name"] == "optimizer states");
}

TEST_CASE("changes that would fit are offered, unless nobody asks for them", "[cli]") {
  const std::string file = scenarios + "qwen25_7b_twin_flow_a100.yaml";
  const std::vector<std::string> command = {"simulate", file, "--set",
                                            "machine.gpus.memory=20 GiB"};
  const Finished first = tidegate_with(command);
  CHECK_THAT(first.out, Containing("Changes that fit") && Containing("     --set "));
  // The first command under Next is the first of them.
  const std::size_t next = first.out.find("Next\n  ") + 7;
  const std::string line = first.out.substr(next, first.out.find('\n', next) - next);
  const Finished again =
      test::run({"/bin/sh", "-c",
                 std::string(TIDEGATE_EXECUTABLE) + line.substr(std::string("tidegate").size())});
  INFO(line);
  CHECK(again.code == 0);
  CHECK_THAT(again.out, Containing("\nFits. "));
  auto without = command;
  without.insert(without.end(), {"--no-fixes", "--json"});
  CHECK(parsed(tidegate_with(without))["fixes"].is_null());
}

TEST_CASE("plot rok prints its points and writes a picture", "[cli]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.yaml", scenario(good_workload));
  const std::string svg = (folder.path() / "rok.svg").string();
  const json plot = parsed(tidegate_with({"plot", "rok", file, "-o", svg, "--micro-batch", "1,2",
                                          "--policies", "keep,full", "--json"}));
  CHECK(plot["schema"] == "tidegate.rok/1");
  REQUIRE(plot["curves"].size() == 2);
  CHECK(plot["curves"][1]["name"] == "recompute full");
  CHECK(plot["curves"][1]["points"].size() == 2);
  CHECK_THAT(text_of(svg), Containing("<svg ") && Containing("</svg>"));
  CHECK_THAT(tidegate_with({"plot", "rok", file, "--micro-batch", "2"}).out,
             Containing("recompute selective"));

  const Finished wrong = tidegate_with({"plot", "rok", file, "--policies", "kept"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, Containing("there are: keep, full, selective"));
  const Finished none = tidegate_with({"plot", "rok", file, "--micro-batch", "0"});
  CHECK(none.code == 2);
  const std::string layers = folder.write("l.yaml", scenario("{layers: [{name: a, forward: []}]}"));
  CHECK(tidegate_with({"plot", "rok", layers}).code == 2);
}

TEST_CASE("every key of the plot's points is documented, and no other", "[docs]") {
  const std::string docs = text_of(source + "/docs/rok_json.md");
  const TemporaryFolder folder;
  const json plot = parsed(
      tidegate_with({"plot", "rok", folder.write("s.yaml", scenario(good_workload)), "--json"}));
  std::vector<std::string> keys;
  for (const auto& [key, value] : plot.items()) keys.push_back(key);
  for (const auto& [key, value] : plot["curves"][0].items()) keys.push_back("curves[]." + key);
  for (const auto& [key, value] : plot["curves"][0]["points"][0].items())
    keys.push_back("curves[].points[]." + key);
  std::size_t rows = 0;
  for (std::size_t at = docs.find("\n| `"); at != std::string::npos;
       at = docs.find("\n| `", at + 1))
    ++rows;
  CHECK(rows == keys.size());
  for (const std::string& key : keys) {
    INFO(key);
    CHECK(docs.find("| `" + key + "` |") != std::string::npos);
  }
}

TEST_CASE("--hardware replaces the scenario's machine", "[cli]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.yaml", scenario(good_workload));
  const json named = parsed(tidegate_with({"simulate", file, "--hardware", "h200_8gpu", "--json"}));
  CHECK(named["profile"] == "h200_8gpu");
  CHECK(named["gpus"] == 8);
  const json by_path = parsed(tidegate_with(
      {"simulate", file, "--hardware", source + "/hw_profiles/a100_8gpu.yaml", "--json"}));
  CHECK(by_path["profile"] == "a100_8gpu");
}

TEST_CASE("a scenario that ships is found by its name", "[cli]") {
  CHECK(parsed(tidegate_with({"simulate", "zero_infinity_70b", "--json"}))["fits"] == true);
}

namespace {

// As a shell splits them: spaces part words, single quotes hold them together.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else if (c == ' ' && !is_quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase(words, "");
  return words;
}

}  // namespace

TEST_CASE("a run that does not fit is followed by a search, not by a larger batch", "[cli]") {
  const Finished run = tidegate_with({"simulate", "llama2_7b_zero_offload_4090", "--no-fixes"});
  CHECK(run.code == 0);
  CHECK_THAT(run.out, Containing("Next\n  tidegate tune llama2_7b_zero_offload_4090 ") &&
                          !Containing("workload.accumulation="));
}

TEST_CASE("the commands under Next run as they stand", "[cli]") {
  for (const auto& entry : fs::directory_iterator(scenarios)) {
    if (entry.path().extension() != ".yaml") continue;
    const Finished first = tidegate_with({"simulate", entry.path().string()});
    const std::size_t next = first.out.find("Next\n  tidegate simulate ");
    REQUIRE(next != std::string::npos);
    const std::string line = first.out.substr(next + 7, first.out.find('\n', next + 7) - next - 7);
    std::vector<std::string> arguments = words_of(line);
    arguments.erase(arguments.begin());
    INFO(line);
    CHECK(tidegate_with(arguments).code == 0);
  }
}

TEST_CASE("every command explains itself with an example", "[cli]") {
  const std::vector<std::vector<std::string>> commands = {{},
                                                          {"simulate"},
                                                          {"inspect"},
                                                          {"policies"},
                                                          {"export"},
                                                          {"plot"},
                                                          {"plot", "rok"},
                                                          {"validate"},
                                                          {"validate", "published"},
                                                          {"validate", "field"},
                                                          {"validate", "run"},
                                                          {"validate", "suite"},
                                                          {"validate", "log"},
                                                          {"validate", "deepspeed"}};
  for (std::vector<std::string> command : commands) {
    command.emplace_back("--help");
    const Finished run = tidegate_with(command);
    INFO(command.front());
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    CHECK_THAT(run.out, Containing("Example") && Containing("  tidegate "));
  }
  CHECK_THAT(tidegate_with({}).out, Containing("Usage: "));
  CHECK(tidegate_with({}).code == 0);
  CHECK_THAT(tidegate_with({"validate"}).out, Containing("published"));
  const Finished version = tidegate_with({"--version"});
  CHECK(version.code == 0);
  CHECK(
      std::regex_search(version.out, std::regex("^tidegate [0-9]+\\.[0-9]+\\.[0-9]+ \\(.+\\)\n$")));
}

TEST_CASE("tune prints a grid, its best, and a command that runs as it stands", "[cli]") {
  const TemporaryFolder folder;
  const std::string policy = "{zero: {stage: 1}, optimizer: zero_offload}";
  const std::string path = folder.write("s.yaml", scenario(good_workload, policy));
  const std::string csv = (folder.path() / "grid.csv").string();
  const std::vector<std::string> grid = {
      "tune", path, "--over", "policy.zero.stage=1,2,3", "--over", "workload.micro_batch=1,2"};
  auto with_csv = grid;
  with_csv.insert(with_csv.end(), {"--csv", csv});
  const Finished run = tidegate_with(with_csv);
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_THAT(run.out, Containing("policy.zero.stage  workload.micro_batch"));
  CHECK_THAT(run.out, Containing("Best:  "));
  const std::string table = text_of(csv);
  CHECK(std::ranges::count(table, '\n') == 7);  // a header, and 3 x 2 rows
  auto as_json = grid;
  as_json.emplace_back("--json");
  const json result = parsed(tidegate_with(as_json));
  CHECK(result.at("schema") == "tidegate.tune/1");
  REQUIRE(result.at("candidates").size() == 6);
  std::vector<std::string> command = {"simulate", path, "--json"};
  for (const json& set : result.at("best").at("sets")) {
    command.emplace_back("--set");
    command.push_back(set.get<std::string>());
  }
  const json again = parsed(tidegate_with(command));
  const double time = result.at("best").at("iteration_s").get<double>();
  CHECK(again.at("iteration_s").get<double>() == Approx(time).epsilon(0.001));
}

TEST_CASE("tune refuses what it does not know", "[cli]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", scenario(good_workload));
  const auto refused = [&](std::vector<std::string> flags, const std::string& message) {
    flags.insert(flags.begin(), {"tune", path});
    const Finished run = tidegate_with(flags);
    INFO(message);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, Containing(message));
  };
  refused({"--over", "policy.zero.stag=1,2"}, "did you mean 'stage'?");
  refused({"--over", "buffers"}, "has no values");
  refused({"--only", "activatons"}, "did you mean 'activations'?");
  refused({"--limit", "hots=1 GiB"}, "did you mean 'host'?");
  refused({"--limit", "host=12"}, "has no unit");
  refused({"--resume"}, "--results");
}

TEST_CASE("a reader who closes the pipe early is no error", "[cli]") {
  const Finished run = test::run(
      {"/bin/sh", "-c",
       std::string(TIDEGATE_EXECUTABLE) + " simulate mlp_offload_70b --json; echo $? >&2", "sh"});
  CHECK(run.err == "0\n");
  const Finished closed = test::run({"/bin/sh", "-c",
                                     "(sleep 0.2; '" + std::string(TIDEGATE_EXECUTABLE) +
                                         "' simulate mlp_offload_70b; echo $? >&2) | true"});
  CHECK(closed.err == "0\n");
}

namespace {

void check_mentions(const std::string& docs, const std::string& word) {
  INFO(word << " is not documented");
  CHECK(docs.find("`" + word + "`") != std::string::npos);
}

void add_keys(const json& output, std::vector<std::string>& keys) {
  for (const auto& [key, value] : output.items()) {
    keys.push_back(key);
    if (!value.is_array() || value.empty() || !value[0].is_object()) continue;
    for (const auto& [inner, unused] : value[0].items()) keys.push_back(key + "[]." + inner);
  }
}

// Documented are the keys of the output and no other.
void check_documented(const std::vector<std::string>& keys, const std::string& docs) {
  for (const std::string& key : keys) check_mentions(docs, key);
  const std::regex row("\n\\| `([a-z_\\[\\].]+)` \\| [^|]+ \\| [^|]*\\|");
  for (std::sregex_iterator at(docs.begin(), docs.end(), row), end; at != end; ++at) {
    INFO((*at)[1]);
    CHECK(std::ranges::find(keys, (*at)[1].str()) != keys.end());
  }
}

}  // namespace

TEST_CASE("every key of the published rows is documented, and no other", "[docs]") {
  std::vector<std::string> keys;
  for (const char* name : {"52B", "TP8 PP8", "recompute time, BERT H8192"}) {
    add_keys(published_rows(name), keys);
  }
  const Finished drawn =
      tidegate_with({"validate", "published", "--case", "22B", "--draws", "2", "--json"});
  add_keys(json::parse(drawn.out), keys);
  check_documented(keys, text_of(source + "/docs/published_json.md"));
}

TEST_CASE("every key of the field rows is documented, and no other", "[docs]") {
  const Finished run = tidegate_with({"validate", "field", "--json"});
  CHECK(run.code <= 1);  // 1: a gated row is missed, and said so
  std::vector<std::string> keys;
  add_keys(json::parse(run.out), keys);
  check_documented(keys, text_of(source + "/docs/field_json.md"));
}

TEST_CASE("validate run runs a plan, compares it and writes both timelines", "[cli][docs]") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("trace.json", "");
  const Finished run = tidegate_with({"validate", "run", "ssdtrain_paced", "--storage",
                                      fs::path(trace).parent_path().string(), "--scale", "0.2",
                                      "--gate", "5", "--json", "--trace", trace});
  INFO(run.err);
  const json output = parsed(run);
  CHECK(output["verdict"] == "agrees");  // within 500 %: what a slow host does is not asked here
  const std::string docs = text_of(source + "/docs/run_json.md");
  for (const auto& [key, value] : output.items()) check_mentions(docs, key);
  const std::string written = text_of(trace);
  CHECK_THAT(written, Containing("predicted: rank 0") && Containing("measured: rank 0"));
  CHECK(json::accept(written));
}

TEST_CASE("validate run says what it needs", "[cli][input]") {
  const Finished lacking = tidegate_with({"validate", "run", "ssdtrain_paced"});
  CHECK(lacking.code == 2);
  CHECK_THAT(lacking.err, Containing("give one with --storage"));
  const Finished absent =
      tidegate_with({"validate", "run", "ssdtrain_paced", "--storage", "/no/such/folder"});
  CHECK(absent.code == 2);
  CHECK_THAT(absent.err, Containing("/no/such/folder"));
  CHECK(tidegate_with({"validate", "suite", "--case", "nobody"}).code == 2);
}
