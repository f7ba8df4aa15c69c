#include "tessera/datasets/graph/planetoid.h"

#include <algorithm>
#include <charconv>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/pickle.h"
#include "tessera/core/io/pickle_numpy.h"
#include "tessera/datasets/graph/assemble.h"

namespace tessera {
namespace {

using Kind = PickleValue::Kind;

constexpr int64_t kValidNodes = 500;

struct Csr {
  int64_t rows = 0, columns = 0;
  Tensor rowptr, col, values;
};

Csr read_csr(const std::string& path) {
  PickleOptions options{.globals = numpy_globals()};
  options.globals.push_back("scipy.sparse.csr csr_matrix");
  options.globals.push_back("scipy.sparse._csr csr_matrix");
  const std::string bytes = read_file(path);
  const Pickle pickle(bytes, path, options);
  const PickleValue& matrix = pickle.root();
  check<IoError>(is_call(matrix, options.globals.back()) || is_call(matrix, options.globals[options.globals.size() - 2]),
                 "{}: holds a pickled {}, expected a scipy csr_matrix", path, name(matrix.kind));
  const auto part = [&](const char* key) -> const PickleValue& {
    const PickleValue* found = matrix.state == nullptr ? nullptr : find(*matrix.state, key);
    check<IoError>(found != nullptr, "{}: the csr_matrix has no {}", path, key);
    return *found;
  };
  const PickleValue& shape = part("_shape");
  check<IoError>(shape.kind == Kind::tuple && shape.items.size() == 2 && shape.items[0]->kind == Kind::integer &&
                     shape.items[1]->kind == Kind::integer && shape.items[0]->integer >= 0 && shape.items[1]->integer >= 0,
                 "{}: the csr_matrix has a shape that is not two sizes", path);
  return {shape.items[0]->integer, shape.items[1]->integer, numpy_array(part("indptr"), path, "indptr"),
          numpy_array(part("indices"), path, "indices"), numpy_array(part("data"), path, "data")};
}

struct OneHot {
  int64_t rows = 0, columns = 0;
  std::vector<int32_t> labels;
};

OneHot read_labels(const std::string& path) {
  const std::string bytes = read_file(path);
  const Pickle pickle(bytes, path, {.globals = numpy_globals()});
  const Tensor matrix = numpy_array(pickle.root(), path, "the label matrix");
  check<IoError>(matrix.ndim() == 2, "{}: the label matrix has {} dimensions, expected 2", path, matrix.ndim());
  const Tensor values = to_int64(matrix, path, "the label matrix");
  OneHot result{matrix.dim(0), matrix.dim(1), {}};
  for (int64_t row = 0; row < result.rows; ++row) {
    const int64_t* entries = values.data<int64_t>() + row * result.columns;
    int32_t label = -1;
    for (int64_t c = 0; c < result.columns; ++c) {
      check<IoError>(entries[c] == 0 || (entries[c] == 1 && label < 0),
                     "{}: row {} of the label matrix is not one-hot (column {} holds {})", path, row, c, entries[c]);
      if (entries[c] == 1) label = int32_t(c);
    }
    result.labels.push_back(label);
  }
  return result;
}

std::vector<int32_t> read_ids(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<int32_t> ids;
  int64_t line = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    std::string_view field(text.data() + at, end - at);
    at = end + 1;
    ++line;
    while (!field.empty() && (field.back() == '\r' || field.back() == ' ')) field.remove_suffix(1);
    if (field.empty()) continue;
    int32_t id = -1;
    const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), id);
    check<IoError>(error == std::errc() && stop == field.data() + field.size() && id >= 0,
                   "{}: line {} is '{}', expected a node id", path, line, printable(field));
    ids.push_back(id);
  }
  return ids;
}

void read_graph(const std::string& path, NodeDataset& dataset) {
  const std::string bytes = read_file(path);
  const Pickle pickle(bytes, path, {.globals = {"collections defaultdict", "__builtin__ list", "builtins list"}});
  const PickleValue& graph = pickle.root();
  check<IoError>(graph.kind == Kind::dict || is_call(graph, "collections defaultdict"),
                 "{}: holds a pickled {}, expected a dict from node to neighbours", path, name(graph.kind));
  std::vector<int64_t> from, to;
  for (size_t i = 0; i + 1 < graph.items.size(); i += 2) {
    const PickleValue &node = *graph.items[i], &neighbours = *graph.items[i + 1];
    check<IoError>(node.kind == Kind::integer && neighbours.kind == Kind::list,
                   "{}: entry {} of the dict is a {} and a {}, expected an int and a list", path, i / 2, name(node.kind),
                   name(neighbours.kind));
    for (const PickleValue* neighbour : neighbours.items) {
      check<IoError>(neighbour->kind == Kind::integer, "{}: node {} has a {} among its neighbours, expected ints", path,
                     node.integer, name(neighbour->kind));
      from.push_back(node.integer);
      to.push_back(neighbour->integer);
    }
  }
  set_edges(dataset, Tensor::from(from, {int64_t(from.size())}), Tensor::from(to, {int64_t(to.size())}), path);
}

}  // namespace

