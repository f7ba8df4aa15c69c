#include "tessera/core/autograd.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/tensor_state.h"

namespace tessera {

/// One recorded op. `number` grows with time, so every input's node has a smaller one than its user.
struct Node {
  struct Input {
    std::shared_ptr<Node> node;         // a computed input
    std::shared_ptr<TensorState> leaf;  // or a leaf that requires a gradient; neither: no gradient wanted
    Shape shape;
    DType dtype = DType::f32;
  };
  const char* name;
  uint64_t number;
  std::vector<Input> inputs;
  Backward closure;
  Shape shape;
  DType dtype = DType::f32;
  Tensor pending;  // gradient gathered so far
  bool queued = false;

  ~Node();
};

namespace {

thread_local bool recording = true;
std::atomic<uint64_t> next_number{1};

/// What a node held when it died. A chain of nodes, through inputs or through what closures captured, would otherwise be
/// destroyed recursively, one stack frame per op.
struct Release {
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<Backward> closures;
};
thread_local Release* releasing = nullptr;

bool participates(const Tensor& tensor) { return tensor.defined() && TensorState::of(tensor)->requires_grad; }

/// sum + grad, in the place of `sum` when nobody else sees its array.
void accumulate(Tensor& sum, const Tensor& grad) {
  if (!sum.defined()) {
    sum = grad;
    return;
  }
  TensorState& state = *TensorState::of(sum);
  if (TensorState::shared(sum).use_count() == 1 && state.storage.use_count() == 1)
    add_in_place(sum, grad);
  else
    sum = add(sum.detach(), grad.detach());
}

}  // namespace

Node::~Node() {
  const bool outermost = releasing == nullptr;
  Release own;
  if (outermost) releasing = &own;
  for (Input& input : inputs)
    if (input.node != nullptr) releasing->nodes.push_back(std::move(input.node));
  if (closure != nullptr) releasing->closures.push_back(std::move(closure));
  if (!outermost) return;
  while (!own.nodes.empty() || !own.closures.empty()) {
    if (!own.closures.empty()) {
      const Backward captured = std::move(own.closures.back());
      own.closures.pop_back();
    } else {
      const std::shared_ptr<Node> node = std::move(own.nodes.back());
      own.nodes.pop_back();
    }
  }
  releasing = nullptr;
}

const Tensor& Saved::get() const {
  if (!tensor_.defined()) return tensor_;
  check(tensor_.version() == version_,
        "backward: a tensor of shape {} was changed in place after it was saved for the gradient", tensor_.shape());
  return tensor_;
}

NoGrad::NoGrad() : before_(recording) { recording = false; }
NoGrad::~NoGrad() { recording = before_; }

bool needs_record(const char* name, Tensor& out, std::initializer_list<Tensor> inputs) {
  if (!recording) return false;
  bool wanted = false, gradient = false;
  for (const Tensor& input : inputs) {
    wanted = wanted || participates(input);
    gradient = gradient || (input.defined() && TensorState::of(input)->from_gradient);
  }
  check(!wanted || !gradient,
        "{}: an input was made from a gradient, and second derivatives are not supported; detach() it if it is a constant",
        name);
  if (gradient) TensorState::of(out)->from_gradient = true;
  return wanted;
}

void attach(const char* name, Tensor& out, std::initializer_list<Tensor> inputs, Backward closure) {
  check<InternalError>(inputs.size() <= size_t(Gradients::kMaxInputs), "{}: {} inputs recorded but at most {} are possible",
                       name, inputs.size(), Gradients::kMaxInputs);
  auto node = std::make_shared<Node>();
  node->name = name;
  node->number = next_number.fetch_add(1, std::memory_order_relaxed);
  node->inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    Node::Input& entry = node->inputs.emplace_back();
    if (!participates(input)) continue;
    const std::shared_ptr<TensorState>& state = TensorState::shared(input);
    if (state->node != nullptr)
      entry.node = state->node;
    else
      entry.leaf = state;
    entry.shape = state->shape;
    entry.dtype = state->dtype;
  }
  node->closure = std::move(closure);
  TensorState& state = *TensorState::of(out);
  node->shape = state.shape;
  node->dtype = state.dtype;
  state.node = std::move(node);
  state.requires_grad = true;
}

