#include "tessera/tests/support/cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <typeinfo>

#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/gradcheck.h"
#include "tessera/tests/support/proof.h"
#include "tessera/tests/support/tolerance.h"

#if defined(__SANITIZE_ADDRESS__)
/// Tests ask for more memory than there is: that is a bad_alloc, not the end of the program.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#endif

namespace tessera::test {
namespace {

double element(const Tensor& tensor, int64_t i) {
  return with_any(tensor.dtype(), [&]<class T>() {
    if constexpr (sizeof(T) == 2)
      return double(float(tensor.data<T>()[i]));
    else
      return double(tensor.data<T>()[i]);
  });
}

/// Other bits in every element: NaN for floats, -1 for integers.
void scribble(Tensor tensor) {
  void* data = tensor.mutable_raw();
  if (tensor.numel() > 0) std::memset(data, 0xff, size_t(tensor.numel()) * size_of(tensor.dtype()));
}

/// Leaves blocks full of NaN in the allocator's cache, of the sizes that the op is about to ask for.
void poison(const Tensors& like) {
  std::vector<Tensor> blocks;
  for (int round = 0; round < 3; ++round)
    for (const Tensor& tensor : like)
      if (tensor.defined()) scribble(blocks.emplace_back(Tensor::empty(tensor.shape(), tensor.dtype())));
}

std::string text_of(const Shape& shape, DType dtype) { return to_text(dtype) + " " + to_text(shape); }

struct Result {
  Tensor out;
  Tensors grads;
};

class Checker {
 public:
  explicit Checker(const Case& c) : case_(c) {}

  std::vector<std::string> run() {
    const Restore restore;
    for (const DType dtype : case_.dtypes) {
      try {
        check_dtype(dtype);
      } catch (const std::exception& error) {
        complain(std::string("threw: ") + error.what());
      }
    }
    std::vector<std::string> lines;
    for (const std::string& what : order_) {
      const Complaint& complaint = wrong_[what];
      lines.push_back("case '" + case_.name + "' " + complaint.where + ": " + what);
      if (complaint.times > 1) lines.back() += " (and in " + std::to_string(complaint.times - 1) + " other settings)";
    }
    return lines;
  }

 private:
  /// What is wrong in one setting is mostly wrong in all: it is told once, with the number of settings.
  void complain(const std::string& what) {
    Complaint& complaint = wrong_[what];
    if (complaint.times++ == 0) {
      complaint.where = where_;
      order_.push_back(what);
    }
  }

  bool is_real(size_t i) const { return case_.inputs[i].dtype == DType::f64; }

  /// Copies of the inputs, those in `wanting` as leaves.
  Tensors leaves(const std::vector<bool>& wanting) const {
    Tensors out;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      out.push_back(clone(inputs_[i]));
      if (wanting[i]) out.back().set_requires_grad();
    }
    return out;
  }

