#include <sstream>
#include <string>
#include <vector>

#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "validate/log/log.hpp"
#include "validate/log/steady.hpp"

/// The lines are written for these tests in the formats of the engines; where a format is
/// documented is said at each.

using namespace tidegate;

namespace {

TrainingLog read(const std::string& text) {
  std::istringstream in(text);
  return read_log(in, "run.log");
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<double> values(const LoggedSeries& series, const std::string& name) {
  std::vector<double> found;
  const auto at = series.find(name);
  if (at == series.end()) return found;
  for (const Logged& l : at->second) found.push_back(l.value);
  return found;
}

void check_close(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]));
}

// deepspeed/runtime/engine.py and utils/timer.py of 0.16.9.
const std::string stamp = "[2025-05-02 10:00:00,123] [INFO] [logging.py:107:log_dist] [Rank 0] ";
std::string whole(const std::string& forward, const std::string& backward, const std::string& step,
                  const std::string& prefix = stamp) {
  return prefix + "time (ms) | fwd: " + forward + " | bwd: " + backward +
         " | bwd_inner: 1.00 | bwd_allreduce: 0.50 | step: " + step + "\n";
}

}  // namespace

TEST_CASE("DeepSpeed's timers of an iteration become its phases", "[log]") {
  const TrainingLog log = read("unrelated | time: 5\n" + whole("1000.00", "2000.00", "500.00"));
  CHECK(log.writers == std::vector<std::string>{"DeepSpeed"});
  check_close(values(log.series, "forward"), {1});
  check_close(values(log.series, "backward"), {2});
  check_close(values(log.series, "update"), {0.5});
  check_close(values(log.series, "phases"), {3.5});
  check_close(values(log.timers, "backward_inner"), {0.001});
  CHECK(log.series.at("forward").front().line == 2);
}

TEST_CASE("names of earlier versions mean the same", "[log]") {
  // DeepSpeed issues 1436 (2021) and 3742 (2023), a launcher's and a progress bar's text before.
  const TrainingLog log = read(
      "worker-0:   0%|    | 0/9 [00:00<?, ?it/s][2021-10-08 20:03:15,649] [INFO] "
      "[logging.py:68:log_dist] [Rank 0] rank=0 time (ms) | forward: 400.00 | backward: 700.00 | "
      "backward_inner: 500.00 | backward_allreduce: 200.00 | step: 100.00\n");
  check_close(values(log.series, "forward"), {0.4});
  check_close(values(log.series, "backward"), {0.7});
  check_close(values(log.timers, "backward_allreduce"), {0.2});
  check_close(values(log.series, "update"), {0.1});
}

TEST_CASE("micro-steps are counted, and timers of a step belong to the iteration that it ends",
          "[log]") {
  const std::string micro =
      stamp + "time (ms) | fwd_microstep: 5.00 | bwd_microstep: 7.00 | step_microstep: 0.10\n";
  // stage3.py logs the optimizer's timers inside step(); swapping twice adds up: 3 + 4 ms.
  const TrainingLog log =
      read(micro + micro + stamp + "time (ms) | optimizer_swap_in_state: 3.00\n" + stamp +
           "time (ms) | optimizer_swap_in_state: 4.00 | optimizer_step: 9.00\n" + micro +
           whole("15.00", "21.00", "10.00") + micro + whole("15.00", "21.00", "10.00"));
  check_close(values(log.series, "micro_steps"), {3, 1});
  check_close(values(log.timers, "optimizer_swap_in_state"), {0.007});
  check_close(values(log.timers, "optimizer_step"), {0.009});
}

