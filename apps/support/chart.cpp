#include "tessera/apps/support/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace tessera::apps {
namespace {

constexpr double kWidth = 560, kHeight = 300, kLeft = 52, kRight = 14, kTop = 16, kBottom = 40;

[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string tick_text(double value, double step, bool percent) {
  if (percent) return printed("%g%%", std::round(value * 1e6) / 1e4);
  if (value >= 1000 && step >= 1000) return printed("%gk", value / 1000);
  const int digits = std::clamp(int(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
  return printed("%.*f", digits, value);
}

struct Axis {
  double low, high, from, to;
  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

std::string path_of(const std::vector<double>& values, const Axis& x, const Axis& y) {
  const int64_t n = int64_t(values.size()), columns = int64_t(x.to - x.from);
  std::string out;
  bool pen = false;
  const auto point = [&](int64_t i) {
    const double value = values[size_t(i)];
    if (!std::isfinite(value)) {
      pen = false;
      return;
    }
    out += printed("%c%.1f %.1f", pen ? 'L' : 'M', x.at(double(i + 1)), std::clamp(y.at(value), y.to, y.from));
    pen = true;
  };
  if (n <= 2 * columns) {
    for (int64_t i = 0; i < n; ++i) point(i);
    return out;
  }
  for (int64_t c = 0; c < columns; ++c) {
    const int64_t begin = c * n / columns, end = (c + 1) * n / columns;
    int64_t low = begin, high = begin;
    for (int64_t i = begin; i < end; ++i) {
      if (!(values[size_t(i)] >= values[size_t(low)])) low = i;
      if (!(values[size_t(i)] <= values[size_t(high)])) high = i;
    }
    point(std::min(low, high));
    if (low != high) point(std::max(low, high));
  }
  return out;
}

}  // namespace

double nice_step(double low, double high, int count) {
  const double rough = std::max(high - low, 1e-12) / count;
  const double unit = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * unit * (1 + 1e-9)) return factor * unit;
  return 10 * unit;
}

std::string html(const std::string& text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  return out;
}

std::string svg_of(const Chart& chart) {
  size_t epochs = 1;
  double low = INFINITY, high = -INFINITY;
  for (const Series& series : chart.series) {
    epochs = std::max(epochs, series.values.size());
    for (const double value : series.values)
      if (std::isfinite(value)) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
  }
  if (!(low <= high)) low = 0, high = 1;
  if (chart.percent) {
    high = std::min(1.0, high + 0.02);
    low = std::max(0.0, low - 0.02);
  } else {
    low = std::min(low, 0.0);
  }
  if (high <= low) high = low + 1;
  double step = nice_step(low, high, 5);
  low = std::floor(low / step + 1e-9) * step;
  high = std::ceil(high / step - 1e-9) * step;
  const Axis x{1, double(std::max<size_t>(epochs, 2)), kLeft, kWidth - kRight}, y{low, high, kHeight - kBottom, kTop};

  std::string out =
      printed("<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"", kWidth, kHeight) + html(chart.title) + "\">";
  for (double value = low; value <= high + step / 2; value += step) {
    const double at = y.at(value);
    out += printed("<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>", kLeft, kWidth - kRight, at, at);
    out += printed("<text class=\"tick\" text-anchor=\"end\" x=\"%g\" y=\"%.1f\">", kLeft - 8, at + 4) +
           tick_text(std::abs(value) < step / 1e6 ? 0 : value, step, chart.percent) + "</text>";
  }
  const double across = std::max(1.0, nice_step(0, x.high, 6));
  for (double value = across; value <= x.high + 1e-9; value += across)
    out += printed("<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%g\">",
                   std::min(x.at(value), kWidth - kRight - 8), kHeight - kBottom + 18) +
           tick_text(value, across, false) + "</text>";
  out += printed("<text class=\"tick\" text-anchor=\"middle\" x=\"%g\" y=\"%g\">epoch</text>", (kLeft + kWidth - kRight) / 2,
                 kHeight - 4);
  if (chart.marked >= 1 && chart.marked <= x.high) {
    const double at = x.at(chart.marked);
    const bool left = at > kWidth * 0.6;
    out += printed("<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\"/>", at, at, kTop, kHeight - kBottom);
    out += printed("<text class=\"tick\" text-anchor=\"%s\" x=\"%.1f\" y=\"%g\">", left ? "end" : "start",
                   at + (left ? -5 : 5), chart.percent ? kHeight - kBottom - 6 : kTop + 4) +
           html(chart.mark_text) + "</text>";
  }
  for (const Series& series : chart.series)
    out += "<path class=\"line " + series.style + "\" d=\"" + path_of(series.values, x, y) + "\"><title>" +
           html(series.name) + "</title></path>";
  return out + "</svg>";
}

}  // namespace tessera::apps
