#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "tessera/apps/support/history.h"

namespace tessera::apps {

/// A TensorBoard event file: `tensorboard --logdir DIR` shows the curves. Records are TFRecords (length, masked CRC-32C of
/// the length, bytes, masked CRC-32C of the bytes) of `Event` messages in protocol buffers' wire format.
/// https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto
class EventLog {
 public:
  /// Starts a file of its own in `folder`, which is made. `first_step`: TensorBoard forgets what earlier files in the folder
  /// say from this step on, so that a resumed run draws one line. `metric` names the curves of scores. Errors: IoError.
  EventLog(const std::string& folder, int64_t first_step, std::string metric = "accuracy");
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// The last values of the curves that are numbers, as loss/train, accuracy/valid, ...; flushes once a second.
  void add(const History& history, int64_t step);
  void scalar(std::string_view tag, int64_t step, double value);
  /// Puts what is buffered into the file. Errors: IoError.
  void flush();
  const std::string& path() const { return path_; }

 private:
  void record(const std::string& event);
  std::string path_, metric_;
  std::FILE* file_ = nullptr;
  int64_t flushed_ = 0;  // seconds
};

/// CRC-32C (Castagnoli) and its masked form in TFRecords.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tessera::apps
