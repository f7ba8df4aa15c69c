#pragma once

#include "tessera/apps/support/graph_run.h"

namespace tessera::apps {

/// The HTML report of a training on a set of graphs. Curves and confusion are the chosen training's, the latter of its test
/// graphs (of its training graphs when there are none), where there are classes.
std::string graph_report(const GraphOptions& o, const GraphSet& set, const FinishedUnits& finished,
                         const Manifest& manifest);

}  // namespace tessera::apps
