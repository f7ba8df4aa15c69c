#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tessera/core/log.h"

namespace tessera::test {

/// The lines of TESSERA_LOG=dispatch that `call` gives.
template <class F>
std::string dispatch_lines(const F& call) {
  set_log_dispatch(true);
  testing::internal::CaptureStderr();
  call();
  set_log_dispatch(false);
  return testing::internal::GetCapturedStderr();
}

}  // namespace tessera::test
