// The first layer of the network that makes messages is W [x[d], x[s], edge] + b. Cut into W's three parts it is
//
//     h[e] = a[d] + b[s] + c[e],   a = W_1 x + b,  b = W_2 x,  c = W_3 edge:
//
// two products over nodes in place of one over edges. When it is the only layer, a[d] is the same for all edges of a row and
// leaves the aggregators: it is added to their means and extremes, times the degree to their sums, and their variances do
// not know it. What remains to be aggregated is b[s], by `spmm`, or b[s] + c[e].
// Behind the aggregators the scalers are factors of a row, and so is moved behind the product what PyG copies for each
// scaler before it: post_nn([x, m, 2 m]) is W_x x + W_1 m + 2 (W_2 m).

#include "tessera/layers/conv/pna_conv.h"

#include <algorithm>
#include <cmath>

#include "tessera/core/ops/activation.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/sparse/edge_plans.h"
#include "tessera/sparse/sddmm.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

constexpr double kLeastVariance = 1e-5;

/// f(degree) of each destination: (N, 1).
template <class F>
Tensor degree_column(const Graph& graph, DType dtype, const F& f) {
  const int32_t* degree = graph.in_degree().data<int32_t>();
  std::vector<double> values(size_t(graph.num_dst()));
  for (size_t d = 0; d < values.size(); ++d) values[d] = f(double(degree[d]));
  return cast(Tensor::from(values, Shape{graph.num_dst(), 1}), dtype);
}

/// Columns of tower t.
Tensor share(const Tensor& x, int64_t towers, int64_t t) {
  const int64_t width = x.dim(1) / towers;
  return towers == 1 ? x : slice(x, 1, t * width, (t + 1) * width);
}

/// All towers' products side by side: x (rows, towers x F) if `divided`, else (rows, F), times `part` of each tower's
/// first matrix, columns [part F, part F + F).
Tensor first_product(const PnaConv& conv, const Tensor& x, int64_t part, bool divided) {
  const int64_t width = conv.pre_nns[0].lins[0].weight.dim(0);
  std::vector<Tensor> out;
  for (const PnaNetwork& network : conv.pre_nns)
    out.push_back(slice(network.lins[0].weight, 1, part * width, (part + 1) * width));
  if (!divided) return matmul(x, out.size() == 1 ? out[0] : concat(out), {.transpose_b = true});
  for (size_t t = 0; t < out.size(); ++t)
    out[t] = matmul(share(x, int64_t(out.size()), int64_t(t)), out[t], {.transpose_b = true});
  return out.size() == 1 ? out[0] : concat(out, 1);
}

/// The rest of each tower's network, of h after its first layer.
Tensor later_layers(const std::vector<PnaNetwork>& networks, Tensor h, Activation act) {
  const int64_t towers = int64_t(networks.size());
  for (size_t i = 1; i < networks[0].lins.size(); ++i) {
    h = activate(h, act);
    std::vector<Tensor> out;
    for (int64_t t = 0; t < towers; ++t) out.push_back(networks[size_t(t)].lins[i](share(h, towers, t)));
    h = towers == 1 ? out[0] : concat(out, 1);
  }
  return h;
}

/// What is sent along edges, and what each destination adds to all it receives.
struct Messages {
  const Graph& graph;
  Tensor rows;    // (num_src, W), or by_edge (E, W)
  Tensor offset;  // (num_dst, W), or undefined
  bool by_edge;

  Tensor reduce(const Tensor& of, Reduce how) const {
    return by_edge ? segment_reduce(of, edges_by_dst(graph), how) : spmm(graph, of, how);
  }

  /// A row without edges stays 0.
  Tensor with_offset(const Tensor& reduced, bool per_edge) const {
    if (!offset.defined()) return reduced;
    const Tensor times =
        degree_column(graph, offset.dtype(), [=](double degree) { return per_edge ? degree : std::min(degree, 1.0); });
    return add(reduced, mul(offset, times));
  }

