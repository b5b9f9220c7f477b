#include "calib/cuda/benches.hpp"
#include "calib/cuda/facts.hpp"
#include "models/base/error.hpp"

// What a build without CUDA answers.
namespace tidegate::cuda {
namespace {

constexpr const char* reason = "built without CUDA";

std::unique_ptr<calib::Bench> none() { throw MachineError(reason); }

}  // namespace

std::vector<GpuFacts> gpu_facts() { return {}; }

std::string why_no_gemm(const calib::Setup&) { return reason; }
std::string why_no_attention(const calib::Setup&) { return reason; }
std::string why_no_memory(const calib::Setup&) { return reason; }
std::string why_no_launch(const calib::Setup&) { return reason; }
std::string why_no_copies(const calib::Setup&) { return reason; }
std::string why_no_together(const calib::Setup&) { return reason; }
std::string why_no_interference(const calib::Setup&) { return reason; }
std::string why_no_pin(const calib::Setup&) { return reason; }
std::string why_no_peer(const calib::Setup&) { return reason; }
std::string why_no_collectives(const calib::Setup&) { return reason; }
std::string why_no_gds(const calib::Setup&) { return reason; }

std::unique_ptr<calib::Bench> make_gemm(const calib::Setup&) { return none(); }
std::unique_ptr<calib::Bench> make_attention(const calib::Setup&) { return none(); }
std::unique_ptr<calib::Bench> make_memory(const calib::Setup&) { return none(); }
std::unique_ptr<calib::Bench> make_launch(const calib::Setup&) { return none(); }
std::unique_ptr<calib::Bench> make_copies(const calib::Setup&) { return none(); }
std::unique_ptr<calib::Bench> make_together(const calib::Setup&) { return none(); }
std::unique_ptr<calib::Bench> make_interference(const calib::Setup&) { return none(); }
std::unique_ptr<calib::Bench> make_pin(const calib::Setup&) { return none(); }
std::unique_ptr<calib::Bench> make_peer(const calib::Setup&) { return none(); }
std::unique_ptr<calib::Bench> make_collectives(const calib::Setup&) { return none(); }
std::unique_ptr<calib::Bench> make_gds(const calib::Setup&) { return none(); }

}  // namespace tidegate::cuda