/// The walk of one backward call: a heap of nodes that hold a gradient, newest on top.
struct Walk {
  std::vector<std::shared_ptr<Node>> heap;

  static bool older(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) { return a->number < b->number; }

  void give(const std::shared_ptr<Node>& node, const Tensor& grad) {
    accumulate(node->pending, grad);
    if (node->queued) return;
    node->queued = true;
    heap.push_back(node);
    std::push_heap(heap.begin(), heap.end(), older);
  }

  void run() {
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), older);
      const std::shared_ptr<Node> node = std::move(heap.back());
      heap.pop_back();
      node->queued = false;
      check(node->closure != nullptr, "backward: the graph at '{}' was already used and freed; compute the loss again",
            node->name);
      const Backward closure = std::move(node->closure);
      node->closure = nullptr;
      const Tensor grad = std::move(node->pending);
      Gradients into;
      into.node_ = node.get();
      into.walk_ = this;
      for (size_t i = 0; i < node->inputs.size(); ++i)
        into.wanted_[i] = node->inputs[i].node != nullptr || node->inputs[i].leaf != nullptr;
      closure(grad, into);
    }
  }

  /// After an exception: forget the gradients that were under way.
  void abandon() {
    for (const std::shared_ptr<Node>& node : heap) {
      node->pending = Tensor();
      node->queued = false;
    }
  }
};

void Gradients::add(int i, Tensor grad) {
  Node::Input& input = node_->inputs[size_t(i)];
  if (!wants(i)) return;
  check<InternalError>(grad.shape() == input.shape && grad.dtype() == input.dtype,
                       "{}: gradient of input {} is {} {} but the input is {} {}", node_->name, i, grad.dtype(), grad.shape(),
                       input.dtype, input.shape);
  if (input.node != nullptr) {
    walk_->give(input.node, std::move(grad));
    return;
  }
  // What a leaf keeps is its own: the seed, or another leaf's gradient, may be the same array (add gives one to both).
  Tensor& sum = input.leaf->grad;
  if (sum.defined())
    accumulate(sum, grad);
  else if (TensorState::shared(grad).use_count() > 1 || TensorState::of(grad)->storage.use_count() > 1)
    sum = clone(grad);
  else
    sum = std::move(grad);
  TensorState::of(sum)->from_gradient = true;
}

void backward(const Tensor& loss, const Tensor& seed, BackwardOptions options) {
  check<Unsupported>(!options.create_graph, "backward: create_graph asks for a second derivative, which is not supported");
  check(loss.defined() && loss.requires_grad(), "backward: the loss does not depend on a tensor that requires a gradient");
  check(seed.defined() || loss.numel() == 1, "backward: the loss has shape {} but needs one element, or a seed gradient",
        loss.shape());
  if (seed.defined())
    check(seed.shape() == loss.shape() && seed.dtype() == loss.dtype(), "backward: the seed is {} {} but the loss is {} {}",
          seed.dtype(), seed.shape(), loss.dtype(), loss.shape());
  const NoGrad off;
  const Tensor first = seed.defined() ? seed.detach() : full(loss.shape(), 1, loss.dtype());
  TensorState& state = *TensorState::of(loss);
  if (state.node == nullptr) {  // the loss is itself a leaf
    if (state.grad.defined())
      accumulate(state.grad, first);
    else
      state.grad = clone(first);
    TensorState::of(state.grad)->from_gradient = true;
    return;
  }
  Walk walk;
  walk.give(state.node, first);
  try {
    walk.run();
  } catch (...) {
    walk.abandon();
    throw;
  }
}

}  // namespace tessera