NodeDataset load_planetoid(const std::string& folder, const std::string& set_name) {
  const auto path = [&](const char* part) { return folder + "/ind." + set_name + "." + part; };
  std::vector<std::string> files;
  std::string missing;
  for (const char* part : {"x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"}) {
    files.push_back(path(part));
    if (!file_exists(files.back())) missing += (missing.empty() ? "ind." : ", ind.") + set_name + "." + part;
  }
  check<IoError>(missing.empty(), "{}: lacks {}; a Planetoid set has ind.{}.x tx allx y ty ally graph test.index", folder,
                 missing, set_name);

  const Csr allx = read_csr(path("allx")), tx = read_csr(path("tx"));
  const OneHot y = read_labels(path("y")), ally = read_labels(path("ally")), ty = read_labels(path("ty"));
  const std::vector<int32_t> test = read_ids(path("test.index"));
  const int64_t plain = allx.rows, tests = int64_t(test.size());
  check<IoError>(ally.rows == plain, "{}: has {} rows but ally has {}", path("allx"), plain, ally.rows);
  check<IoError>(tx.rows == tests && ty.rows == tests, "{}: has {} ids but tx has {} rows and ty {}", path("test.index"),
                 tests, tx.rows, ty.rows);
  check<IoError>(tx.columns == allx.columns, "{}: has {} columns but allx has {}", path("tx"), tx.columns, allx.columns);
  check<IoError>(y.columns == ally.columns && ty.columns == ally.columns, "{}: has {} classes but y has {} and ty {}",
                 path("ally"), ally.columns, y.columns, ty.columns);
  check<IoError>(y.rows <= plain, "{}: has {} rows but allx only {}", path("y"), y.rows, plain);

  NodeDataset dataset;
  dataset.name = set_name;
  dataset.num_nodes = plain;
  for (const int32_t id : test) dataset.num_nodes = std::max<int64_t>(dataset.num_nodes, int64_t(id) + 1);
  // The largest id decides the size of everything below: a wild one must not.
  check<IoError>(dataset.num_nodes - plain <= 10 * tests + 1000, "{}: the largest id is {} but the files describe {} nodes",
                 path("test.index"), dataset.num_nodes - 1, plain + tests);
  std::vector<int64_t> row_in_tx(size_t(dataset.num_nodes - plain), -1);
  for (int64_t k = 0; k < tests; ++k) {
    const int64_t id = test[size_t(k)];
    check<IoError>(id >= plain, "{}: has the id {}, expected {} or more (allx has {} rows)", path("test.index"), id, plain,
                   plain);
    check<IoError>(row_in_tx[size_t(id - plain)] < 0, "{}: has the id {} twice", path("test.index"), id);
    row_in_tx[size_t(id - plain)] = k;
  }

  // Features: the rows of allx, then those of tx in the order of their ids; ids without a row get an empty one.
  csr_pairs(allx.rowptr, allx.col, allx.rows, allx.columns, path("allx"), "the feature matrix");
  csr_pairs(tx.rowptr, tx.col, tx.rows, tx.columns, path("tx"), "the feature matrix");
  check<IoError>(allx.values.numel() == allx.col.numel(), "{}: the feature matrix has {} values but {} column indices",
                 path("allx"), allx.values.numel(), allx.col.numel());
  check<IoError>(tx.values.numel() == tx.col.numel(), "{}: the feature matrix has {} values but {} column indices",
                 path("tx"), tx.values.numel(), tx.col.numel());
  std::vector<int64_t> rowptr{0}, col;
  std::vector<float> values;
  struct Block {
    Tensor rowptr, col, values;
  };
  const auto widened = [&](const Csr& m, const char* part) {
    return Block{to_int64(m.rowptr, path(part), "indptr"), to_int64(m.col, path(part), "indices"), to_float32(m.values)};
  };
  const Block plain_block = widened(allx, "allx"), test_block = widened(tx, "tx");
  for (int64_t node = 0; node < dataset.num_nodes; ++node) {
    const Block& block = node < plain ? plain_block : test_block;
    const int64_t row = node < plain ? node : row_in_tx[size_t(node - plain)];
    if (row >= 0) {
      const int64_t begin = block.rowptr.data<int64_t>()[row], end = block.rowptr.data<int64_t>()[row + 1];
      col.insert(col.end(), block.col.data<int64_t>() + begin, block.col.data<int64_t>() + end);
      values.insert(values.end(), block.values.data<float>() + begin, block.values.data<float>() + end);
    }
    rowptr.push_back(int64_t(col.size()));
  }
  set_sparse_features(dataset, Tensor::from(rowptr, {int64_t(rowptr.size())}), Tensor::from(col, {int64_t(col.size())}),
                      Tensor::from(values, {int64_t(values.size())}), allx.columns, path("allx"), "the feature matrix");

  std::vector<int32_t> labels = ally.labels;
  for (const int64_t row : row_in_tx) labels.push_back(row < 0 ? -1 : ty.labels[size_t(row)]);
  dataset.labels = ids(labels);
  dataset.num_classes = ally.columns;

  read_graph(path("graph"), dataset);

  std::vector<int32_t> train, valid;
  for (int64_t i = 0; i < y.rows; ++i) train.push_back(int32_t(i));
  for (int64_t i = y.rows; i < std::min(plain, y.rows + kValidNodes); ++i) valid.push_back(int32_t(i));
  dataset.splits.push_back({ids(train), ids(valid), ids(test)});
  dataset.sha256 = sha256_of_files(files);
  return dataset;
}

}  // namespace tessera
