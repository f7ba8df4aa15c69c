#pragma once

#include <string>
#include <vector>

namespace tessera::apps {

/// A line over epochs 1, 2, ...; NaN leaves a gap. `style` is a CSS class of the report: train, valid, test.
struct Series {
  std::string name, style;
  std::vector<double> values;
};

struct Chart {
  std::string title;
  std::vector<Series> series;
  bool percent = false;  ///< values are fractions
  double marked = -1;    ///< epoch with a vertical line
  std::string mark_text;
};

/// The chart as one inline SVG element that takes its colours from CSS. Long series are thinned: every column of the picture
/// shows the extremes of its epochs.
std::string svg_of(const Chart& chart);

/// Steps of 1, 2 or 5 times a power of ten that cut [low, high] into about `count` parts.
double nice_step(double low, double high, int count);

/// Text for HTML: & < > " ' are escaped.
std::string html(const std::string& text);

}  // namespace tessera::apps
