#pragma once

#include <memory>
#include <string>

#include "calib/measure/bench.hpp"

/// Benches of the CPU and the host's memory; benches.cpp lists them. Each says in its source what
/// a value is and which bytes or operations it counts.
namespace tidegate::calib {

std::unique_ptr<Bench> make_timer(const Setup& setup);
std::unique_ptr<Bench> make_noise(const Setup& setup);
std::unique_ptr<Bench> make_cores(const Setup& setup);
std::unique_ptr<Bench> make_gemm(const Setup& setup);
std::unique_ptr<Bench> make_half_gemm(const Setup& setup);
std::string why_no_half_gemm(const Setup& setup);
std::unique_ptr<Bench> make_attention(const Setup& setup);
std::unique_ptr<Bench> make_dram(const Setup& setup);
std::unique_ptr<Bench> make_loaded_latency(const Setup& setup);
std::unique_ptr<Bench> make_numa(const Setup& setup);
std::string why_not_numa(const Setup& setup);
std::unique_ptr<Bench> make_host_copy(const Setup& setup);
std::unique_ptr<Bench> make_cast(const Setup& setup);
std::unique_ptr<Bench> make_adam(const Setup& setup);
std::unique_ptr<Bench> make_beside(const Setup& setup);
std::unique_ptr<Bench> make_norm(const Setup& setup);
std::unique_ptr<Bench> make_first_touch(const Setup& setup);
std::unique_ptr<Bench> make_pin(const Setup& setup);
std::string why_not_pin(const Setup& setup);

}  // namespace tidegate::calib
