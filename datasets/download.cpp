// A file from the net. The bytes go to NAME.part; NAME appears when they are whole, checked and on the disk. A broken
// transfer asks for the rest (Range) under the condition that the file is still the one of before (If-Range with its ETag
// or date): the server answers 206 with the rest, or 200 with the whole new file, and a splice of two versions cannot
// happen. Without such a mark the rest is only asked for when the checksum is known, which would tell.

#include "tessera/datasets/download.h"

#include "tessera/core/error.h"

#ifdef TESSERA_CURL

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "tessera/core/io/file.h"
#include "tessera/core/io/sha256.h"
#include "tessera/core/version.h"

namespace tessera {
namespace {

struct PartFile {
  std::string path;
  int descriptor = -1;
  uint64_t size = 0;

  explicit PartFile(const std::string& target) : path(target + ".part") {
    for (;;) {
      descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
      check<IoError>(descriptor >= 0, "{}: cannot be written: {}", path, std::strerror(errno));
      if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        ::close(descriptor);
        fail<IoError>("{}: is being downloaded by another process", target);
      }
      // The process that had the lock may have renamed the file since.
      struct stat by_name, by_number;
      const bool same = ::stat(path.c_str(), &by_name) == 0 && ::fstat(descriptor, &by_number) == 0 &&
                        by_name.st_ino == by_number.st_ino && by_name.st_dev == by_number.st_dev;
      if (same) {
        size = uint64_t(by_number.st_size);
        return;
      }
      ::close(descriptor);
    }
  }
  ~PartFile() { ::close(descriptor); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  bool append(const char* bytes, size_t count) {
    while (count > 0) {
      const ssize_t put = ::pwrite(descriptor, bytes, count, off_t(size));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return false;
      bytes += put;
      count -= size_t(put);
      size += uint64_t(put);
    }
    return true;
  }
  bool clear() {
    size = 0;
    return ::ftruncate(descriptor, 0) == 0;
  }
  void remove() const {
    ::unlink(path.c_str());
    ::unlink((path + ".from").c_str());
  }
};

/// One request and what the server says to it.
struct Transfer {
  CURL* handle;
  PartFile& part;
  const std::string& url;
  const DownloadOptions& options;

  long status = 0;
  uint64_t from = 0, total = 0;  // of a Content-Range
  std::string etag, date;
  bool begun = false, stopped = false, too_much = false, other_place = false;
  int system_error = 0;

  void header(std::string_view line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
    if (line.starts_with("HTTP/")) {  // a redirect's answer comes before the last one
      etag.clear();
      date.clear();
      from = total = 0;
      return;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    std::string name(line.substr(0, colon));
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    if (name == "etag" && value.starts_with('"')) etag = value;  // a weak one does not promise the same bytes
    if (name == "last-modified") date = value;
    if (name == "content-range") {
      unsigned long long first = 0, last = 0, all = 0;
      if (std::sscanf(std::string(value).c_str(), "bytes %llu-%llu/%llu", &first, &last, &all) >= 2) {
        from = first;
        total = all;
      }
    }
  }

  bool body(const char* bytes, size_t count) {
    if (!begun) {
      begun = true;
      curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
      if (status == 206) {
        other_place = from != part.size;
        if (other_place) return false;
      } else {
        if (!part.clear()) return set_system_error();
        const std::string& mark = etag.empty() ? date : etag;
        if (!mark.empty()) write_atomically(part.path + ".from", url + "\n" + mark + "\n");
      }
      curl_off_t length = -1;
      curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
      if (total == 0 && length > 0) total = part.size + uint64_t(length);
    }
    too_much = part.size + count > options.most_bytes || total > options.most_bytes;
    if (too_much) return false;
    return part.append(bytes, count) || set_system_error();
  }

  bool set_system_error() {
    system_error = errno;
    return false;
  }

  // libcurl's callbacks; no exception may pass through it.
  static size_t on_header(char* bytes, size_t, size_t count, void* self) {
    static_cast<Transfer*>(self)->header({bytes, count});
    return count;
  }
  static size_t on_body(char* bytes, size_t, size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    try {
      return transfer.body(bytes, count) ? count : 0;
    } catch (const std::exception&) {
      transfer.system_error = EIO;
      return 0;
    }
  }
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto& transfer = *static_cast<Transfer*>(self);
    if (!transfer.options.progress) return 0;
    try {
      transfer.stopped = !transfer.options.progress(transfer.part.size, transfer.total);
    } catch (const std::exception&) {
      transfer.stopped = true;
    }
    return transfer.stopped ? 1 : 0;
  }
};

struct Easy {
  CURL* handle = curl_easy_init();
  curl_slist* headers = nullptr;
  ~Easy() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(handle);
  }
};

/// The mark of the file that a part belongs to; empty when there is none, or it came from elsewhere.
std::string mark_of(const PartFile& part, const std::string& url) {
  const std::string path = part.path + ".from";
  if (!file_exists(path)) return {};
  const std::string text = read_file(path, 1 << 16);
  const size_t line = text.find('\n');
  if (line == std::string::npos || text.substr(0, line) != url || text.back() != '\n') return {};
  const std::string mark = text.substr(line + 1, text.size() - line - 2);
  return mark.find('\n') == std::string::npos ? mark : std::string();
}

bool is_passing(CURLcode code, long status) {
  switch (code) {
    case CURLE_HTTP_RETURNED_ERROR: return status == 408 || status == 416 || status == 429 || status >= 500;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
  }
}

}  // namespace

bool can_download() { return true; }

