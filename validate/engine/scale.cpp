#include "validate/engine/scale.hpp"

#include <algorithm>
#include <cmath>

namespace tidegate {
namespace {

struct Scale {
  double factor;

  std::int64_t count(std::int64_t n) const {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(n) * factor));
  }
  Bytes bytes(Bytes b) const { return Bytes(std::ceil(b.value() * factor)); }

  Kernel operator()(Gemm g) const { return g.m = count(g.m), g; }
  Kernel operator()(Attention a) const { return a.queries = count(a.queries), a; }
  Kernel operator()(Elementwise e) const { return e.bytes = bytes(e.bytes), e; }

  Work operator()(Delay d) const { return d.duration *= factor, d; }
  Work operator()(Compute c) const {
    for (Kernel& kernel : c.kernels) kernel = std::visit(*this, kernel);
    return c;
  }
  Work operator()(Copy c) const { return c.bytes = bytes(c.bytes), c; }
  Work operator()(FileIo io) const { return io.bytes = bytes(io.bytes), io; }
  Work operator()(AdamStep a) const { return a.parameters = count(a.parameters), a; }
  Work operator()(Cast c) const { return c.elements = count(c.elements), c; }
  Work operator()(Collective c) const { return c.bytes = bytes(c.bytes), c; }
};

}  // namespace

Plan scaled(const Plan& plan, double factor) {
  const Scale scale{factor};
  Plan result = plan;
  for (Work& work : result.works) work = std::visit(scale, work);
  for (Buffer& buffer : result.buffers) buffer.bytes = scale.count(buffer.bytes);
  // Rounding up a buffer must not overfill what was full: a byte for each.
  const auto rounding = static_cast<double>(plan.buffers.size());
  for (Pool& pool : result.pools) pool.capacity = pool.capacity * factor + Bytes(rounding);
  return result;
}

}  // namespace tidegate
