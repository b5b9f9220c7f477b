#pragma once

#include "calib/measure/bench.hpp"
#include "calib/node/estimate.hpp"
#include "calib/node/node.hpp"

/// The sections of a node profile, each from the rows that tell its keys.
namespace tidegate::calib {

/// Collects the entries of one section; a key that nothing tells is noted as missing.
class SectionWriter {
 public:
  SectionWriter(std::string key, std::vector<std::string>& missing)
      : section_{std::move(key), {}}, missing_(missing) {}
  /// `text` makes the value's text from the estimate; nothing estimated: missing.
  void measured(const std::string& key, const std::optional<Estimate>& estimate,
                const std::string& quantity, const std::function<std::string(double)>& text);
  void told(const std::string& key, std::string text, std::string source);
  void assumed(const std::string& key, std::string text, std::string why);
  void plain(const std::string& key, std::string text);
  void add(Entry entry) { section_.entries.push_back(std::move(entry)); }
  Section finish() { return std::move(section_); }

 private:
  Section section_;
  std::vector<std::string>& missing_;
};

std::string rate_text(double bytes_per_second);
std::string flops_text(double flops_per_second);
std::string number_text(double value);
std::string size_text(double bytes);
std::string time_text(double seconds);

/// The key memory_bandwidth, of the fastest stream that reads and writes.
void add_memory_bandwidth(SectionWriter& out, const Measurements& m, const Setup& setup);

Section host_section(const Measurements& m, const Setup& setup, std::vector<std::string>& missing);
/// The CPU as the device that computes.
Section cpu_device_section(const Measurements& m, const Setup& setup,
                           std::vector<std::string>& missing);
Section path_section(const Measurements& m, const StorageTarget& target,
                     std::vector<std::string>& missing);
/// Of the `gpu.…` rows; all GPUs are alike.
Section gpu_section(const Measurements& m, const GpuNames& gpus, std::vector<std::string>& missing);
/// Of gpu.all_reduce; nothing where there is one GPU.
std::optional<Section> fabric_section(const Measurements& m, std::vector<std::string>& missing);
/// Of `net.…` rows; the caller asks only where there are any.
Section network_section(const Measurements& m, std::vector<std::string>& missing);
/// The entries of a component file, with the number of GPUs.
Section component_section(const NamedGpus& gpus);

}  // namespace tidegate::calib
