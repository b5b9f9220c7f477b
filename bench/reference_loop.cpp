// The reference loops on a synthetic load: reference_loop <load> mode=classes|dense|textbook
#include <fmt/core.h>

#include "bench/measure.hpp"
#include "bench/reference_dense.hpp"
#include "bench/reference_textbook.hpp"
#include "models/base/error.hpp"

namespace tidegate::bench {
namespace {

template <class Loop>
void measure(const std::string& mode, const Load& load) {
  const double start = cpu_seconds();
  const auto loop = std::make_unique<Loop>(load);
  const double ready = cpu_seconds();
  loop->run();
  const double seconds = cpu_seconds() - ready;
  const double setup = 1e9 * (ready - start) / static_cast<double>(load.size());
  fmt::print("{} setup_ns_per_task={:.1f}\n",
             line_of({"reference", mode, load.size(), seconds, loop->t}), setup);
}

}  // namespace
}  // namespace tidegate::bench

int main(int argc, char** argv) {
  using namespace tidegate;
  try {
    const bench::Load load = bench::parse_load(bench::words_of(argc, argv));
    const std::string mode = bench::option(argc, argv, "mode", "classes");
    if (mode == "dense") {
      bench::measure<bench::Dense>(mode, load);
    } else if (mode == "textbook") {
      bench::measure<bench::Textbook>(mode, load);
    } else {
      bench::measure<bench::Classes<false>>(mode, load);
    }
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
