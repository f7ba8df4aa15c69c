#include "tessera/apps/support/report.h"

#include <algorithm>
#include <cstdio>

#include "tessera/core/error.h"

namespace tessera::apps {
namespace {

constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--text:#1b2430;--soft:#667085;--rule:#e4e7ec;--train:#2563eb;--valid:#d97706;--test:#059669;--heat:37,99,235}
@media (prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1b212a;--text:#e6e9ee;--soft:#98a2b3;--rule:#2c3440;--train:#6ea0ff;--valid:#f5b454;--test:#45d3a0;--heat:110,160,255}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1180px;margin:0 auto;padding:32px 20px 48px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px}
h2{font-size:16px;margin:0 0 12px}
.sub{color:var(--soft);margin:0 0 24px}
.grid2{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:20px;margin-bottom:20px}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(168px,1fr));gap:12px;margin-bottom:20px}
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:18px 20px;min-width:0}
.facts .card{padding:12px 16px}
.label{color:var(--soft);font-size:13px}
.value{font-size:22px;font-weight:650;line-height:1.3;font-variant-numeric:tabular-nums}
.note{color:var(--soft);font-size:12.5px;min-height:1.4em}
svg{width:100%;height:auto;display:block}
.grid{stroke:var(--rule);stroke-width:1}
.mark{stroke:var(--soft);stroke-width:1;stroke-dasharray:4 4}
.tick{fill:var(--soft);font-size:12px}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}
.line.train{stroke:var(--train)}.line.valid{stroke:var(--valid)}.line.test{stroke:var(--test)}
.legend{display:flex;gap:16px;color:var(--soft);font-size:13px;margin:-4px 0 8px}
.legend i{display:inline-block;width:14px;height:3px;border-radius:2px;margin-right:6px;vertical-align:middle}
.legend .train{background:var(--train)}.legend .valid{background:var(--valid)}.legend .test{background:var(--test)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%;font-size:14px}
th{font-weight:600;color:var(--soft);font-size:13px}
th,td{padding:5px 10px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
tr:last-child td,tr:last-child th{border-bottom:0}
th:first-child,td:first-child{text-align:left}
.matrix{border-spacing:3px;border-collapse:separate;width:auto}
.matrix td,.matrix th{border:0;text-align:center;padding:6px 4px;min-width:44px;border-radius:5px}
.matrix th:first-child{text-align:right;padding-right:8px}
.matrix.dense td,.matrix.dense th{min-width:20px;padding:2px;font-size:10px}
.matrix .axis{font-weight:400;text-align:center}
.dark{color:#fff}
.track{display:inline-block;width:80px;height:8px;border-radius:4px;background:var(--rule);vertical-align:middle;margin-right:10px;overflow:hidden;text-align:left}
.bar{display:block;height:8px;background:var(--train)}
.how{columns:300px auto;column-gap:32px;font-size:14px}
.how div{display:flex;gap:12px;padding:4px 0;border-bottom:1px solid var(--rule);break-inside:avoid}
.how span:first-child{color:var(--soft);flex:0 0 130px}
.how span:last-child{overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
pre{margin:0 0 12px;padding:10px 12px;background:var(--bg);border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
footer{color:var(--soft);font-size:12.5px;margin-top:24px}
@media print{body{background:#fff}.card{break-inside:avoid}}
)css";

/// A confusion matrix, a row per label, and its shares; those of nothing are 0.
struct Confusion {
  int64_t classes;
  const int64_t* counts;

  explicit Confusion(const Tensor& matrix) : classes(matrix.dim(0)), counts(matrix.data<int64_t>()) {}
  int64_t count(int64_t label, int64_t predicted) const { return counts[label * classes + predicted]; }
  int64_t labelled(int64_t label) const {
    int64_t sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += count(label, c);
    return sum;
  }
  int64_t predicted(int64_t as) const {
    int64_t sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += count(c, as);
    return sum;
  }
  int64_t total() const {
    int64_t sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += labelled(c);
    return sum;
  }
  static double share(int64_t part, int64_t whole) { return whole > 0 ? double(part) / double(whole) : 0; }
  double precision(int64_t c) const { return share(count(c, c), predicted(c)); }
  double recall(int64_t c) const { return share(count(c, c), labelled(c)); }
  double f1(int64_t c) const { return share(2 * count(c, c), predicted(c) + labelled(c)); }
};

std::string fixed(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void add_charts(const Report& r, std::string& out) {
  if (r.charts.empty()) return;
  out += "<div class=\"grid2\">\n";
  for (const Chart& chart : r.charts) {
    out += "<section class=\"card\"><h2>" + html(chart.title) + "</h2><div class=\"legend\">";
    for (const Series& series : chart.series)
      out += "<span><i class=\"" + series.style + "\"></i>" + html(series.name) + "</span>";
    out += "</div>" + svg_of(chart) + "</section>\n";
  }
  out += "</div>\n";
}

// A row per label, shaded by its share of the label's nodes.
void add_confusion(const Report& r, const std::vector<std::string>& names, std::string& out) {
  const Confusion m(r.confusion);
  const bool dense = m.classes > 16;
  out += "<section class=\"card\"><h2>" + html(r.confusion_title) + "</h2><div class=\"scroll\"><table class=\"matrix" +
         std::string(dense ? " dense" : "") + "\"><tr><th></th><th class=\"axis\" colspan=\"" + to_text(m.classes) +
         "\">predicted</th></tr><tr><th class=\"axis\">label</th>";
  for (const std::string& name : names) out += "<th>" + html(name) + "</th>";
  out += "</tr>\n";
  for (int64_t label = 0; label < m.classes; ++label) {
    const int64_t sum = m.labelled(label);
    out += "<tr><th>" + html(names[size_t(label)]) + "</th>";
    for (int64_t c = 0; c < m.classes; ++c) {
      const double share = sum > 0 ? double(m.count(label, c)) / double(sum) : 0;
      out += "<td" + std::string(share > 0.55 ? " class=\"dark\"" : "") + " style=\"background:rgba(var(--heat)," +
             fixed(0.05 + 0.85 * share, 3) + ")\" title=\"label " + html(names[size_t(label)]) + ", predicted " +
             html(names[size_t(c)]) + ": " + to_text(m.count(label, c)) + " of " + to_text(sum) + "\">" +
             to_text(m.count(label, c)) + "</td>";
    }
    out += "</tr>\n";
  }
  out += "</table></div></section>\n";
}

void add_classes(const Report& r, const std::vector<std::string>& names, std::string& out) {
  const Confusion m(r.confusion);
  double precision = 0, recall = 0, f1 = 0;
  out +=
      "<section class=\"card\"><h2>Per class</h2><div "
      "class=\"scroll\"><table><tr><th>class</th><th>precision</th><th>recall</th>"
      "<th>F1</th><th>nodes</th></tr>\n";
  for (int64_t c = 0; c < m.classes; ++c) {
    precision += m.precision(c);
    recall += m.recall(c);
    f1 += m.f1(c);
    out += "<tr><td>" + html(names[size_t(c)]) + "</td><td>" + fixed(m.precision(c), 3) + "</td><td>" +
           fixed(m.recall(c), 3) +
           "</td><td><span class=\"track\"><span class=\"bar\" style=\"width:" + fixed(100 * m.f1(c), 1) +
           "%\"></span></span>" + fixed(m.f1(c), 3) + "</td><td>" + to_text(m.labelled(c)) + "</td></tr>\n";
  }
  const double n = double(std::max<int64_t>(m.classes, 1));
  out += "<tr><th>mean</th><th>" + fixed(precision / n, 3) + "</th><th>" + fixed(recall / n, 3) + "</th><th>" +
         fixed(f1 / n, 3) + "</th><th>" + to_text(m.total()) + "</th></tr></table></div></section>\n";
}

void add_table(const Report::Table& table, std::string& out) {
  if (table.rows.empty()) return;
  out += "<section class=\"card\" style=\"margin-bottom:20px\"><h2>" + html(table.title) +
         "</h2><div class=\"scroll\"><table><tr>";
  for (const std::string& cell : table.head) out += "<th>" + html(cell) + "</th>";
  out += "</tr>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + html(cell) + "</td>";
    out += "</tr>\n";
  }
  out += "</table></div></section>\n";
}

}  // namespace

std::string html_of(const Report& r) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>" +
      html(r.title) + "</title><style>" + kStyle + "</style></head><body><main>\n<h1>" + html(r.title) +
      "</h1>\n<p class=\"sub\">" + html(r.subtitle) + "</p>\n";
  if (!r.facts.empty()) {
    out += "<div class=\"facts\">\n";
    for (const Report::Fact& fact : r.facts)
      out += "<div class=\"card\"><div class=\"label\">" + html(fact.label) + "</div><div class=\"value\">" +
             html(fact.value) + "</div><div class=\"note\">" + html(fact.note) + "</div></div>\n";
    out += "</div>\n";
  }
  add_charts(r, out);
  if (r.confusion.defined()) {
    std::vector<std::string> names = r.class_names;
    for (int64_t c = int64_t(names.size()); c < r.confusion.dim(0); ++c) names.push_back(to_text(c));
    out += "<div class=\"grid2\">\n";
    add_confusion(r, names, out);
    add_classes(r, names, out);
    out += "</div>\n";
  }
  add_table(r.runs, out);
  out += "<section class=\"card\"><h2>How this was made</h2><pre>" + html(r.command) + "</pre><div class=\"how\">\n";
  for (const auto& [name, value] : r.manifest)
    out += "<div><span>" + html(name) + "</span><span>" + html(value) + "</span></div>\n";
  return out + "</div></section>\n</main></body></html>\n";
}

}  // namespace tessera::apps
