#include "tessera/datasets/download.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <atomic>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/sha256.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/datasets/http_server.h"

namespace tessera {
namespace {

using test::file_answer;
using test::http;
using test::HttpServer;
using test::Request;

/// A megabyte in which no two places look alike.
std::string content() {
  std::string out(1 << 20, '\0');
  uint32_t state = 1;
  for (char& c : out) {
    state = state * 1664525 + 1013904223;
    c = char(state >> 24);
  }
  return out;
}

class Download : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_download()) GTEST_SKIP() << "this build has no libcurl";
  }
  TemporaryFolder folder_;
  const std::string whole_ = content(), sha_ = sha256(whole_), path_ = folder_ / "file.bin";
  const DownloadOptions once_{.tries = 1}, quick_{.tries = 3, .wait_seconds = 0.01};
};

TEST_F(Download, AWholeFile) {
  HttpServer server([&](const Request& r) { return file_answer(r, whole_, "\"a\""); });
  uint64_t last = 0, total = 0;
  DownloadOptions options;
  options.progress = [&](uint64_t received, uint64_t all) {
    EXPECT_GE(received, last);
    last = received;
    total = all;
    return true;
  };
  EXPECT_EQ(download(server.url() + "/a/file.bin", path_, sha_, options), sha_);
  EXPECT_EQ(read_file(path_), whole_);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"file.bin"});
  EXPECT_EQ(last, whole_.size());
  EXPECT_EQ(total, whole_.size());
  ASSERT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(server.requests()[0].path, "/a/file.bin");
  EXPECT_EQ(download(server.url() + "/a/file.bin", path_), sha_) << "it is there";
  EXPECT_EQ(server.requests().size(), 1u) << "and not asked for again";
}

TEST_F(Download, AnEmptyFile) {
  HttpServer server([](const Request&) { return http("200 OK", "", ""); });
  EXPECT_EQ(download(server.url() + "/f", path_), sha256(""));
  EXPECT_EQ(read_file(path_), "");
}

// H37: cut at 0 %, 50 % and 99 %, then a new start.
TEST_F(Download, GoesOnWhereItStopped) {
  for (const size_t cut : {size_t{0}, whole_.size() / 2, whole_.size() * 99 / 100}) {
    for (const bool known : {true, false}) {
      SCOPED_TRACE(std::to_string(cut) + (known ? " with checksum" : " without"));
      std::filesystem::remove(path_);
      std::atomic<bool> first = true;
      HttpServer server([&](const Request& r) {
        if (!first) return file_answer(r, whole_, "\"v1\"");
        return cut == 0 ? http("200 OK", "ETag: \"v1\"\r\n", "", long(whole_.size()))
                        : file_answer(r, whole_, "\"v1\"", cut);
      });
      const std::string url = server.url() + "/file.bin", sha = known ? sha_ : "";
      const std::string error = error_of<IoError>([&] { download(url, path_, sha, once_); });
      EXPECT_TRUE(error.starts_with(path_ + ": cannot be downloaded from " + url + ": ")) << error;
      EXPECT_FALSE(file_exists(path_)) << "nothing stands under the final name";
      if (cut > 0) {
        EXPECT_TRUE(error.ends_with(" after " + std::to_string(cut) + " bytes; the next call goes on from there")) << error;
        EXPECT_EQ(folder_.names(), (std::vector<std::string>{"file.bin.part", "file.bin.part.from"}));
      }
      first = false;
      EXPECT_EQ(download(url, path_, sha, once_), sha_);
      EXPECT_EQ(read_file(path_), whole_);
      EXPECT_EQ(folder_.names(), std::vector<std::string>{"file.bin"});
      EXPECT_EQ(server.requests().back().range, cut == 0 ? "" : "bytes=" + std::to_string(cut) + "-");
      EXPECT_EQ(server.requests().back().if_range, cut == 0 ? "" : "\"v1\"");
    }
  }
}

