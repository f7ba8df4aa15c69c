#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/apps/support/chart.h"
#include "tessera/core/tensor.h"

namespace tessera::apps {

/// What an HTML report shows, from top to bottom; empty parts are left out.
struct Report {
  struct Fact {
    std::string label, value, note;
  };
  struct Table {
    std::string title;
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows;
  };
  std::string title, subtitle;
  std::vector<Fact> facts;
  std::vector<Chart> charts;
  std::string confusion_title;
  Tensor confusion;                      ///< of `confusion_matrix`; undefined: none
  std::vector<std::string> class_names;  ///< empty: the numbers of the classes
  Table runs;
  std::string command;
  std::vector<std::pair<std::string, std::string>> manifest;
};

/// One HTML page that needs nothing beside itself: styles and pictures are inline, there are no scripts; light and dark
/// follow the reader's setting.
std::string html_of(const Report& report);

}  // namespace tessera::apps