std::string download(const std::string& url, const std::string& path, const std::string& sha256,
                     const DownloadOptions& options) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  check<InternalError>(started == CURLE_OK, "download: libcurl does not start: {}", curl_easy_strerror(started));
  check(url.starts_with("http://") || url.starts_with("https://"), "download: url is '{}' but needs to be http or https",
        printable(url));
  const auto check_existing = [&] {
    const std::string found = sha256_file(path);
    check<IoError>(sha256.empty() || found == sha256,
                   "{}: has the sha256 {} but {} was expected; remove it to download it anew from {}", path, found, sha256,
                   url);
    return found;
  };
  if (file_exists(path)) return check_existing();
  PartFile part(path);
  if (file_exists(path)) {  // another process was quicker
    part.remove();
    return check_existing();
  }

  const uint64_t here_before = part.size;
  uint64_t most = 0;
  bool reached = false;
  double wait = options.wait_seconds;
  for (int tries = 1;; ++tries) {
    Easy easy;
    check<InternalError>(easy.handle != nullptr, "download: libcurl gives no handle");
    Transfer transfer{.handle = easy.handle, .part = part, .url = url, .options = options};
    if (part.size > 0) {
      const std::string mark = mark_of(part, url);
      if (mark.empty() && sha256.empty()) {
        check<IoError>(part.clear(), "{}: cannot be written: {}", part.path, std::strerror(errno));
      } else {
        curl_easy_setopt(easy.handle, CURLOPT_RANGE, (std::to_string(part.size) + "-").c_str());
        if (!mark.empty()) easy.headers = curl_slist_append(nullptr, ("If-Range: " + mark).c_str());
      }
    }
    const char* protocols = url.starts_with("https") ? "https" : "http,https";
    curl_easy_setopt(easy.handle, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy.handle, CURLOPT_PROTOCOLS_STR, protocols);
    curl_easy_setopt(easy.handle, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    curl_easy_setopt(easy.handle, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy.handle, CURLOPT_MAXREDIRS, 10L);
    curl_easy_setopt(easy.handle, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(easy.handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy.handle, CURLOPT_HTTPHEADER, easy.headers);
    curl_easy_setopt(easy.handle, CURLOPT_USERAGENT, (std::string("tessera/") + version()).c_str());
    curl_easy_setopt(easy.handle, CURLOPT_CONNECTTIMEOUT_MS, long(1000 * options.stalled_seconds));
    curl_easy_setopt(easy.handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy.handle, CURLOPT_LOW_SPEED_TIME, std::max(1L, long(options.stalled_seconds)));
    curl_easy_setopt(easy.handle, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
    curl_easy_setopt(easy.handle, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(easy.handle, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
    curl_easy_setopt(easy.handle, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(easy.handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy.handle, CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
    curl_easy_setopt(easy.handle, CURLOPT_XFERINFODATA, &transfer);
    CURLcode code = curl_easy_perform(easy.handle);
    long status = 0;
    curl_easy_getinfo(easy.handle, CURLINFO_RESPONSE_CODE, &status);
    // A whole but empty answer brings no body.
    if (code == CURLE_OK && !transfer.begun && status == 200 && !part.clear()) code = CURLE_WRITE_ERROR;

    check<IoError>(!transfer.stopped, "{}: the download from {} was stopped; the next call goes on from there", path, url);
    check<IoError>(transfer.system_error == 0, "{}: cannot be written: {}", part.path, std::strerror(transfer.system_error));
    if (transfer.too_much) {
      part.remove();
      fail<IoError>("{}: {} sends more than {} bytes", path, url, options.most_bytes);
    }
    if (code == CURLE_OK && (status == 200 || status == 206)) break;

    // A range that the server does not have: the part is whole already, or of another file.
    if (transfer.other_place || status == 416) {
      if (status == 416 && !sha256.empty() && sha256_file(part.path) == sha256) break;
      check<IoError>(part.clear(), "{}: cannot be written: {}", part.path, std::strerror(errno));
    }
    reached = reached || status != 0;
    if (part.size > most) {
      most = part.size;
      tries = 1;
      wait = options.wait_seconds;
    }
    const bool passing = transfer.other_place || is_passing(code, status) || (reached && code == CURLE_COULDNT_CONNECT);
    if (passing && tries < options.tries) {
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
      wait *= 2;
      continue;
    }
    const std::string why = code == CURLE_HTTP_RETURNED_ERROR ? "the server answers " + std::to_string(status)
                            : code == CURLE_OK                ? "the server answers " + std::to_string(status)
                                                              : curl_easy_strerror(code);
    if (part.size == 0) part.remove();
    fail<IoError>("{}: cannot be downloaded from {}: {}{}", path, url, why,
                  part.size > 0 ? " after " + std::to_string(part.size) + " bytes; the next call goes on from there" : "");
  }

  check<IoError>(::fsync(part.descriptor) == 0, "{}: cannot be written: {}", part.path, std::strerror(errno));
  const std::string found = sha256_file(part.path);
  if (!sha256.empty() && found != sha256) {
    part.remove();
    fail<IoError>("{}: what {} sends has the sha256 {} but {} was expected ({} bytes{}); nothing was kept", path, url, found,
                  sha256, part.size, here_before > 0 ? ", in parts" : "");
  }
  check<IoError>(::rename(part.path.c_str(), path.c_str()) == 0, "{}: cannot be written: {}", path, std::strerror(errno));
  ::unlink((part.path + ".from").c_str());
  const size_t slash = path.rfind('/');
  const int folder =
      ::open(slash == std::string::npos ? "." : path.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return found;
}

}  // namespace tessera

#else

namespace tessera {

bool can_download() { return false; }

std::string download(const std::string& url, const std::string& path, const std::string&, const DownloadOptions&) {
  fail<Unsupported>("{}: this build cannot download (libcurl was missing); put what {} gives there by hand", path, url);
}

}  // namespace tessera

#endif