TEST_F(Download, TriesAgainByItself) {
  std::atomic<int> calls = 0;
  HttpServer server([&](const Request& r) {
    const int call = calls++;
    if (call == 0) return http("503 Service Unavailable", "", "busy");
    if (call < 8) return file_answer(r, whole_, "\"v1\"", whole_.size() / 8);  // more often than `tries`: each brings bytes
    return file_answer(r, whole_, "\"v1\"");
  });
  EXPECT_EQ(download(server.url() + "/f", path_, sha_, quick_), sha_);
  EXPECT_EQ(read_file(path_), whole_);
}

TEST_F(Download, GivesUpWhenNothingComes) {
  HttpServer server([](const Request&) { return http("503 Service Unavailable", "", "busy"); });
  EXPECT_EQ(error_of<IoError>([&] { download(server.url() + "/f", path_, sha_, quick_); }),
            path_ + ": cannot be downloaded from " + server.url() + "/f: the server answers 503");
  EXPECT_EQ(server.requests().size(), 3u);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{});
}

TEST_F(Download, ANewVersionIsNotSplicedToTheOld) {
  std::string old = whole_;
  old[5] ^= 1;
  std::atomic<bool> first = true;
  HttpServer server(
      [&](const Request& r) { return first ? file_answer(r, old, "\"old\"", 1000) : file_answer(r, whole_, "\"new\""); });
  EXPECT_NE(error_of<IoError>([&] { download(server.url() + "/f", path_, "", once_); }), "no error");
  first = false;
  EXPECT_EQ(download(server.url() + "/f", path_, "", once_), sha_);
}

TEST_F(Download, AServerWithoutRangesSendsAllAnew) {
  std::atomic<bool> first = true;
  HttpServer server([&](const Request&) {
    return http("200 OK", "ETag: \"v1\"\r\n", first ? whole_.substr(0, 5000) : whole_, long(whole_.size()));
  });
  EXPECT_NE(error_of<IoError>([&] { download(server.url() + "/f", path_, sha_, once_); }), "no error");
  first = false;
  EXPECT_EQ(download(server.url() + "/f", path_, sha_, once_), sha_);
  EXPECT_EQ(read_file(path_), whole_);
}

TEST_F(Download, WithoutAMarkOrChecksumItBeginsAnew) {
  std::atomic<bool> first = true;
  HttpServer server([&](const Request& r) { return file_answer(r, whole_, "", first ? 5000 : 0); });
  EXPECT_NE(error_of<IoError>([&] { download(server.url() + "/f", path_, "", once_); }), "no error");
  first = false;
  EXPECT_EQ(download(server.url() + "/f", path_, "", once_), sha_);
  EXPECT_EQ(server.requests().back().range, "");
}

TEST_F(Download, AnAnswerFromAnotherPlaceIsNotTaken) {
  put(path_ + ".part", whole_.substr(0, 100));
  std::atomic<int> calls = 0;
  HttpServer server([&](const Request& r) {
    if (calls++ > 0) return file_answer(r, whole_, "\"v1\"");
    return http("206 Partial Content", "Content-Range: bytes 50-1048575/1048576\r\n", whole_.substr(50));
  });
  EXPECT_EQ(download(server.url() + "/f", path_, sha_, quick_), sha_);
  EXPECT_EQ(read_file(path_), whole_);
}

TEST_F(Download, APartThatIsWholeAlready) {
  put(path_ + ".part", whole_);  // killed between the last byte and the new name
  HttpServer server([&](const Request& r) { return file_answer(r, whole_, "\"v1\""); });
  EXPECT_EQ(download(server.url() + "/f", path_, sha_, quick_), sha_);
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(read_file(path_), whole_);
}

TEST_F(Download, AWrongChecksumIsNotKept) {
  HttpServer server([&](const Request& r) { return file_answer(r, "something else", "\"v1\""); });
  const std::string url = server.url() + "/f";
  EXPECT_EQ(error_of<IoError>([&] { download(url, path_, sha_, quick_); }),
            path_ + ": what " + url + " sends has the sha256 " + sha256("something else") + " but " + sha_ +
                " was expected (14 bytes); nothing was kept");
  EXPECT_EQ(folder_.names(), std::vector<std::string>{});
  put(path_, "something else");
  EXPECT_EQ(error_of<IoError>([&] { download(url, path_, sha_, quick_); }),
            path_ + ": has the sha256 " + sha256("something else") + " but " + sha_ +
                " was expected; remove it to download it anew from " + url);
}

