#include <array>
#include <chrono>
#include <memory>

#include <cuda_runtime_api.h>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/shim/check.hpp"
#include "calib/cuda/station.hpp"
#include "calib/fit/statistics.hpp"

// What it costs to ask a GPU for something. Host times are of the enqueuing call alone, one by one
// (the sample's series), fewer in a row than the queue holds; GPU times come from behind the gate.
namespace tidegate::cuda {
namespace {

enum class Kind { launch, gap, event, graph_launch, graph_node, round_trip };
constexpr std::array kinds{Kind::launch,       Kind::gap,        Kind::event,
                           Kind::graph_launch, Kind::graph_node, Kind::round_trip};

constexpr int in_a_row = 100;

struct Setting {
  Kind kind = Kind::launch;
  int count = in_a_row;  ///< calls in a row; of a graph: its kernels
};

// A chain of empty kernels as a graph that can be launched.
class Graph {
 public:
  Graph(const Stream& stream, int kernels) {
    cudaGraph_t graph = nullptr;
    TIDEGATE_CUDA(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kernels; ++i) nothing(stream);
    TIDEGATE_CUDA(cudaStreamEndCapture(stream.handle(), &graph));
    cudaGraphExec_t made = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&made, graph, 0);
    cudaGraphDestroy(graph);
    TIDEGATE_CUDA(error);
    graph_.reset(made);
  }
  void launch(const Stream& stream) const {
    TIDEGATE_CUDA(cudaGraphLaunch(graph_.get(), stream.handle()));
  }

 private:
  struct Destroy {
    void operator()(CUgraphExec_st* graph) const { cudaGraphExecDestroy(graph); }
  };
  std::unique_ptr<CUgraphExec_st, Destroy> graph_;
};

class LaunchBench : public calib::Bench {
 public:
  explicit LaunchBench(const calib::Setup& setup) : gpu_(gpu_facts().front()) {
    for (const Kind kind : kinds) {
      settings_.push_back({kind, in_a_row});
      const bool is_graph = kind == Kind::graph_launch || kind == Kind::graph_node;
      if (is_graph && setup.effort != calib::Effort::quick) {
        for (const int kernels : {10, 1000}) settings_.push_back({kind, kernels});
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const Setting& s : settings_) {
      rows.push_back(gpu_row("gpu.launch", {{"kind", static_cast<int>(s.kind)}, {"count", s.count}},
                             calib::Unit::seconds, gpu_, {}));
      rows.back().target = Seconds(0.05);
    }
    return rows;
  }

  void prepare() override { station_ = std::make_unique<Station>(gpu_); }

  calib::Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    const OnDevice here(gpu_.index);
    const Stream& stream = station_->stream();
    const Event event(gpu_.index);
    switch (s.kind) {
      case Kind::launch:
        return host_times(s.count, [&] { nothing(stream); });
      case Kind::event:
        return host_times(s.count, [&] { event.record(stream); });
      case Kind::round_trip:
        return host_times(s.count, [&] {
          nothing(stream);
          stream.wait();
        });
      case Kind::gap:
        return gpu_time(1, [&](int) { nothing(stream); });
      case Kind::graph_launch: {
        const Graph graph(stream, s.count);
        return host_times(10, [&] { graph.launch(stream); });
      }
      case Kind::graph_node: {
        const Graph graph(stream, s.count);
        return gpu_time(s.count, [&](int) { graph.launch(stream); });
      }
    }
    return {};
  }

  void finish() override { station_.reset(); }

 private:
  // Median of calls, each timed by itself.
  calib::Sample host_times(int count, const std::function<void()>& call) {
    using Clock = std::chrono::steady_clock;
    call();
    station_->stream().wait();
    calib::Sample sample;
    const auto begin = Clock::now();
    while (Clock::now() - begin < std::chrono::milliseconds(50)) {
      for (int i = 0; i < count; ++i) {
        const auto before = Clock::now();
        call();
        sample.series.push_back(std::chrono::duration<double>(Clock::now() - before).count());
      }
      station_->stream().wait();
    }
    sample.elapsed = Seconds(std::chrono::duration<double>(Clock::now() - begin).count());
    sample.value = calib::median(sample.series);
    return sample;
  }

  // A graph is one operation of `kernels` kernels.
  calib::Sample gpu_time(int kernels, const std::function<void(int)>& operation) {
    const Timed timed = station_->time(Seconds(0.05), Needs::multiprocessors, operation);
    calib::Sample sample;
    sample.value = timed.each.value() / kernels;
    sample.elapsed = timed.in_all;
    sample.spoiled = timed.spoiled;
    return sample;
  }

  GpuFacts gpu_;
  std::vector<Setting> settings_;
  std::unique_ptr<Station> station_;
};

}  // namespace

std::string why_no_launch(const calib::Setup&) { return why_no_gpu(); }
std::unique_ptr<calib::Bench> make_launch(const calib::Setup& setup) {
  return std::make_unique<LaunchBench>(setup);
}

}  // namespace tidegate::cuda
