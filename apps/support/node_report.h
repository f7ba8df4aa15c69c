#pragma once

#include "tessera/apps/support/node_run.h"

namespace tessera::apps {

/// The HTML report of a node classification. Curves and confusion are the chosen run's, the latter of its test nodes (of its
/// training nodes when there are none).
std::string node_report(const NodeOptions& o, const NodeTask& task, const FinishedRuns& finished, const Manifest& manifest);

}  // namespace tessera::apps