  /// One forward and, when something wants a gradient, one backward pass.
  Result once(const std::vector<bool>& wanting) {
    const Tensors in = leaves(wanting);
    std::vector<uint64_t> versions;
    for (const Tensor& x : in) versions.push_back(x.version());
    poison(inputs_);
    poison({expected_like_});
    Result result;
    result.out = case_.call(in);
    result.grads.resize(in.size());
    if (differentiable(wanting)) {
      if (!result.out.requires_grad()) {
        complain("the output does not require a gradient although an input does");
        return result;
      }
      const Tensor seed = clone(seed_);
      poison(inputs_);
      backward(result.out, seed);
      if (!same_bits(seed, seed_)) complain("the backward pass changed the seed gradient");
      for (size_t i = 0; i < in.size(); ++i) {
        result.grads[i] = in[i].grad();
        if (wanting[i] && !result.grads[i].defined()) complain("input " + std::to_string(i) + " got no gradient");
        if (!wanting[i] && result.grads[i].defined())
          complain("input " + std::to_string(i) + " got a gradient that it does not want");
      }
      check_ownership(result.grads, seed);
    } else if (result.out.requires_grad()) {
      complain("the output requires a gradient although no input does");
    }
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i].version() != versions[i] || !same_bits(in[i], inputs_[i]))
        complain("input " + std::to_string(i) + " was changed by the op");
    result.out = result.out.detach();
    return result;
  }

  bool differentiable(const std::vector<bool>& wanting) const {
    if (!is_floating(expected_like_.dtype())) return false;
    for (const bool wants : wanting)
      if (wants) return true;
    return false;
  }

  /// Whoever changes one gradient in place must not change another.
  void check_ownership(const Tensors& grads, const Tensor& seed) {
    std::set<const void*> seen = {seed.raw()};
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() || grads[i].numel() == 0) continue;
      if (!seen.insert(grads[i].raw()).second)
        complain("the gradient of input " + std::to_string(i) + " shares its memory with another gradient or the seed");
    }
  }

  void check_dtype(DType dtype) {
    where_ = to_text(dtype);
    inputs_ = make_inputs(case_.inputs, dtype, case_.seed);
    set_threads(1);
    set_isa(isas().back());
    {
      const NoGrad off;
      expected_like_ = case_.call(inputs_);
      if (expected_like_.requires_grad()) complain("the output requires a gradient under NoGrad");
    }
    // Some outputs are the input itself.
    expected_like_ = clone(expected_like_);
    wanted_.clear();
    for (const Input& input : case_.inputs) wanted_.push_back(input.wants_grad);
    const bool graded = differentiable(wanted_);
    if (is_floating(expected_like_.dtype())) seed_ = random_seed(expected_like_.shape(), expected_like_.dtype(), case_.seed);
    refer(dtype, graded);

    std::map<Isa, Result> first;
    for (const int n : {1, 2, 3}) {
      set_threads(n);
      where_ = to_text(dtype);
      prove_threads(n);
      for (const Isa isa : isas()) {
        set_isa(isa);
        where_ = to_text(dtype) + " " + name(isa) + " " + std::to_string(n) + (n == 1 ? " thread" : " threads");
        prove_isa(isa);
        Result result = once(wanted_);
        if (n > 1) {
          compare_bits(first[isa], result, "differ from those of 1 thread");
          continue;
        }
        compare_values(result);
        first[isa] = std::move(result);
      }
    }
    set_threads(1);
    where_ = to_text(dtype) + " " + name(isas().back());
    const Result& plain = first[isas().back()];
    if (graded) {
      if (dtype == DType::f64 && case_.smooth) check_differences(plain);
      check_subsets(plain);
      check_versions(plain);
    }
  }

  void prove_threads(int n) {
    static std::set<int> proven;
    if (!proven.insert(n).second) return;
    const int ran = threads_that_run();
    if (ran != n) complain(std::to_string(ran) + " threads ran in a pool of " + std::to_string(n));
  }

  void prove_isa(Isa isa) {
    const IsaProof proof = isa_that_runs();
    if (active_isa() != isa || proof.compiled_for != isa || proof.vector_bytes != vector_bytes(isa))
      complain(std::string("the kernels that run are those of ") + name(proof.compiled_for));
  }

  void refer(DType dtype, bool graded) {
    output_.reset();
    gradients_.clear();
    if (case_.reference == nullptr) return;
    Tape tape;
    Arrays arrays;
    for (const Tensor& input : inputs_) arrays.push_back(to_array(input));
    if (graded)
      for (size_t i = 0; i < arrays.size(); ++i)
        if (wanted_[i]) tape.watch(arrays[i]);
    output_ = case_.reference(arrays);
    if (output_->shape != expected_like_.shape()) {
      complain("the output has shape " + to_text(expected_like_.shape()) + " but the reference has " +
               to_text(output_->shape));
      output_.reset();
      return;
    }
    if (is_floating(dtype) && is_floating(expected_like_.dtype()))
      coarser_ = unit_roundoff(dtype) > unit_roundoff(expected_like_.dtype()) ? dtype : expected_like_.dtype();
    else
      coarser_ = expected_like_.dtype();
    if (!graded) return;
    std::vector<double> seed;
    for (int64_t i = 0; i < seed_.numel(); ++i) seed.push_back(element(seed_, i));
    std::vector<const Array*> watched;
    for (size_t i = 0; i < arrays.size(); ++i)
      if (wanted_[i]) watched.push_back(&arrays[i]);
    std::vector<Tape::Gradient> found = tape.gradients(*output_, seed, watched);
    gradients_.resize(arrays.size());
    for (size_t i = 0, next = 0; i < arrays.size(); ++i)
      if (wanted_[i]) gradients_[i] = std::move(found[next++]);
  }

  void compare_values(const Result& result) {
    if (!output_) return;
    if (result.out.shape() != output_->shape || result.out.dtype() != expected_like_.dtype())
      return complain("the output is " + text_of(result.out.shape(), result.out.dtype()));
    for (int64_t i = 0; i < output_->numel(); ++i) {
      const Real& expected = (*output_)[i];
      const std::string difference = compare(element(result.out, i), expected.value, coarser_, case_.k, expected.magnitude);
      if (difference.empty()) continue;
      complain("output element " + std::to_string(i) + " " + difference);
      break;
    }
    for (size_t input = 0; input < gradients_.size(); ++input) {
      const Tensor& grad = result.grads[input];
      if (!wanted_[input] || !grad.defined()) continue;
      if (grad.shape() != inputs_[input].shape() || grad.dtype() != inputs_[input].dtype()) {
        complain("the gradient of input " + std::to_string(input) + " is " + text_of(grad.shape(), grad.dtype()));
        continue;
      }
      for (int64_t i = 0; i < grad.numel(); ++i) {
        const std::string difference = compare(element(grad, i), gradients_[input].value[size_t(i)], coarser_, case_.grad_k,
                                               gradients_[input].magnitude[size_t(i)]);
        if (difference.empty()) continue;
        complain("gradient of input " + std::to_string(input) + " at element " + std::to_string(i) + " " + difference);
        break;
      }
    }
  }

  void compare_bits(const Result& a, const Result& b, const std::string& how) {
    if (!same_bits(a.out, b.out)) complain("bits of the output " + how);
    for (size_t i = 0; i < a.grads.size(); ++i)
      if (!same_bits(a.grads[i], b.grads[i])) complain("bits of the gradient of input " + std::to_string(i) + " " + how);
  }

  void check_differences(const Result& plain) {
    std::vector<double> magnitude;
    for (int64_t i = 0; i < plain.out.numel(); ++i)
      magnitude.push_back(output_ ? (*output_)[i].magnitude : 8 * (std::fabs(element(plain.out, i)) + 1));
    for (const std::string& wrong : gradcheck(case_.call, inputs_, plain.grads, seed_, magnitude, case_.k, case_.seed))
      complain(wrong);
  }

  void check_subsets(const Result& plain) {
    size_t wanting = 0;
    for (const bool wants : wanted_) wanting += wants ? 1 : 0;
    for (size_t i = 0; wanting > 1 && i < wanted_.size(); ++i) {
      if (!wanted_[i]) continue;
      std::vector<bool> only(wanted_.size());
      only[i] = true;
      const Result result = once(only);
      if (!same_bits(result.grads[i], plain.grads[i]))
        complain("the gradient of input " + std::to_string(i) + " differs when it is the only one wanted");
    }
    once(std::vector<bool>(wanted_.size()));
    const NoGrad off;
    const Tensors in = leaves(wanted_);
    const Tensor out = case_.call(in);
    bool is_input = false;
    for (const Tensor& x : in) is_input = is_input || out.is(x);
    if (out.requires_grad() && !is_input) complain("recorded under NoGrad");
  }

  void check_versions(const Result& plain) {
    for (size_t i = 0; i <= inputs_.size(); ++i) {
      const bool is_output = i == inputs_.size();
      const Tensors in = leaves(wanted_);
      const Tensor out = case_.call(in);
      const Tensor changed = is_output ? out.detach() : in[i].detach();
      const std::string what = is_output ? "the output" : "input " + std::to_string(i);
      const bool refused = is_output ? case_.saves_output : case_.inputs[i].is_saved;
      scribble(changed);
      std::string error = error_of([&] { backward(out, seed_); });
      if (refused) {
        const std::string expected = "InvalidArgument: backward: a tensor of shape " + to_text(changed.shape()) +
                                     " was changed in place after it was saved for the gradient";
        if (error != expected) complain("after a change of " + what + ", which is saved, backward gave: " + error);
      } else if (error != "no error") {
        complain("after a change of " + what + ", which is not said to be saved, backward gave: " + error);
      } else {
        for (size_t j = 0; j < in.size(); ++j)
          if (!same_bits(in[j].grad(), plain.grads[j]))
            complain("a change of " + what + " changed the gradient of input " + std::to_string(j) + " without an error");
      }
    }
  }

  struct Complaint {
    std::string where;
    int times = 0;
  };

  const Case& case_;
  std::map<std::string, Complaint> wrong_;
  std::vector<std::string> order_;
  std::string where_;
  Tensors inputs_;
  std::vector<bool> wanted_;
  Tensor expected_like_, seed_;
  DType coarser_ = DType::f32;
  std::optional<Array> output_;
  std::vector<Tape::Gradient> gradients_;
};

}  // namespace

