#include "tessera/scatter/segment_plan.h"

#include <algorithm>
#include <limits>

#include "tessera/core/parallel.h"
#include "tessera/scatter/counting_sort.h"
#include "tessera/scatter/ids.h"
#include "tessera/scatter/segment_plan_state.h"

namespace tessera {
namespace {

constexpr int64_t kMaxSegments = std::numeric_limits<int32_t>::max();

SegmentPlanState& defined_state(const std::shared_ptr<SegmentPlanState>& state) {
  check(state != nullptr, "segment_plan: an undefined plan was used");
  return *state;
}

}  // namespace

SegmentSchedule make_segment_schedule(const int64_t* offsets, int64_t num_segments) {
  SegmentSchedule made;
  made.slots = cut_segments(offsets, num_segments, made.chunks, made.hubs);
  for (int64_t s = 0; s < num_segments; ++s) made.longest = std::max(made.longest, offsets[s + 1] - offsets[s]);
  return made;
}

SegmentPlan SegmentPlanState::of_ids(Tensor ids, int64_t num_segments) {
  auto state = std::make_shared<SegmentPlanState>();
  const int64_t count = ids.numel();
  state->num_segments = num_segments;
  state->num_rows = count;
  state->offsets = Tensor::empty(Shape{num_segments + 1}, DType::i64);
  int64_t* offsets = state->offsets.mutable_data<int64_t>();
  const int32_t* keys = ids.data<int32_t>();
  if (is_sorted(keys, count)) {
    offsets_of_sorted(keys, count, num_segments, offsets);
  } else {
    state->order = Tensor::empty(Shape{count}, DType::i64);
    CountingSort sort;
    sort.count = count;
    sort.num_keys = num_segments;
    sort.key = keys;
    sort.offsets = offsets;
    sort.out_id = state->order.mutable_data<int64_t>();
    counting_sort(sort);
  }
  state->segment_of_row.get([&] { return std::move(ids); });
  return SegmentPlan(std::move(state));
}

SegmentPlan SegmentPlan::from_index(const Tensor& index, int64_t num_segments) {
  check(0 <= num_segments && num_segments <= kMaxSegments, "segment_plan: num_segments is {} but needs to be in [0, {}]",
        num_segments, kMaxSegments);
  check_id_list("segment_plan", "index", index);
  return SegmentPlanState::of_ids(narrow_ids("segment_plan", "index", index, num_segments), num_segments);
}

SegmentPlan SegmentPlan::from_offsets(const Tensor& offsets) {
  check(offsets.defined(), "segment_plan: offsets is undefined");
  check(offsets.dtype() == DType::i64, "segment_plan: offsets has dtype {} but needs i64", offsets.dtype());
  check(offsets.ndim() == 1 && offsets.numel() >= 1, "segment_plan: offsets has shape {} but needs [num_segments + 1]",
        offsets.shape());
  const int64_t num_segments = offsets.numel() - 1;
  check(num_segments <= kMaxSegments, "segment_plan: num_segments is {} but needs to be in [0, {}]", num_segments,
        kMaxSegments);
  auto state = std::make_shared<SegmentPlanState>();
  state->offsets = Tensor::from(offsets.span<int64_t>(), offsets.shape());
  const int64_t* values = state->offsets.data<int64_t>();
  check(values[0] == 0, "segment_plan: offsets[0] is {} but needs to be 0", values[0]);
  for (int64_t s = 0; s < num_segments; ++s)
    check(values[s] <= values[s + 1],
          "segment_plan: offsets[{}] is {} but offsets[{}] before it is {}; offsets must not fall", s + 1, values[s + 1], s,
          values[s]);
  state->num_segments = num_segments;
  state->num_rows = values[num_segments];
  return SegmentPlan(std::move(state));
}

int64_t SegmentPlan::num_segments() const { return defined_state(state_).num_segments; }
int64_t SegmentPlan::num_rows() const { return defined_state(state_).num_rows; }
const Tensor& SegmentPlan::offsets() const { return defined_state(state_).offsets; }
const Tensor& SegmentPlan::order() const { return defined_state(state_).order; }

const Tensor& SegmentPlan::segment_of_row() const {
  SegmentPlanState& state = defined_state(state_);
  return state.segment_of_row.get([&] {
    Tensor out = Tensor::empty(Shape{state.num_rows}, DType::i32);
    int32_t* segment = out.mutable_data<int32_t>();
    const int64_t* offsets = state.offsets.data<int64_t>();
    parallel_for(state.num_segments, 1 << 10, [=](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) std::fill(segment + offsets[s], segment + offsets[s + 1], int32_t(s));
    });
    return out;
  });
}

Tensor SegmentPlan::counts() const {
  const SegmentPlanState& state = defined_state(state_);
  Tensor out = Tensor::empty(Shape{state.num_segments}, DType::i64);
  int64_t* counts = out.mutable_data<int64_t>();
  const int64_t* offsets = state.offsets.data<int64_t>();
  for (int64_t s = 0; s < state.num_segments; ++s) counts[s] = offsets[s + 1] - offsets[s];
  return out;
}

const SegmentSchedule& SegmentPlanState::schedule_of(const SegmentPlan& plan) {
  SegmentPlanState& state = defined_state(plan.state_);
  return state.schedule.get([&] { return make_segment_schedule(state.offsets.data<int64_t>(), state.num_segments); });
}

SegmentView SegmentPlanState::view(const SegmentPlan& plan) {
  const SegmentSchedule& schedule = schedule_of(plan);
  const SegmentPlanState& state = of(plan);
  return {.num_segments = state.num_segments,
          .num_rows = state.num_rows,
          .offsets = state.offsets.data<int64_t>(),
          .order = state.order.defined() ? state.order.data<int64_t>() : nullptr,
          .chunks = schedule.chunks.data(),
          .num_chunks = int64_t(schedule.chunks.size()),
          .hubs = schedule.hubs.data(),
          .num_hubs = int64_t(schedule.hubs.size()),
          .num_slots = schedule.slots};
}

}  // namespace tessera
