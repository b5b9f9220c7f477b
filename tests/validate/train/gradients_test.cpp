#include <cmath>
#include <set>

#include "tests/catch.hpp"
#include "tests/validate/train/workloads.hpp"
#include "validate/train/network.hpp"

using namespace tidegate;
using namespace tidegate::train;

namespace {

constexpr Values Flow::* members[] = {&Flow::stream, &Flow::branch, &Flow::q, &Flow::k,
                                      &Flow::v,      &Flow::gate,   &Flow::up};

Values random_like(const Values& shape, std::uint64_t stream, double size) {
  Values values(shape.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(size * normal(7, stream, i));
  return values;
}

Values moved(const Values& from, const Values& direction, double distance) {
  Values to = from;
  for (std::size_t i = 0; i < to.size() && i < direction.size(); ++i)
    to[i] += static_cast<float>(distance * direction[i]);
  return to;
}

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

// Parameters with large random values, so that no gradient is nearly zero.
NetworkTensors random_parameters(const LayerGraph& graph) {
  NetworkTensors all = initial_parameters(graph, 3);
  std::uint64_t stream = 100;
  for (auto& layer : all) {
    for (auto& op : layer) {
      for (Values& t : op) t = random_like(t, ++stream, 0.4);
    }
  }
  return all;
}

// An operator with everything that enters it.
struct Entered {
  std::size_t layer, op;
  Flow flow;
  Storages storages;  // of the layer so far
};

class Walk {
 public:
  explicit Walk(const Workload& w)
      : workload(w), graph(build_graph(w)), parameters(random_parameters(graph)) {
    batch = batch_of(workload, 5, 0, 0, 0);
  }
  Site site(std::size_t l, std::size_t op) const {
    return {workload, graph.layers[l], graph.layers[l].operators[op], batch.tokens, batch.labels};
  }
  Tensors tensors(std::size_t l, std::size_t op) const {
    return parameters_of(graph, parameters, l, op);
  }
  /// Every operator of every layer, in forward order.
  std::vector<Entered> operators() const {
    std::vector<Entered> all;
    Flow flow;
    for (std::size_t l = 0; l < graph.layers.size(); ++l) {
      Storages storages;
      for (std::size_t op = 0; op < graph.layers[l].operators.size(); ++op) {
        all.push_back({l, op, flow, storages});
        forward(site(l, op), tensors(l, op), flow, storages);
      }
    }
    return all;
  }

  Workload workload;
  LayerGraph graph;
  NetworkTensors parameters;
  Batch batch;
};

struct Outcome {
  Flow flow;
  Storages storages;
};

// The core reads q, k and v from their storages: a moved flow has to be saved first.
Outcome apply(const Walk& walk, const Entered& at, const Tensors& parameters, Flow flow) {
  Storages storages = at.storages;
  const Site site = walk.site(at.layer, at.op);
  if (site.op.name == "attention") {
    site.save(storages, "q", flow.q);
    site.save(storages, "k", flow.k);
    site.save(storages, "v", flow.v);
  }
  forward(site, parameters, flow, storages);
  return {flow, storages};
}

Storages listed(const Operator& op, const Storages& all) {
  Storages own;
  for (const SavedTensor& t : op.saved) own[t.identity] = all.at(t.identity);
  return own;
}

// f = loss + sum over what leaves of weight · value, and its change along a random direction, by
// central differences and by the gradients of backward.
void check_operator(const Walk& walk, const Entered& at) {
  const Site site = walk.site(at.layer, at.op);
  const Tensors parameters = walk.tensors(at.layer, at.op);
  const Outcome middle = apply(walk, at, parameters, at.flow);
  Flow gradient;
  std::uint64_t stream = 500;
  for (const auto m : members) gradient.*m = random_like(middle.flow.*m, ++stream, 1);
  const auto value = [&](const Outcome& o) {
    double f = o.flow.loss;
    for (std::size_t i = 0; i < std::size(members); ++i)
      f += dot(o.flow.*members[i], random_like(o.flow.*members[i], 501 + i, 1));
    return f;
  };
  Flow back = gradient;
  const Tensors of_parameters = backward(site, parameters, back, listed(site.op, middle.storages));
  for (int trial = 0; trial < 3; ++trial) {
    const double step = 5e-4;  // small, so that few values cross the kink of a ReLU
    double expected = 0, size = 0;
    Flow ahead = at.flow, behind = at.flow;
    Tensors up = parameters, down = parameters;
    for (const auto m : members) {
      const Values d = random_like(at.flow.*m, ++stream, 1);
      ahead.*m = moved(at.flow.*m, d, step), behind.*m = moved(at.flow.*m, d, -step);
      expected += dot(back.*m, d), size += dot(back.*m, back.*m);
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Values d = random_like(parameters[i], ++stream, 1);
      up[i] = moved(parameters[i], d, step), down[i] = moved(parameters[i], d, -step);
      expected += dot(of_parameters.at(i), d), size += dot(of_parameters[i], of_parameters[i]);
    }
    const double measured =
        (value(apply(walk, at, up, ahead)) - value(apply(walk, at, down, behind))) / (2 * step);
    INFO(site.op.name << " of layer " << at.layer << ", trial " << trial);
    // The change is a normal number of deviation |gradient|; differences in fp32 are good to 1 %.
    CHECK(std::fabs(measured - expected) < 0.01 * std::sqrt(size) + 1e-3);
    CHECK(size > 0);
  }
}

}  // namespace

TEST_CASE(
    "the gradients of every operator are those of finite differences, and it needs no storage "
    "but its own",
    "[train]") {
  for (const tiny::Case& c : tiny::all()) {
    INFO(c.name);
    const Walk walk(c.workload);
    for (const Entered& at : walk.operators()) check_operator(walk, at);
  }
}

TEST_CASE("the gradient of the whole network is that of finite differences", "[train]") {
  for (const tiny::Case& c : tiny::all()) {
    INFO(c.name);
    const Walk walk(c.workload);
    const MicroStep here = run(c.workload, walk.graph, walk.parameters, walk.batch);
    for (std::uint64_t trial = 0; trial < 3; ++trial) {
      const double step = 2e-4;
      double expected = 0, size = 0;
      NetworkTensors up = walk.parameters, down = walk.parameters;
      std::uint64_t stream = 1000 * (trial + 1);
      for (std::size_t l = 0; l < up.size(); ++l) {
        for (std::size_t op = 0; op < up[l].size(); ++op) {
          for (std::size_t i = 0; i < up[l][op].size(); ++i) {
            const Values& g = here.gradients[l][op].at(i);
            const Values d = random_like(up[l][op][i], ++stream, 1);
            up[l][op][i] = moved(walk.parameters[l][op][i], d, step);
            down[l][op][i] = moved(walk.parameters[l][op][i], d, -step);
            expected += dot(g, d), size += dot(g, g);
          }
        }
      }
      const double measured = (run(c.workload, walk.graph, up, walk.batch).loss -
                               run(c.workload, walk.graph, down, walk.batch).loss) /
                              (2 * step);
      CHECK(std::fabs(measured - expected) < 0.02 * std::sqrt(size) + 1e-3);
    }
  }
}

TEST_CASE("backward needs every saved storage but the logits, which the caller holds", "[train]") {
  for (const tiny::Case& c : tiny::all()) {
    const Walk walk(c.workload);
    std::set<std::string> needless, needed;
    for (const Entered& at : walk.operators()) {
      const Site site = walk.site(at.layer, at.op);
      const Tensors parameters = walk.tensors(at.layer, at.op);
      const Outcome out = apply(walk, at, parameters, at.flow);
      Flow gradient;
      for (const auto m : members) gradient.*m = random_like(out.flow.*m, 9, 1);
      const auto after = [&](const Storages& storages) {
        Flow flow = gradient;
        Tensors all = backward(site, parameters, flow, storages);
        for (const auto m : members) all.push_back(flow.*m);
        return all;
      };
      const Tensors right = after(out.storages);
      for (const SavedTensor& t : site.op.saved) {
        Storages wrong = out.storages;
        for (std::byte& b : wrong[t.identity]) b ^= std::byte{3};  // of an integer, 0 to 3 more
        if (t.name == "token_ids")
          wrong[t.identity] =
              encode(Values(static_cast<std::size_t>(t.elements), 1), 8, c.workload.dtype);
        const std::string name = std::to_string(t.identity) + " " + t.name;
        (after(wrong) == right ? needless : needed).insert(name);
      }
    }
    INFO(c.name);
    for (const std::string& name : needless) {
      INFO(name);
      CHECK((needed.contains(name) || name.ends_with(" logits")));
    }
  }
}
