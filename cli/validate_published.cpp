#include "cli/validate_published.hpp"

#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/common.hpp"
#include "cli/counts.hpp"
#include "cli/outputs.hpp"
#include "models/base/files.hpp"
#include "validate/field.hpp"
#include "validate/page/published_page.hpp"
#include "validate/published.hpp"

namespace tidegate {
namespace {

struct PublishedFlags {
  PublishedOptions options;
  std::string html;
  bool json = false, brief = false;
};

struct FieldFlags {
  FieldOptions options;
  std::string html;
  bool json = false;
};

void write_page(const std::string& path, const page::Page& page) {
  if (path.empty()) return;
  write_atomically(path, [&](std::ostream& out) { out << page::to_html(page); });
}

int published_command(const PublishedFlags& flags) {
  const Published result = run_published(flags.options);
  write_page(flags.html, page::published_page(result));
  print(flags.json ? to_json(result) : flags.brief ? to_brief_text(result) : to_text(result));
  return result.missed == 0 ? 0 : 1;
}

int field_command(const FieldFlags& flags) {
  const Field result = run_field(flags.options);
  write_page(flags.html, page::field_page(result));
  print(flags.json ? to_json(result) : to_text(result));
  return result.missed == 0 ? 0 : 1;
}

}  // namespace

void add_field(CLI::App& validate, int& code) {
  const auto flags = std::make_shared<FieldFlags>();
  CLI::App* field =
      validate.add_subcommand("field", "memory in public reports, predicted and observed");
  field->add_option("--case", flags->options.only, "only reports whose name contains this");
  field
      ->add_option("--file", flags->options.index, "index of reports instead of the one that ships")
      ->type_name("FILE");
  add_output(*field, "--html", flags->html, "write one HTML page to this file");
  field->add_flag("--json", flags->json, "print JSON (docs/field_json.md)");
  field->footer(
      "Examples:\n"
      "  tidegate validate field\n"
      "  tidegate validate field --case llama33b\n"
      "  tidegate validate field --html field.html\n"
      "Exit code 1 when a gated row misses its gate.");
  field->callback([flags, &code] { code = field_command(*flags); });
}

void add_published(CLI::App& validate, int& code) {
  const auto flags = std::make_shared<PublishedFlags>();
  CLI::App* published =
      validate.add_subcommand("published", "published figures, predicted and measured");
  published->add_option("--case", flags->options.only,
                        "only cases, model runs and bands whose name contains this");
  published
      ->add_option("--file", flags->options.file, "figures of this file instead of those that ship")
      ->type_name("FILE");
  CLI::Option* brief =
      published->add_flag("--brief", flags->brief, "iterations and speed-ups only");
  published
      ->add_flag("--ablation", flags->options.ablation, "also switch the principles on one by one")
      ->excludes(brief);
  published
      ->add_option(
          "--draws", flags->options.draws,
          "also the interval of each iteration time, from this many machines drawn from the "
          "profile's uncertainties")
      ->transform(count_in(2, 100'000))
      ->excludes(brief);
  add_output(*published, "--html", flags->html, "write one HTML page to this file");
  published->add_flag("--json", flags->json, "print JSON (docs/published_json.md)")
      ->excludes(brief);
  published->footer(
      "Examples:\n"
      "  tidegate validate published --brief\n"
      "  tidegate validate published --case 70B\n"
      "  tidegate validate published --case ZeRO-3\n"
      "  tidegate validate published --ablation\n"
      "  tidegate validate published --draws 32\n"
      "Exit code 1 when a gated row misses its gate.");
  published->callback([flags, &code] { code = published_command(*flags); });
}

}  // namespace tidegate
