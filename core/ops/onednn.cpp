// The only file that calls oneDNN, so that 2.x and 3.x both serve. Its primitives run on the thread that calls: tiles are
// what runs in parallel, on our pool. A convolution works on the order of channels that oneDNN likes best (eight together on
// AVX2, sixteen on AVX-512), into which each tile is copied while it is on its way to the cache anyway.

#include <dnnl.hpp>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/core/error.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/conv2d_onednn.h"
#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/core/storage.h"

// oneDNN of Debian is built on GNU OpenMP. One thread each: the tiles are what runs in parallel, on our pool.
extern "C" void omp_set_num_threads(int);

namespace tessera {
namespace {

/// oneDNN follows TESSERA_ISA as it stood at the first call; it cannot change afterwards.
bool limit_isa() {
  switch (active_isa()) {
    case Isa::baseline: dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41); break;
    case Isa::avx2: dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2); break;
    case Isa::avx512: break;
  }
  return true;
}

/// Before any call on a thread.
void prepare_thread() {
  static const bool limited = limit_isa();
  (void)limited;
  thread_local const bool single = (omp_set_num_threads(1), true);
  (void)single;
}

}  // namespace

void onednn_sgemm(const GemmArgs& g) {
  prepare_thread();
  const dnnl_status_t status =
      dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, 1.0f, static_cast<const float*>(g.a),
                 g.lda, static_cast<const float*>(g.b), g.ldb, 0.0f, static_cast<float*>(g.c), g.ldc);
  check<InternalError>(status == dnnl_success, "matmul: oneDNN refused a product of {} x {} x {} with status {}", g.m, g.n,
                       g.k, int(status));
}

namespace {

using Memory = dnnl::memory;
using Desc = dnnl::memory::desc;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  thread_local dnnl::stream here(engine());
  return here;
}

/// A primitive and the scratch that it asks of the caller: what it owns itself, threads could not share.
struct Step {
  dnnl::primitive primitive;
  int64_t scratch = 0;

  Step() = default;
  template <class P, class D>
  Step(P made, const D& desc) : primitive(std::move(made)), scratch(int64_t(desc.scratchpad_desc().get_size())) {}

  void operator()(std::unordered_map<int, Memory> args, const Desc& scratch_desc) const {
    Scratch<char> room(scratch);
    if (scratch > 0) args.emplace(DNNL_ARG_SCRATCHPAD, Memory(scratch_desc, engine(), room.data()));
    primitive.execute(stream(), args);
  }
};

dnnl::primitive_attr caller_scratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

/// An array of a tile: as the user has it, as the primitive wants it, and the way from one to the other.
struct Side {
  Desc user, inner;
  Step convert;
  Desc convert_scratch;
  bool same = true;

  void meet(const Desc& wanted, bool into_inner) {
    inner = wanted;
    same = user == inner;
    if (same) return;
    const Desc &from = into_inner ? user : inner, &to = into_inner ? inner : user;
    const dnnl::reorder::primitive_desc desc(engine(), from, engine(), to, caller_scratch());
    convert = Step(dnnl::reorder(desc), desc);
    convert_scratch = desc.scratchpad_desc();
  }
  int64_t bytes() const { return same ? 0 : int64_t(inner.get_size()); }
  void run(const void* from, void* to, bool into_inner) const {
    convert({{DNNL_ARG_FROM, Memory(into_inner ? user : inner, engine(), const_cast<void*>(from))},
             {DNNL_ARG_TO, Memory(into_inner ? inner : user, engine(), to)}},
            convert_scratch);
  }
};

Memory memory(const Desc& desc, const void* data) { return Memory(desc, engine(), const_cast<void*>(data)); }

/// oneDNN's exceptions as ours.
template <class F>
auto guarded(F&& f) {
  try {
    return f();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    fail<InternalError>("conv2d: oneDNN failed with status {} ({})", int(error.status), std::string(error.message));
  }
}

}  // namespace