  /// mean: of rows, which three of the aggregators begin with.
  Tensor operator()(PnaAggregator aggregator, const Tensor& mean) const {
    switch (aggregator) {
      case PnaAggregator::sum: return with_offset(reduce(rows, Reduce::sum), true);
      case PnaAggregator::mean: return with_offset(mean, false);
      case PnaAggregator::min: return with_offset(reduce(rows, Reduce::min), false);
      case PnaAggregator::max: return with_offset(reduce(rows, Reduce::max), false);
      case PnaAggregator::var:
      case PnaAggregator::std: break;
    }
    const Tensor var = sub(reduce(square(rows), Reduce::mean), square(mean));
    if (aggregator == PnaAggregator::var) return var;
    const Tensor least = full(Shape{}, kLeastVariance, var.dtype());
    return where(greater(var, least), sqrt(clamp(var, kLeastVariance, 1e300)), zeros(Shape{}, var.dtype()));
  }
};

/// The factor of each row, (N, 1); undefined for 1.
Tensor scaler_column(const PnaConv& conv, const Graph& graph, PnaScaler scaler) {
  const auto column = [&](auto f) { return degree_column(graph, conv.avg_deg_lin.dtype(), f); };
  switch (scaler) {
    case PnaScaler::identity: break;
    case PnaScaler::amplification: return div(column([](double d) { return std::log(d + 1); }), conv.avg_deg_log);
    case PnaScaler::attenuation:
      return mul(column([](double d) { return 1 / std::log(std::max(d, 1.0) + 1); }), conv.avg_deg_log);
    case PnaScaler::linear: return div(column([](double d) { return d; }), conv.avg_deg_lin);
    case PnaScaler::inverse_linear: return mul(column([](double d) { return 1 / std::max(d, 1.0); }), conv.avg_deg_lin);
  }
  return {};
}

Messages messages_of(const PnaConv& conv, const Tensor& x, const Graph& graph, const Tensor& edge_attr) {
  const int64_t towers = int64_t(conv.pre_nns.size());
  const bool divided = conv.options.divide_input;
  std::vector<Tensor> biases;
  for (const PnaNetwork& network : conv.pre_nns) biases.push_back(network.lins[0].bias);
  const Tensor at_dst = add_bias(first_product(conv, x, 0, divided), towers == 1 ? biases[0] : concat(biases));
  const Tensor from_src = first_product(conv, x, 1, divided);
  Tensor edge;
  if (edge_attr.defined()) edge = first_product(conv, conv.edge_encoder(edge_attr), 2, false);
  if (conv.options.pre_layers == 1) {
    if (!edge.defined()) return {graph, from_src, at_dst, false};
    return {graph, add(gather(from_src, edges_by_src(graph)), edge), at_dst, true};
  }
  Tensor h = sddmm(graph, EdgeOp::add, at_dst, from_src);
  if (edge.defined()) h = add(h, edge);
  return {graph, later_layers(conv.pre_nns, h, conv.options.act), {}, true};
}

}  // namespace

Tensor degree_histogram(std::span<const Graph> graphs) {
  std::vector<int64_t> count(1);
  for (const Graph& graph : graphs)
    for (const int32_t degree : graph.in_degree().span<int32_t>()) {
      if (size_t(degree) >= count.size()) count.resize(size_t(degree) + 1);
      ++count[size_t(degree)];
    }
  return Tensor::from(count, Shape{int64_t(count.size())});
}

Tensor degree_histogram(const Graph& graph) { return degree_histogram({&graph, 1}); }

