#include "calib/node/yaml_text.hpp"

#include <fmt/core.h>

namespace tidegate::calib {

std::string scalar_text(const std::string& text) {
  const bool is_plain = !text.empty() && text.front() != ' ' && text.back() != ' ' &&
                        text.find_first_of(":#{}[],&*!|>'\"%@`\n\t\\") == std::string::npos &&
                        text.front() != '-' && text.front() != '?';
  if (is_plain) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string flow_text(const yaml::Value& value) {
  std::string text;
  switch (value.kind) {
    case yaml::Value::Kind::null:
      return "~";
    case yaml::Value::Kind::scalar:
      return scalar_text(value.text);
    case yaml::Value::Kind::sequence:
      for (const yaml::Value& item : value.items)
        text += (text.empty() ? "" : ", ") + flow_text(item);
      return "[" + text + "]";
    case yaml::Value::Kind::map:
      for (const yaml::Entry& e : value.entries) {
        text += (text.empty() ? "" : ", ") + scalar_text(e.key) + ": " + flow_text(e.value);
      }
      return "{" + text + "}";
  }
  return text;
}

}  // namespace tidegate::calib
