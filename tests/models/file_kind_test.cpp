#include "models/base/file_kind.hpp"

#include <map>

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

// A file of each kind as people have it.
const std::map<FileKind, std::string> files = {
    {FileKind::empty, "# nothing yet\n"},
    {FileKind::scenario, "workload: {config: c.json}\nhardware: h\npolicy: {}\n"},
    {FileKind::profile, "kind: node\nname: n\ngpus: {count: 1}\n"},
    {FileKind::part, "kind: drive\nname: d\n"},
    {FileKind::catalog, "kind: catalog\nmachines: []\n"},
    {FileKind::network, R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})"},
    {FileKind::deepspeed, R"({"train_batch_size": 4, "bf16": {"enabled": true}})"},
    {FileKind::answer, R"({"schema": "tidegate.report/1", "policy": "ZeRO-3"})"}};

yaml::Value value_of(FileKind kind) { return yaml::load_text(files.at(kind), "in.yaml"); }

}  // namespace

TEST_CASE("a file is told by its keys, and refused where another kind is read", "[file_kind]") {
  for (const auto& [found, text] : files) {
    INFO(text);
    CHECK(kind_of(value_of(found)) == found);
    for (const FileKind expected : {FileKind::scenario, FileKind::profile, FileKind::catalog,
                                    FileKind::network, FileKind::deepspeed}) {
      if (found == expected)
        CHECK_NOTHROW(expect(expected, value_of(found)));
      else
        CHECK_THROWS_WITH(expect(expected, value_of(found)),
                          Containing("in.yaml") && Containing("is expected"));
    }
  }
}

TEST_CASE("what is refused says where it goes", "[file_kind]") {
  CHECK_THROWS_WITH(expect(FileKind::scenario, value_of(FileKind::profile)),
                    "in.yaml:1:1: is the profile of a machine, where a scenario is expected; a "
                    "profile goes with --hardware");
  CHECK_THROWS_WITH(expect(FileKind::scenario, value_of(FileKind::network)), Containing("--hf"));
  CHECK_THROWS_WITH(expect(FileKind::network, value_of(FileKind::deepspeed)),
                    Containing("--deepspeed"));
}

TEST_CASE("a file that no key tells is left to its reader", "[file_kind]") {
  const yaml::Value value = yaml::load_text("worklod: {}\n", "in.yaml");
  CHECK(kind_of(value) == FileKind::unknown);
  CHECK_NOTHROW(expect(FileKind::scenario, value));
}