class ConvPlan {
 public:
  ConvPlan(ConvPass pass, const ConvTile& t) {
    const auto any = [](const Memory::dims& dims) { return Desc(dims, Memory::data_type::f32, Memory::format_tag::any); };
    const auto plain = [](const Memory::dims& dims, const Memory::dims& strides) {
      return Desc(dims, Memory::data_type::f32, strides);
    };
    const int64_t in_area = t.in_size[0] * t.in_size[1], out_area = t.out_size[0] * t.out_size[1],
                  taps = t.kernel[0] * t.kernel[1], in = t.in / t.groups, out = t.out / t.groups;
    const Memory::dims x_dims{t.images, t.in, t.in_size[0], t.in_size[1]},
        y_dims{t.images, t.out, t.out_size[0], t.out_size[1]};
    x.user = plain(x_dims, {t.x_image, in_area, t.in_size[1], 1});
    y.user = plain(y_dims, {t.y_image, out_area, t.out_size[1], 1});
    Memory::dims w_dims{out, in, t.kernel[0], t.kernel[1]}, w_strides{t.w_out, taps, t.kernel[1], 1};
    if (t.groups > 1) {
      w_dims.insert(w_dims.begin(), t.groups);
      w_strides.insert(w_strides.begin(), out * t.w_out);
    }
    w.user = plain(w_dims, w_strides);
    if (t.has_bias != 0) bias = plain({t.out}, {1});
    const Memory::dims stride{t.stride[0], t.stride[1]}, dilation{t.dilation[0] - 1, t.dilation[1] - 1},
        padding{t.padding[0], t.padding[1]};
    const auto direct = dnnl::algorithm::convolution_direct;
    const auto attr = caller_scratch();
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_forward::primitive_desc forward(engine(), dnnl::prop_kind::forward_training, direct, any(x_dims),
                                                            any(w_dims), bias, any(y_dims), stride, dilation, padding,
                                                            padding, attr);
#else
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, any(x_dims), any(w_dims), bias, any(y_dims), stride, dilation, padding,
         padding},
        attr, engine());
#endif
    switch (pass) {
      case ConvPass::forward:
        take(forward, dnnl::convolution_forward(forward), forward.src_desc(), forward.weights_desc(), forward.dst_desc(),
             pass);
        break;
      case ConvPass::data: {
#if DNNL_VERSION_MAJOR >= 3
        const dnnl::convolution_backward_data::primitive_desc desc(engine(), direct, any(x_dims), any(w_dims), any(y_dims),
                                                                   stride, dilation, padding, padding, forward, attr);
#else
        const dnnl::convolution_backward_data::primitive_desc desc(
            {direct, any(x_dims), any(w_dims), any(y_dims), stride, dilation, padding, padding}, attr, engine(), forward);
#endif
        take(desc, dnnl::convolution_backward_data(desc), desc.diff_src_desc(), desc.weights_desc(), desc.diff_dst_desc(),
             pass);
        break;
      }
      case ConvPass::weights: {
#if DNNL_VERSION_MAJOR >= 3
        const dnnl::convolution_backward_weights::primitive_desc desc(
            engine(), direct, any(x_dims), any(w_dims), any(y_dims), stride, dilation, padding, padding, forward, attr);
#else
        const dnnl::convolution_backward_weights::primitive_desc desc(
            {direct, any(x_dims), any(w_dims), any(y_dims), stride, dilation, padding, padding}, attr, engine(), forward);
#endif
        take(desc, dnnl::convolution_backward_weights(desc), desc.src_desc(), desc.diff_weights_desc(), desc.diff_dst_desc(),
             pass);
        break;
      }
    }
  }

  Side x, w, y;
  Desc bias;
  Step step;
  Desc step_scratch;

 private:
  template <class D, class P>
  void take(const D& desc, P primitive, const Desc& of_x, const Desc& of_w, const Desc& of_y, ConvPass pass) {
    step = Step(std::move(primitive), desc);
    step_scratch = desc.scratchpad_desc();
    x.meet(of_x, pass != ConvPass::data);
    w.meet(of_w, pass != ConvPass::weights);
    y.meet(of_y, pass != ConvPass::forward);
  }
};

