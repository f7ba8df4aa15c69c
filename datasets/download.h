#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tessera {

struct DownloadOptions {
  /// Told now and then how many bytes are here and how many there will be (0: the server does not say). False stops the
  /// download; what has come stays for the next call.
  std::function<bool(uint64_t received, uint64_t total)> progress = {};
  int tries = 4;                             ///< in a row without a new byte
  double wait_seconds = 1;                   ///< before the second try, then twice as long each time
  double stalled_seconds = 30;               ///< no byte for so long ends a try; also the most that connecting takes
  uint64_t most_bytes = uint64_t{64} << 30;  ///< a server that sends more is refused
};

/// Whether this build can download (libcurl was there).
bool can_download();

/// Puts what `url` (http or https) gives under `path` and returns its SHA-256. `path` then holds the whole file, or there is
/// none: the bytes arrive in `path`.part, are synced, compared with `sha256` (64 hexadecimal digits; empty: not known) and
/// renamed. A transfer that breaks off is taken up again where it stopped, also by a later call or another process, as long
/// as the server still has the same file: `path`.part.from keeps its ETag or date. A server that cannot do that sends the
/// file anew. Redirects are followed, from https to https only. A proxy is used as curl's environment variables say.
///
/// A file that is there already is left alone: its own SHA-256 is returned. The folder must exist.
/// Errors: Unsupported without libcurl; IoError, naming url and path, for a host that is not reached, an answer that is not
/// the file, a wrong SHA-256 (also of the file that is there already), `most_bytes`, a disk that is full, another process
/// that downloads the same file, and when `progress` said stop. A wrong file is not kept.
std::string download(const std::string& url, const std::string& path, const std::string& sha256 = "",
                     const DownloadOptions& options = {});

}  // namespace tessera