TEST_CASE("speed, memory and settings of DeepSpeed are read", "[log]") {
  // ThroughputTimer, see_memory_usage (MA in GiB), DeepSpeedConfig.print of 0.16.9; the speed line
  // of March 2022 in issue 1825.
  const TrainingLog log = read(
      "[2022-03-11 02:06:58,985] [INFO] [timer.py:189:stop] 0/40, SamplesPerSec=83.5, "
      "MemAllocated=0.25GB, MaxMemAllocated=9.00GB\n"
      "[2025-05-02 10:00:00,123] [INFO] [timer.py:264:stop] epoch=0/micro_step=8/global_step=4, "
      "RunningAvgSamplesPerSec=7.5, CurrSamplesPerSec=8.25, MemAllocated=2.0GB, "
      "MaxMemAllocated=3.5GB\n"
      "[2025-05-02 10:00:00,124] [INFO] [utils.py:782:see_memory_usage] MA 2.0 GB         Max_MA "
      "4.0 GB         CA 5.0 GB         Max_CA 6 GB \n"
      "[2025-05-02 10:00:00,125] [INFO] [utils.py:789:see_memory_usage] CPU Virtual Memory:  used "
      "= "
      "10.5 GB, percent = 8.4%\n"
      "[2025-05-02 10:00:00,126] [INFO] [config.py:1007:print]   train_batch_size ............. "
      "16\n"
      "[2025-05-02 10:00:00,126] [INFO] [config.py:1007:print]   gradient_accumulation_steps .. 2\n"
      "[2025-05-02 10:00:00,127] [INFO] [logging.py:107:log_dist] [Rank 0] step=10, skipped=3, "
      "lr=[1e-05], mom=[[0.9, 0.999]]\n");
  check_close(values(log.series, "samples_per_second"), {83.5, 8.25});
  const double gib = 1024.0 * 1024 * 1024;
  check_close(values(log.series, "gpu_allocated"), {9 * gib, 3.5 * gib, 4 * gib});
  check_close(values(log.series, "gpu_reserved"), {6 * gib});
  check_close(values(log.series, "host_used"), {10.5 * gib});
  CHECK(log.settings.at("global_batch").value == 16);
  CHECK(log.settings.at("accumulation").value == 2);
  CHECK(to_text(log.settings.at("global_batch").where) == "run.log:5:59");
  CHECK(log.skipped_updates == 3);
}

TEST_CASE("Megatron's iteration line is read, and its descendants'", "[log]") {
  // megatron/training/training.py, training_log; the second of a fork that writes name=value.
  const TrainingLog log = read(
      "  seq_length ...................................... 4096\n"
      " [2025-08-01 07:19:50] iteration        2/    5000 | consumed samples:          256 | "
      "elapsed time per iteration (ms): 12500.0 | throughput per GPU (TFLOP/s/GPU): 118.7 | "
      "learning rate: 1.4E-07 | global batch size:   128 | lm loss: 1.0E+01 |\n"
      "iteration=       3/  317892 | elapsed_time_per_iteration_ms=12000.0 | global_batch_size=  "
      "128 "
      "|\n"
      "    forward-compute ................................: (3000.00, 3100.00)\n"
      "[Rank 0] (after 1 iterations) memory (MB) | allocated: 10.0 | max allocated: 2048.0 | "
      "reserved: 12.0 | max reserved: 4096.0\n");
  CHECK(log.writers == std::vector<std::string>{"Megatron"});
  check_close(values(log.series, "iteration"), {12.5, 12});
  check_close(values(log.series, "tflops_per_gpu"), {118.7});
  check_close(values(log.series, "forward"), {3.1});
  check_close(values(log.series, "gpu_allocated"), {2048.0 * 1024 * 1024});
  CHECK(log.settings.at("global_batch").value == 128);
  CHECK(log.settings.at("sequence").value == 4096);
}

TEST_CASE("where Megatron's timers stand beside DeepSpeed's, DeepSpeed's are the phases", "[log]") {
  // GPT-NeoX prints both (DeepSpeed issue 3742).
  const TrainingLog log =
      read(whole("650.00", "2000.00", "1000.00") +
           "time (ms) | forward: 660.00 | backward: 2010.00 | optimizer: 1001.00\n");
  check_close(values(log.series, "forward"), {0.65});
  check_close(values(log.timers, "Megatron forward"), {0.66});
}

TEST_CASE("the Trainer's summary is a mean over the run", "[log]") {
  // src/transformers/trainer.py; a file that ends without a newline behind the summary.
  const TrainingLog log = read(
      "  Total train batch size (w. parallel, distributed & accumulation) = 8\n"
      "  Number of trainable parameters = 1,234,567\n"
      "{'train_runtime': 200.0, 'train_samples_per_second': 4.0, 'train_steps_per_second': 0.5}");
  check_close(values(log.series, "samples_per_second"), {4});
  CHECK(log.is_run_average);
  CHECK(log.settings.at("parameters").value == 1234567);
  CHECK(log.settings.at("global_batch").value == 8);
}