std::vector<std::string> complaints(const Case& c) { return Checker(c).run(); }

void verify(const Case& c, const char* file, int line) {
  std::string text;
  int shown = 0;
  for (const std::string& wrong : complaints(c))
    if (++shown <= 8) text += wrong + "\n";
  if (shown > 8) text += "and " + std::to_string(shown - 8) + " more complaints\n";
  if (shown > 0) ADD_FAILURE_AT(file, line) << text;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::type_info& type = typeid(error);
    const char* kind = type == typeid(InvalidArgument) ? "InvalidArgument"
                       : type == typeid(Unsupported)   ? "Unsupported"
                       : type == typeid(IoError)       ? "IoError"
                       : type == typeid(InternalError) ? "InternalError"
                                                       : "Error";
    return std::string(kind) + ": " + error.what();
  } catch (const std::bad_alloc&) {
    return "bad_alloc";
  } catch (const std::exception& error) {
    return std::string(typeid(error).name()) + ": " + error.what();
  }
  return "no error";
}

void verify_errors(const std::vector<ErrorCase>& cases, const char* file, int line) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string error = error_of(cases[i].call);
    if (error == cases[i].error) continue;
    ADD_FAILURE_AT(file, line) << "error case " << i << " gave\n  " << error << "\nbut needs\n  " << cases[i].error;
  }
}

}  // namespace tessera::test