std::shared_ptr<const ConvPlan> conv_plan(ConvPass pass, const ConvTile& tile) {
  constexpr size_t kMost = 256;  // beyond, the oldest goes
  struct Entry {
    ConvPass pass;
    ConvTile tile;
    std::shared_ptr<const ConvPlan> plan;
  };
  static std::mutex mutex;
  static std::vector<Entry> entries;
  prepare_thread();
  const std::lock_guard lock(mutex);
  for (const Entry& entry : entries)
    if (entry.pass == pass && entry.tile == tile) return entry.plan;
  if (entries.size() == kMost) entries.erase(entries.begin());
  entries.push_back({pass, tile, guarded([&] { return std::make_shared<const ConvPlan>(pass, tile); })});
  return entries.back().plan;
}

int64_t packed_bytes(const ConvPlan& plan) { return int64_t(plan.w.inner.get_size()); }

void pack_weights(const ConvPlan& plan, const float* weights, void* packed) {
  prepare_thread();
  guarded([&] {
    if (!plan.w.same) return plan.w.run(weights, packed, true);
    __builtin_memcpy(packed, weights, size_t(packed_bytes(plan)));
  });
}

void convolve(const ConvPlan& plan, const float* x, const void* packed, const float* bias, float* y) {
  prepare_thread();
  guarded([&] {
    Scratch<char> room_x(plan.x.bytes()), room_y(plan.y.bytes());
    if (!plan.x.same) plan.x.run(x, room_x.data(), true);
    std::unordered_map<int, Memory> args{
        {DNNL_ARG_SRC, memory(plan.x.inner, plan.x.same ? static_cast<const void*>(x) : room_x.data())},
        {DNNL_ARG_WEIGHTS, memory(plan.w.inner, packed)},
        {DNNL_ARG_DST, memory(plan.y.inner, plan.y.same ? static_cast<void*>(y) : room_y.data())}};
    if (bias != nullptr) args.emplace(DNNL_ARG_BIAS, memory(plan.bias, bias));
    plan.step(std::move(args), plan.step_scratch);
    if (!plan.y.same) plan.y.run(room_y.data(), y, false);
  });
}

void convolve_data(const ConvPlan& plan, const float* y, const void* packed, float* x) {
  prepare_thread();
  guarded([&] {
    Scratch<char> room_x(plan.x.bytes()), room_y(plan.y.bytes());
    if (!plan.y.same) plan.y.run(y, room_y.data(), true);
    plan.step({{DNNL_ARG_DIFF_DST, memory(plan.y.inner, plan.y.same ? static_cast<const void*>(y) : room_y.data())},
               {DNNL_ARG_WEIGHTS, memory(plan.w.inner, packed)},
               {DNNL_ARG_DIFF_SRC, memory(plan.x.inner, plan.x.same ? static_cast<void*>(x) : room_x.data())}},
              plan.step_scratch);
    if (!plan.x.same) plan.x.run(room_x.data(), x, false);
  });
}

void convolve_weights(const ConvPlan& plan, const float* x, const float* y, float* weights) {
  prepare_thread();
  guarded([&] {
    Scratch<char> room_x(plan.x.bytes()), room_y(plan.y.bytes()), room_w(plan.w.bytes());
    if (!plan.x.same) plan.x.run(x, room_x.data(), true);
    if (!plan.y.same) plan.y.run(y, room_y.data(), true);
    plan.step({{DNNL_ARG_SRC, memory(plan.x.inner, plan.x.same ? static_cast<const void*>(x) : room_x.data())},
               {DNNL_ARG_DIFF_DST, memory(plan.y.inner, plan.y.same ? static_cast<const void*>(y) : room_y.data())},
               {DNNL_ARG_DIFF_WEIGHTS, memory(plan.w.inner, plan.w.same ? static_cast<void*>(weights) : room_w.data())}},
              plan.step_scratch);
    if (!plan.w.same) plan.w.run(room_w.data(), weights, false);
  });
}

}  // namespace tessera