TEST_CASE("timers of the pipeline engine are not taken for those of one iteration", "[log]") {
  // deepspeed/runtime/pipe/engine.py: timers run on over steps_per_print steps (issue 2264).
  const TrainingLog log = read(whole("9000.00", "9000.00", "100.00") +
                               "steps: 10 loss: 4.6 iter time (s): 1.5 samples/sec: 64.0\n");
  check_close(values(log.series, "iteration"), {1.5});
  check_close(values(log.series, "samples_per_second"), {64});
  CHECK_FALSE(log.series.contains("forward"));
  check_close(values(log.timers, "forward between two prints"), {9});
}

TEST_CASE("a damaged number is left out and said with its place", "[log]") {
  const TrainingLog log =
      read(whole("1000.00", "2000.00", "500.00") + "time (ms) | fwd: 10[2025-05-02 | step: 4.00\n");
  REQUIRE(log.damaged.size() == 1);
  CHECK(to_text(log.damaged[0].where) == "run.log:2:18");
  CHECK(log.damaged[0].key == "fwd");
  check_close(values(log.series, "forward"), {1});
}

TEST_CASE("a log of which no number can be read is an error with the places", "[log]") {
  const std::string error = error_of("time (ms) | fwd: nan | bwd: | step\n");
  CHECK_THAT(error, Containing("run.log:1:18: fwd: 'nan' is not a number of milliseconds"));
  CHECK_THAT(error, Containing("run.log:1:29: bwd"));
  CHECK_THAT(error, Containing("'step' has no number"));
}

TEST_CASE("a file without times says what to switch on", "[log]") {
  CHECK_THAT(error_of("epoch 1, loss 2.5\n"),
             Containing("no timing lines found: is wall_clock_breakdown on?"));
  CHECK_THAT(error_of(""), Containing("no timing lines found"));
  CHECK_THAT(error_of("\x1f\x8b\x08"), Containing("gunzip"));
}

TEST_CASE("a line that was not written to its end is left out", "[log]") {
  const std::string half = stamp + "time (ms) | fwd: 1000.00 | bwd: 2000.00 | step: 5";
  const TrainingLog log = read(whole("1000.00", "2000.00", "500.00") + half);
  CHECK(log.is_cut);
  check_close(values(log.series, "update"), {0.5});
}

TEST_CASE("the beginning of a run is left out, as far as it is unlike the rest", "[log]") {
  CHECK(iterations_to_skip(std::vector<double>{5}) == 0);
  CHECK(iterations_to_skip(std::vector<double>{5, 1}) == 1);
  // Two of six at least, though all are alike.
  CHECK(iterations_to_skip(std::vector<double>{1, 1, 1, 1, 1, 1}) == 2);
  // The third and fourth are 30 % and 20 % above the median 1 of the later half, more than 10 %.
  CHECK(iterations_to_skip(std::vector<double>{9, 3, 1.3, 1.2, 1.05, 1, 1, 1, 1, 1}) == 4);
  // Never more than half.
  CHECK(iterations_to_skip(std::vector<double>{9, 9, 9, 9, 9, 1, 1, 1, 1, 1}) == 5);
}

TEST_CASE("phases are those of the slowest rank", "[log]") {
  const auto of_rank = [](int rank, const std::string& forward) {
    return whole(forward, "100.00", "100.00", "[Rank " + std::to_string(rank) + "] ");
  };
  std::string text;
  for (int i = 0; i < 4; ++i) text += of_rank(0, "100.00") + of_rank(1, "400.00");
  const SteadyLog steady = steady_part(read(text));
  CHECK(steady.ranks == 2);
  CHECK(steady.rank == 1);
  CHECK(steady.iterations == 4);
  CHECK(steady.skipped == 1);
  // (400 + 100 + 100) / (100 + 100 + 100)
  CHECK(steady.rank_ratio == Approx(2));
  check_close(values(steady.series, "forward"), {0.4, 0.4, 0.4});
}
