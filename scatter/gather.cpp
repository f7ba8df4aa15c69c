#include "tessera/scatter/gather.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/log.h"
#include "tessera/core/parallel.h"
#include "tessera/scatter/gather_kernels.h"
#include "tessera/scatter/ids.h"
#include "tessera/scatter/rows.h"
#include "tessera/scatter/scatter_reduce.h"
#include "tessera/scatter/segment_reduce.h"

namespace tessera {
namespace {

Tensor gather_rows(const Tensor& x, const Tensor& index) {
  Tensor out = Tensor::empty(x.shape().with(0, index.numel()), x.dtype(), x.device());
  bool outside = false;
  const bool narrow = index.dtype() == DType::i32;
  if (logs_dispatch())
    log_dispatch("gather: cpu {}, {} threads; {} rows of {} bytes written", name(active_isa()), threads(), index.numel(),
                 row_width(x) * int64_t(size_of(x.dtype())));
  run<GatherKernel>(x.device(), {.count = index.numel(),
                                 .x_rows = x.dim(0),
                                 .row_bytes = row_width(x) * int64_t(size_of(x.dtype())),
                                 .x = x.raw(),
                                 .index32 = narrow ? index.data<int32_t>() : nullptr,
                                 .index64 = narrow ? nullptr : index.data<int64_t>(),
                                 .out = out.mutable_raw(),
                                 .outside = &outside});
  if (outside) check_id_range("gather", "index", index, x.dim(0));
  return out;
}

}  // namespace

Tensor gather(const Tensor& x, const Tensor& index) {
  check(x.defined(), "gather: x is undefined");
  check(x.ndim() >= 1, "gather: x has shape {} but needs at least one dimension", x.shape());
  check_id_list("gather", "index", index);
  Tensor out = gather_rows(x, index);
  record("gather", out, {x}, [nodes = x.dim(0), index = Saved(index)](const Tensor& grad, Gradients& into) {
    into.add(0, scatter_reduce(grad, index.get(), nodes));
  });
  return out;
}

Tensor gather(const Tensor& x, const SegmentPlan& plan) {
  check(plan.defined(), "gather: the plan is undefined");
  check(x.defined(), "gather: x is undefined");
  check(x.ndim() >= 1 && x.dim(0) == plan.num_segments(),
        "gather: x has shape {} but the plan has {} segments, so it needs [{}, ...]", x.shape(), plan.num_segments(),
        plan.num_segments());
  Tensor out = gather_rows(x, plan.segment_of_row());
  record("gather", out, {x}, [plan](const Tensor& grad, Gradients& into) { into.add(0, segment_reduce(grad, plan)); });
  return out;
}

}  // namespace tessera
