#include "sim/planner/catalog.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/planner/builds.hpp"
#include "tests/catch.hpp"
#include "tests/sim/planner/small.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;
using namespace tidegate::planner;
using test::TemporaryFolder;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string without_line(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  const std::size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
  return text.substr(0, begin) + text.substr(end + 1);
}

Catalog read(const std::string& text) {
  const TemporaryFolder folder;
  return read_catalog(folder.write("catalog.yaml", text));
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a catalog gives prices, powers and terms as they stand", "[catalog]") {
  const Catalog c = read(test::small_catalog());
  CHECK(c.currency == "EUR");
  CHECK(c.is_example);
  CHECK(c.terms.years == 4);
  CHECK(c.terms.energy == 0.25);
  CHECK(c.gpus.at(0).price == 2000);
  CHECK(c.gpus.at(0).busy == 450);
  CHECK(c.hosts.at(0).busy == 300);  // 0.3 kW
  CHECK(c.drives.at(0).replacement == 200);
  CHECK(c.provenance.size() == 17);  // every cited value
}

TEST_CASE("a drive's endurance is bytes, or drive writes a day over its warranty", "[catalog]") {
  const std::string line = "    price: {value: 150, assumed: a}\n    replacement";
  const auto with = [&](const char* value) {
    return replaced(test::small_catalog(), line,
                    "    endurance: {value: " + std::string(value) + ", assumed: a}\n" + line);
  };
  CHECK(read(with("1 PB")).drives.at(0).endurance == Bytes(1e15));
  // 990 Pro: 2 TB, 5 years: 0.3 · 2e12 · 5 · 365 = 1.095e15.
  CHECK(read(with("0.3 DWPD")).drives.at(0).endurance->value() == Approx(1.095e15));
  const Catalog c = read(with("1 PB"));
  const auto sets = sets_of(c, builds_of(c).front());
  const auto drives = std::ranges::find(sets, "machine.paths.nvme", &Override::first);
  REQUIRE(drives != sets.end());
  CHECK_THAT(drives->second, Containing("endurance: {value: 1000000000000000 B"));
}

TEST_CASE("a drive without a price of replacement costs its price again", "[catalog]") {
  const Catalog c = read(without_line(test::small_catalog(), "replacement"));
  CHECK(c.drives.at(0).replacement == 150);
}

TEST_CASE("every fault of a catalog is located and says what would be right", "[catalog]") {
  struct Fault {
    const char *from, *to, *message;
  };
  const std::vector<Fault> faults = {
      {"kind: catalog", "kind: node", "a catalog of machines with prices is expected"},
      {"currency: EUR", "currency: [EUR, USD]", "a word is expected"},
      {"currency: EUR", "currency: euro", "is no currency"},
      {"{value: 2000,", "{value: 2000 USD,", "in the currency of the file (EUR)"},
      {"{value: 2000,", "{value: -2000,", "must be at least 0"},
      {"{value: 2000,", "{valu: 2000,", "did you mean 'value'?"},
      {"{value: 2000, assumed: a}", "2000", "has no origin"},
      {"{value: 2000, assumed: a}", "{value: 2000}", "has no origin"},
      {"{value: 2000, assumed: a}", "{value: 2000, assumed: a, uncertainty: 5 %}",
       "has no effect in a catalog"},
      {"busy: {value: 450 W,", "busy: {value: 450,", "write a power"},
      {"busy: {value: 450 W,", "busy: {value: 10 W,", "is less than idle"},
      {"date: 2026-11-30", "date: yesterday", "is not a date"},
      {"component: rtx_4090_24gb", "component: rtx_4090_24g", "did you mean 'rtx_4090_24gb'?"},
      {"component: rtx_4090_24gb", "component: 990_pro_2tb", "gpu is expected here"},
      {"profile: workstation_rtx4090", "profile: workstation_rtx4080",
       "did you mean 'workstation_rtx4090'?"},
      {"years: {value: 4,", "years: {value: 0,", "must lie between 0.1 and 100"},
      {"utilization: {value: 1,", "utilization: {value: 1.5,", "must lie between 0.01 and 1"},
      {"pue: {value: 1,", "pue: {value: 0.9,", "must lie between 1 and 10"},
      {"years:", "year:", "unknown key; did you mean 'years'?"},
      {"lanes: 16", "lanes: many", "a whole number is expected"},
      {"most: 128 GiB", "most: 128", "has no unit"},
      {"gpu: card,", "gpu: cards,", "did you mean 'card'?"},
      {"host: desk,", "host: rack,", "there are: desk"},
      {"drives: [1, 2]", "drives: [1, 1]", "stands here twice"},
      {"drives: [1, 2]", "drives: []", "is an empty list"},
      {"gpus: 1,", "gpus: 9,", "must lie between 1 and 8"},
      {"gpus: 1,", "gpus: 1, cheap: true,", "unknown key"},
      {"gpus: 1,", "gpus: 1, rent: {value: 1, assumed: a},", "lists several"},
      {"    price: {value: 2000, assumed: a}\n", "", "its card has no price"}};
  for (const Fault& fault : faults) {
    INFO(fault.from << " becomes " << fault.to);
    try {
      read(replaced(test::small_catalog(), fault.from, fault.to));
      FAIL("no fault was found");
    } catch (const InputError& error) {
      CHECK_THAT(error.what(), Containing(fault.message));
      const Where& where = error.problems().front().where;
      CHECK(where.file.ends_with("catalog.yaml"));
      CHECK(where.line > 0);
    }
  }
}

