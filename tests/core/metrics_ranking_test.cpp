#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/metrics.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/random.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

Tensor column(std::vector<double> values) { return Tensor::from(values, {int64_t(values.size())}); }

TEST(Ranking, AucByCountingPairs) {
  // Few distinct scores, so that there are many ties.
  const Philox random(5, 0);
  std::vector<double> scores, labels;
  for (uint64_t i = 0; i < 400; ++i) {
    scores.push_back(double(random.word(3 * i) % 17));
    labels.push_back(random.word(3 * i + 2) % 5 == 0 ? NAN : double(random.word(3 * i + 1) % 2));
  }
  double wins = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    for (size_t j = 0; j < scores.size(); ++j)
      if (labels[i] == 1 && labels[j] == 0) {
        wins += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
        pairs += 1;
      }
  EXPECT_NEAR(roc_auc(column(scores), column(labels)).mean, wins / pairs, 1e-12);
  EXPECT_NEAR(roc_auc(cast(column(scores), DType::f32), cast(column(labels), DType::f32)).mean, wins / pairs, 1e-12);
}

TEST(Ranking, AucLeavesMissingLabelsOut) {
  const Tensor labels = Tensor::from<double>({1, 0, 0, NAN, NAN, 1, 1, 1, 0, NAN}, {5, 2});
  const Tensor scores = Tensor::from<double>({.9, .2, .4, .7, .1, .6, .3, .8, .2, .5}, {5, 2});
  const TaskMean auc = roc_auc(scores, labels);
  EXPECT_EQ(auc.per_task, (std::vector<double>{0.75, 1}));
  EXPECT_EQ(auc.mean, 0.875);
  EXPECT_EQ(auc.defined, 2);
}

// H40
TEST(Ranking, OneClassAloneIsUndefined) {
  for (const auto measure : {roc_auc, average_precision}) {
    const TaskMean one = measure(column({.2, .5, .9}), column({1, 1, 1}));
    EXPECT_TRUE(std::isnan(one.mean) && std::isnan(one.per_task[0]));
    EXPECT_EQ(one.defined, 0);
    // Column 1 has one class and is left out of the mean; nothing at all is undefined too.
    const TaskMean two = measure(Tensor::from<double>({.2, .1, .9, .3}, {2, 2}), Tensor::from<double>({0, 0, 1, 0}, {2, 2}));
    EXPECT_EQ(two.mean, 1);
    EXPECT_EQ(two.defined, 1);
    EXPECT_TRUE(std::isnan(two.per_task[1]));
    EXPECT_EQ(measure(zeros({0, 3}), zeros({0, 3})).defined, 0);
  }
}

TEST(Ranking, ConstantScoresAreHalf) {
  EXPECT_EQ(roc_auc(column({.3, .3, .3, .3}), column({1, 0, 1, 0})).mean, 0.5);
  EXPECT_EQ(average_precision(column({.3, .3, .3, .3}), column({1, 0, 1, 0})).mean, 0.5);
}

TEST(Ranking, AveragePrecision) {
  // From the top: 1 of 1, 1 of 2, 2 of 3.
  EXPECT_NEAR(average_precision(column({.9, .8, .7, .1}), column({1, 0, 1, 0})).mean, (1 + 2.0 / 3) / 2, 1e-15);
  // Two that tie come in together: 2 of 3.
  EXPECT_NEAR(average_precision(column({.9, .8, .8, .1}), column({1, 1, 0, 0})).mean, (1 + 2.0 / 3) / 2, 1e-15);
  EXPECT_NEAR(average_precision(column({.1, .2, NAN}), column({1, 0, NAN})).mean, 0.5, 1e-15);
}

TEST(Ranking, RegressionErrors) {
  const Tensor x = Tensor::from<double>({1, 2, 3, 4}, {2, 2}), y = Tensor::from<double>({1, 0, NAN, 6}, {2, 2});
  EXPECT_EQ(rmse(x, y).per_task, (std::vector<double>{0, 2}));
  EXPECT_EQ(mae(x, y).mean, 1);
  EXPECT_NEAR(rmse(column({1, 2}), column({0, 0})).mean, std::sqrt(2.5), 1e-15);
  const TaskMean none = mae(column({1}), column({NAN}));
  EXPECT_TRUE(std::isnan(none.mean));
  EXPECT_EQ(none.defined, 0);
}

// H39
TEST(Ranking, HitsAtKAreStrict) {
  EXPECT_EQ(hits_at_k(column({.3, .3}), column({.3, .3, .3}), 1), 0);
  const Tensor yes = column({.9, .5}), no = column({.5, .4, .3});
  EXPECT_EQ(hits_at_k(yes, no, 1), 0.5);
  EXPECT_EQ(hits_at_k(yes, no, 2), 1);
  EXPECT_EQ(hits_at_k(yes, no, 3), 1);
  EXPECT_EQ(hits_at_k(column({0, 0}), no, 4), 1);  // fewer negatives than k
}