PnaConv::PnaConv(int64_t in, int64_t out, const Tensor& degrees, Generator& generator, PnaConvOptions given)
    : options(std::move(given)) {
  const int64_t towers = options.towers;
  check(in >= 1 && out >= 1 && towers >= 1 && options.pre_layers >= 1 && options.post_layers >= 1,
        "pna_conv: in {}, out {}, towers {}, pre_layers {} and post_layers {} need to be 1 or more", in, out, towers,
        options.pre_layers, options.post_layers);
  check(out % towers == 0, "pna_conv: out {} needs to be a multiple of {} towers", out, towers);
  check(!options.divide_input || in % towers == 0, "pna_conv: in {} needs to be a multiple of {} towers to be divided", in,
        towers);
  check(options.edge_dim >= 0, "pna_conv: edge_dim is {} but needs to be 0 or more", options.edge_dim);
  check(!options.aggregators.empty() && !options.scalers.empty(),
        "pna_conv: {} aggregators and {} scalers were given but "
        "it needs 1 or more of each",
        int64_t(options.aggregators.size()), int64_t(options.scalers.size()));
  check(degrees.defined() && degrees.ndim() == 1 && degrees.dtype() == DType::i64,
        "pna_conv: degrees needs to be a histogram, i64 of one dimension");
  double nodes = 0, linear = 0, logarithms = 0;
  for (int64_t d = 0; d < degrees.numel(); ++d) {
    const double count = double(degrees.data<int64_t>()[d]);
    nodes += count;
    linear += count * double(d);
    logarithms += count * std::log(double(d + 1));
  }
  check(linear > 0, "pna_conv: degrees has no node with an edge, so there is no mean degree to scale by");
  avg_deg_lin = full(Shape{1}, linear / nodes);
  avg_deg_log = full(Shape{1}, logarithms / nodes);
  if (options.train_norm) {
    avg_deg_lin.set_requires_grad();
    avg_deg_log.set_requires_grad();
  }
  const int64_t width = options.divide_input ? in / towers : in, share = out / towers;
  if (options.edge_dim > 0) edge_encoder = Linear(options.edge_dim, width, generator);
  const int64_t aggregated = int64_t(options.aggregators.size() * options.scalers.size());
  for (int64_t t = 0; t < towers; ++t) {
    PnaNetwork pre, post;
    for (int i = 0; i < options.pre_layers; ++i)
      pre.lins.emplace_back(i > 0 ? width : (options.edge_dim > 0 ? 3 : 2) * width, width, generator);
    for (int i = 0; i < options.post_layers; ++i)
      post.lins.emplace_back(i > 0 ? share : (aggregated + 1) * width, share, generator);
    pre_nns.push_back(std::move(pre));
    post_nns.push_back(std::move(post));
  }
  lin = Linear(out, out, generator);
}

Tensor PnaConv::operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr) const {
  const int64_t towers = options.towers, width = pre_nns[0].lins[0].weight.dim(0);
  const int64_t in = options.divide_input ? towers * width : width;
  check(x.ndim() == 2 && x.dim(0) == graph.num_src() && graph.num_src() == graph.num_dst() && x.dim(1) == in,
        "pna_conv: x has shape {} but needs [{}, {}], and the graph has {} destinations", x.shape(), graph.num_src(), in,
        graph.num_dst());
  check(edge_attr.defined() == (options.edge_dim > 0), "pna_conv: edge_attr was {} but the layer was made {} edge_dim",
        edge_attr.defined() ? "given" : "not given", options.edge_dim > 0 ? "with" : "without");
  if (edge_attr.defined())
    check(edge_attr.ndim() == 2 && edge_attr.dim(0) == graph.num_edges() && edge_attr.dim(1) == options.edge_dim,
          "pna_conv: edge_attr has shape {} but needs [{}, {}]", edge_attr.shape(), graph.num_edges(), options.edge_dim);

  const Messages messages = messages_of(*this, x, graph, edge_attr);
  Tensor mean;
  for (const PnaAggregator a : options.aggregators)
    if (!mean.defined() && (a == PnaAggregator::mean || a == PnaAggregator::var || a == PnaAggregator::std))
      mean = messages.reduce(messages.rows, Reduce::mean);
  std::vector<Tensor> received;
  for (const PnaAggregator aggregator : options.aggregators) received.push_back(messages(aggregator, mean));
  std::vector<Tensor> factors;
  for (const PnaScaler scaler : options.scalers) factors.push_back(scaler_column(*this, graph, scaler));

  const int64_t block = width * int64_t(options.aggregators.size());
  std::vector<Tensor> outputs;
  for (int64_t t = 0; t < towers; ++t) {
    std::vector<Tensor> parts;
    for (const Tensor& of : received) parts.push_back(share(of, towers, t));
    const Tensor m = parts.size() == 1 ? parts[0] : concat(parts, 1);
    const Linear& first = post_nns[size_t(t)].lins[0];
    Tensor h = matmul(options.divide_input ? share(x, towers, t) : x, slice(first.weight, 1, 0, width),
                      {.transpose_b = true, .bias = first.bias});
    for (size_t s = 0; s < factors.size(); ++s) {
      const int64_t begin = width + int64_t(s) * block;
      const Tensor scaled = matmul(m, slice(first.weight, 1, begin, begin + block), {.transpose_b = true});
      h = add(h, factors[s].defined() ? mul(scaled, factors[s]) : scaled);
    }
    outputs.push_back(h);
  }
  return lin(later_layers(post_nns, towers == 1 ? outputs[0] : concat(outputs, 1), options.act));
}

}  // namespace tessera