TEST_CASE("a key that is needed and missing is named", "[catalog]") {
  for (const char* line : {"date:", "currency:", "years:", "utilization:", "energy:", "pue:",
                           "profile:", "lanes: 24", "most:", "idle: {value: 20 W"}) {
    INFO(line);
    CHECK_THROWS_WITH(read(without_line(test::small_catalog(), line)),
                      Containing("this key is required"));
  }
}

TEST_CASE("a grid has every combination, and tells which cannot be put together", "[catalog]") {
  std::string text = test::small_catalog();
  text = replaced(text, "gpus: 1,", "gpus: [1, 2],");
  text = replaced(text, "drives: [1, 2]", "drives: [1, 2, 4]");
  const std::vector<Build> builds = builds_of(read(text));
  REQUIRE(builds.size() == 6);
  CHECK(builds[0].name == "1x card, 1x stick, 64 GiB");
  CHECK(builds[0].refusal.empty());
  CHECK(builds[1].refusal.empty());  // 16 + 2 · 4 = 24 lanes of 24
  // 16 + 4 · 4 = 32 lanes.
  CHECK_THAT(builds[2].refusal, Containing("32 PCIe lanes (1 GPUs x 16 + 4 drives x 4)"));
  CHECK_THAT(builds[3].refusal, Containing("36 PCIe lanes"));
}

TEST_CASE("slots, memory, network and fabric bound a build", "[catalog]") {
  const auto refusal = [](const std::string& text) {
    return builds_of(read(text)).front().refusal;
  };
  const std::string text = test::small_catalog();
  CHECK_THAT(refusal(replaced(text, "gpus: 1,", "gpus: 3,")), Containing("has 2 slots"));
  CHECK_THAT(refusal(replaced(text, "drives: [1, 2]", "drives: 9")), Containing("has 4 slots"));
  CHECK_THAT(refusal(replaced(text, "memory: 64 GiB", "memory: 256 GiB")),
             Containing("desk takes 128 GiB"));
  CHECK_THAT(refusal(replaced(text, "gpus: 1,", "gpus: 1, nodes: 2,")),
             Containing("has no network"));
  std::string wide = replaced(text, "lanes: 24", "lanes: 64");
  CHECK_THAT(refusal(replaced(wide, "gpus: 1,", "gpus: 2,")), Containing("has no fabric"));
}

TEST_CASE("a bill counts the parts of all nodes", "[catalog]") {
  // Two nodes, each 1000 + 64 · 5 + 2 · 2000 + 2 · 150 = 5620: 11240.
  const Catalog c = read(test::small_catalog());
  Build b = builds_of(c).front();
  b.nodes = 2, b.gpus = 2, b.drives = 2;
  CHECK(bill_of(c, b).purchase() == Approx(11240));
}

TEST_CASE("ranks share the cores that the profile gives to others", "[catalog]") {
  // a100_8gpu: 8 GPUs on 2 NUMA nodes, four ranks each at 3e9 parameters/s. With four GPUs two
  // ranks have the same cores, each at 6e9; of eight GPUs nothing changes.
  Catalog c = read_catalog(std::string(TIDEGATE_SOURCE_DIR) + "/catalogs/example_2026.yaml");
  Build b{.host = 1, .gpu = 2, .gpus = 4, .memory = Bytes(1e12)};
  REQUIRE(c.hosts[1].name == "hgx_a100");
  const auto value = [&](const char* key) {
    for (const auto& [k, text] : sets_of(c, b)) {
      if (k == key) return text;
    }
    return std::string("none");
  };
  CHECK(value("machine.host.adam_rate") == "6000000000");
  CHECK(value("machine.host.ranks_per_numa") == "2");
  // Of its four ports for two GPUs each, two are left.
  CHECK_THAT(value("machine.host.roots"), Containing("plx1: {gpus: [2, 3]"));
  CHECK(value("machine.host.roots").find("plx2") == std::string::npos);
  b.gpus = 8;
  CHECK(value("machine.host.adam_rate") == "none");
  CHECK(value("machine.host.roots") == "none");
}

TEST_CASE("every catalog that ships can be read and describes its keys in docs/plan.md",
          "[catalog]") {
  namespace fs = std::filesystem;
  const std::string docs = text_of(fs::path(TIDEGATE_SOURCE_DIR) / "docs" / "plan.md");
  for (const auto& entry : fs::directory_iterator(fs::path(TIDEGATE_SOURCE_DIR) / "catalogs")) {
    INFO(entry.path());
    const Catalog c = read_catalog(entry.path().string());
    CHECK(!builds_of(c).empty());
  }
  for (const char* key :
       {"kind",   "name",        "description", "date",      "currency", "example",
        "terms",  "years",       "utilization", "energy",    "pue",      "gpus",
        "drives", "hosts",       "machines",    "component", "profile",  "lanes",
        "price",  "replacement", "endurance",   "idle",      "busy",     "memory",
        "most",   "network",     "gpudirect",   "nodes",     "rent"}) {
    INFO(key);
    CHECK(docs.find("`" + std::string(key) + "`") != std::string::npos);
  }
}
