#include "sim/deepspeed/write.hpp"

namespace tidegate {

PolicyChoice policy_choice(const yaml::Value& values, const char* section, const char* usual) {
  PolicyChoice choice{usual, {.kind = yaml::Value::Kind::map}};
  const yaml::Value* policy = values.find("policy");
  const yaml::Value* value = policy ? policy->find(section) : nullptr;
  if (!value) return choice;
  if (value->kind == yaml::Value::Kind::scalar) {
    choice.name = value->text;
  } else {
    if (const yaml::Value* name = value->find("name")) choice.name = name->text;
    choice.options = *value;
  }
  return choice;
}

std::int64_t data_parallel_of(const Scenario& scenario) {
  const Workload& w = scenario.workload;
  return scenario.ranks * static_cast<std::int64_t>(scenario.machine.nodes()) /
         (w.tensor_parallel * w.pipeline_parallel);
}

}  // namespace tidegate
