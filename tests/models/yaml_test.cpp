#include "models/base/yaml.hpp"

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

// The message of the InputError that `read` provokes on `text`.
template <class Read>
std::string message(const std::string& text, Read read) {
  try {
    yaml::Document document(yaml::load_text(text, "in.yaml"));
    {
      yaml::Map map = document.root().map();
      read(map);
    }
    document.finish();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("an unknown key is reported with its place and the nearest known key", "[yaml]") {
  const std::string said =
      message("layers: 4\nhiden: 8\n", [](yaml::Map& m) { m.count("layers"), m.has("hidden"); });
  CHECK_THAT(said, Containing("in.yaml:2:1: hiden: unknown key; did you mean 'hidden'?"));
}

TEST_CASE("all problems of a file are reported at once, in order", "[yaml]") {
  const std::string said = message("a: x\nb: 5\nc: 2 GB/s\nd: -1 GiB\n", [](yaml::Map& m) {
    m.quantity<Bytes>("d");
    m.quantity<BytesPerSecond>("b");
    m.count("a");
    m.quantity<Bytes>("c");
  });
  const auto at = [&](const char* place) { return said.find(place); };
  CHECK(at("in.yaml:1:4: a: is 'x'; a whole number") < at("in.yaml:2:4: b: '5' has no unit"));
  CHECK(at("in.yaml:2:4:") < at("in.yaml:3:4: c: '2 GB/s' is not a size"));
  CHECK(at("in.yaml:3:4:") < at("in.yaml:4:4: d: '-1 GiB' must be greater than zero"));
  CHECK(at("in.yaml:4:4:") != std::string::npos);
}

TEST_CASE("a missing key is said once and its readings add nothing", "[yaml]") {
  const std::string said = message("a: 1\n", [](yaml::Map& m) {
    m.count("a");
    m.quantity<Bytes>("size");
  });
  CHECK(said == "in.yaml:1:1: size: is missing; this key is required");
}

TEST_CASE("values of the wrong kind say what is expected", "[yaml]") {
  CHECK_THAT(message("a: [1]\n", [](yaml::Map& m) { m.count("a"); }),
             Containing("a: is a list; a whole number is expected"));
  CHECK_THAT(message("a: 1\n", [](yaml::Map& m) { m.at("a").map(); }), Containing("a map of keys"));
  CHECK_THAT(message("a: 1.5\n", [](yaml::Map& m) { m.count("a"); }), Containing("whole number"));
  CHECK_THAT(message("a: 1.5\n", [](yaml::Map& m) { m.fraction_or("a", 0); }),
             Containing("between 0 and 1"));
  CHECK_THAT(message("a: maybe\n", [](yaml::Map& m) { m.flag_or("a", false); }),
             Containing("write true or false"));
  CHECK_THAT(message("a: nvmee\n",
                     [](yaml::Map& m) {
                       constexpr std::string_view devices[] = {"cpu", "nvme"};
                       m.choice_or("a", devices, 0);
                     }),
             Containing("one of: cpu, nvme (did you mean 'nvme'?)"));
}

TEST_CASE("a count may be written 1e8 as DeepSpeed users do", "[yaml]") {
  yaml::Document document(yaml::load_text("{\"sub_group_size\": 1e8}", "ds.json"));
  yaml::Map map = document.root().map();
  CHECK(map.count("sub_group_size") == 100000000);
}

TEST_CASE("text that is not YAML, repeats a key or is binary is one located error", "[yaml]") {
  CHECK_THROWS_WITH(yaml::load_text("a: [1, 2\nb: 3", "x.yaml"), Containing("x.yaml:"));
  CHECK_THROWS_WITH(yaml::load_text("a: 1\na: 2\n", "x.yaml"),
                    Containing("x.yaml:2:1: a: this key appears twice"));
  CHECK_THROWS_WITH(yaml::load_text(std::string("a\0b", 3), "x.yaml"), Containing("binary"));
  CHECK_THROWS_WITH(yaml::load_file("/tmp"), Containing("/tmp: is a directory"));
  CHECK_THROWS_WITH(yaml::load_file("/nonexistent.yaml"),
                    Containing("/nonexistent.yaml: cannot be opened"));
}

TEST_CASE("an override replaces, adds and names itself in errors", "[yaml]") {
  yaml::Value root = yaml::load_text("p:\n  list: [{r: 1}, {r: 2}]\n  x: 3\n", "in.yaml");
  yaml::set(root, "p.list[1].r", "7", {"--set", 0, 0});
  yaml::set(root, "p.new.deep", "80 GiB", {"--set", 0, 0});
  CHECK(root.find("p")->find("list")->items[1].find("r")->text == "7");
  CHECK(root.find("p")->find("new")->find("deep")->text == "80 GiB");
  CHECK(root.find("p")->find("x")->text == "3");
  CHECK_THROWS_WITH(yaml::set(root, "p.list[5].r", "7", {"--set", 0, 0}),
                    Containing("beyond the list of 2"));
  CHECK_THROWS_WITH(yaml::set(root, "p.x.y", "7", {"--set", 0, 0}), Containing("not a map"));
}