TEST(Ranking, RanksOfTiesAreTheMiddle) {
  const Tensor yes = column({3, 1, 2, 5}), no = Tensor::from<double>({1, 2, 3, 4, 2, 2, 2, 2, 1, 9, 9, 9}, {4, 3});
  const Ranking r = ranking(yes, no);
  // Row 0: {1, 2, 3}: 3 ties once: 1.5. Row 1: {4, 2, 2}: three above: 4. Row 2: {2, 2, 1}: two ties: 2. Row 3: three
  // above: 4.
  EXPECT_NEAR(r.mrr, (1 / 1.5 + 0.25 + 0.5 + 0.25) / 4, 1e-15);
  EXPECT_EQ(r.hits_at_1, 0);
  EXPECT_EQ(r.hits_at_3, 0.5);
  EXPECT_EQ(r.hits_at_10, 1);
  EXPECT_EQ(ranking(column({1}), zeros({1, 0})).mrr, 1);
}

TEST(Ranking, ConfusionAndF1) {
  // Predictions 1, 1, 0, 2 for labels 1, 0, 0, 1; class 3 never occurs.
  const Tensor scores = Tensor::from<float>({0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0}, {4, 4});
  const Tensor labels = Tensor::from<int32_t>({1, 0, 0, 1}, {4});
  EXPECT_EQ(confusion_matrix(scores, labels).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(f1(scores, labels, Average::micro), 0.5);
  EXPECT_EQ(f1(scores, labels, Average::micro), accuracy(scores, labels));
  EXPECT_NEAR(f1(scores, labels, Average::macro), (2.0 / 3 + 0.5 + 0) / 3, 1e-15);
  EXPECT_EQ(f1(scores, labels, Average::macro, Tensor::from<int32_t>({0, 2}, {2})), 1);
  const Tensor many = Tensor::from<double>({1, -1, 1, 1, -1, -1}, {3, 2}),
               truth = Tensor::from<double>({1, 0, 0, 1, 1, NAN}, {3, 2});
  EXPECT_EQ(f1_multilabel(many, truth, Average::micro), 4.0 / 6);  // 2 right, 1 wrong yes, 1 wrong no
  EXPECT_EQ(f1_multilabel(many, truth, Average::macro), (0.5 + 1) / 2);
  EXPECT_EQ(f1_multilabel(many, zeros({3, 2}), Average::micro, 5), 0);
}

TEST(Ranking, Errors) {
  const Tensor x = zeros({2, 2}), y = column({0, 1});
  const Tensor labels = zeros({2}, DType::i32);
  verify_errors({
      {[&] { roc_auc(x, y); }, "InvalidArgument: roc_auc: scores have shape [2, 2] but labels [2]"},
      {[&] {
         roc_auc(y, column({0, 2}));
       },
       "InvalidArgument: roc_auc: the label of row 1, column 0 is 2 but needs to be 0, 1 or NaN"},
      {[&] {
         roc_auc(column({1, NAN}), y);
       },
       "InvalidArgument: roc_auc: the score of row 1, column 0 is NaN"},
      {[&] { average_precision(zeros({}), zeros({})); },
       "InvalidArgument: average_precision: scores have shape [] but need one or two dimensions"},
      {[&] { rmse(column({NAN}), column({1})); }, "InvalidArgument: rmse: the score of row 0, column 0 is NaN"},
      {[&] { hits_at_k(y, y, 0); }, "InvalidArgument: hits_at_k: k is 0 but needs to be 1 or more"},
      {[&] { hits_at_k(column({}), y, 1); },
       "InvalidArgument: hits_at_k: positives have shape [0] and negatives [2] but need to be [P] with P > 0 and [M]"},
      {[&] { hits_at_k(y, column({NAN}), 1); }, "InvalidArgument: hits_at_k: negative 0 is NaN"},
      {[&] { ranking(y, y); },
       "InvalidArgument: ranking: positives have shape [2] and negatives [2] but need to be [B] with B > 0 and [B, K]"},
      {[&] { f1_multilabel(x, y, Average::micro); },
       "InvalidArgument: f1_multilabel: scores have shape [2, 2] and labels [2] but both need to be the same [N, T]"},
      {[&] {
         f1_multilabel(x, full({2, 2}, 3), Average::micro);
       },
       "InvalidArgument: f1_multilabel: labels[0, 0] is 3 but needs to be 0, 1 or NaN"},
      {[&] { f1(y, labels, Average::micro); }, "InvalidArgument: f1: scores have shape [2] but need two dimensions"},
      {[&] { confusion_matrix(x, labels, zeros({0}, DType::i32)); },
       "InvalidArgument: confusion_matrix: no row is chosen, the share of no rows is undefined"},
  });
}

}  // namespace
}  // namespace tessera::test