TEST_F(Download, NotFoundIsAskedForOnce) {
  HttpServer server([](const Request&) { return http("404 Not Found", "", "<html>no such page</html>"); });
  EXPECT_EQ(error_of<IoError>([&] { download(server.url() + "/f", path_, "", quick_); }),
            path_ + ": cannot be downloaded from " + server.url() + "/f: the server answers 404");
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{});
}

TEST_F(Download, FollowsRedirects) {
  HttpServer server([&](const Request& r) {
    return r.path == "/old" ? http("302 Found", "Location: /new\r\nETag: \"of the redirect\"\r\n", "moved")
                            : file_answer(r, whole_, "\"v1\"");
  });
  EXPECT_EQ(download(server.url() + "/old", path_, sha_, quick_), sha_);
  EXPECT_EQ(server.requests().size(), 2u);
  HttpServer circle([](const Request& r) { return http("302 Found", "Location: " + r.path + "x\r\n", ""); });
  const std::string error = error_of<IoError>([&] { download(circle.url() + "/f", folder_ / "g", "", quick_); });
  EXPECT_NE(error.find("redirects"), std::string::npos) << error;
  HttpServer away([](const Request&) { return http("302 Found", "Location: file:///etc/passwd\r\n", ""); });
  EXPECT_NE(error_of<IoError>([&] { download(away.url() + "/f", folder_ / "g", "", quick_); }), "no error");
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"file.bin"});
}

TEST_F(Download, NobodyThere) {
  std::string url;
  {
    HttpServer closed([](const Request&) { return std::string(); });
    url = closed.url() + "/f";
  }
  const std::string error = error_of<IoError>([&] { download(url, path_, "", quick_); });
  EXPECT_TRUE(error.starts_with(path_ + ": cannot be downloaded from " + url + ": ")) << error;
  EXPECT_EQ(folder_.names(), std::vector<std::string>{});
}

TEST_F(Download, AServerThatSendsWithoutEnd) {
  HttpServer server([&](const Request&) { return "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + whole_; });
  EXPECT_EQ(error_of<IoError>([&] { download(server.url() + "/f", path_, "", {.tries = 1, .most_bytes = 1000}); }),
            path_ + ": " + server.url() + "/f sends more than 1000 bytes");
  EXPECT_EQ(folder_.names(), std::vector<std::string>{});
}

TEST_F(Download, StopsWhenAsked) {
  HttpServer server([&](const Request& r) { return file_answer(r, whole_, "\"v1\""); });
  DownloadOptions options;
  options.progress = [](uint64_t received, uint64_t) { return received == 0; };
  const std::string url = server.url() + "/f";
  EXPECT_EQ(error_of<IoError>([&] { download(url, path_, sha_, options); }),
            path_ + ": the download from " + url + " was stopped; the next call goes on from there");
  EXPECT_FALSE(file_exists(path_));
  EXPECT_EQ(download(url, path_, sha_), sha_);
}

TEST_F(Download, OneProcessAtATime) {
  const int other = ::open((path_ + ".part").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_EQ(error_of<IoError>([&] { download("http://127.0.0.1:9/f", path_); }),
            path_ + ": is being downloaded by another process");
  ::close(other);
}

TEST_F(Download, OnlyTheWeb) {
  EXPECT_EQ(error_of<InvalidArgument>([&] { download("file:///etc/passwd", path_); }),
            "download: url is 'file:///etc/passwd' but needs to be http or https");
  EXPECT_EQ(error_of<IoError>([&] { download("http://127.0.0.1:9/f", folder_ / "no/f"); }),
            (folder_ / "no/f.part") + ": cannot be written: No such file or directory");
}

}  // namespace
}  // namespace tessera
