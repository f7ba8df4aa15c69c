#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

/// A web server on 127.0.0.1 for tests: one request a connection, answers as a function.
namespace tessera::test {

struct Request {
  std::string path;
  std::string range, if_range;  // values of the headers; empty without
  /// The first byte asked for.
  size_t from() const { return range.starts_with("bytes=") ? size_t(std::strtoull(range.c_str() + 6, nullptr, 10)) : 0; }
};

class HttpServer {
 public:
  using Answer = std::function<std::string(const Request&)>;
  /// At the end of an answer: the connection then stays open until the other side closes it.
  static constexpr const char* kHold = "<hold>";

  /// `answer` gives the bytes that are sent, headers and all, before the connection is closed.
  explicit HttpServer(Answer answer)
      : answer_(std::move(answer)), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_, 16) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0 || ::pipe(stop_) != 0)
      std::abort();
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    // Nothing of this may go through a proxy.
    ::setenv("no_proxy", "127.0.0.1", 1);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpServer() {
    ::close(stop_[1]);
    thread_.join();
    ::close(stop_[0]);
    ::close(socket_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const std::string& url() const { return url_; }
  std::vector<Request> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    for (;;) {
      pollfd events[2] = {{socket_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
      ::poll(events, 2, -1);
      if (events[1].revents != 0) return;
      const int client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) continue;
      std::string text;
      char buffer[4096];
      while (text.find("\r\n\r\n") == std::string::npos) {
        const ssize_t n = ::read(client, buffer, sizeof buffer);
        if (n <= 0) break;
        text.append(buffer, size_t(n));
      }
      Request request{text.substr(4, text.find(' ', 4) - 4), header(text, "Range: "), header(text, "If-Range: ")};
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      std::string answer = answer_(request);
      const bool hold = answer.ends_with(kHold);
      if (hold) answer.resize(answer.size() - std::string(kHold).size());
      for (size_t at = 0; at < answer.size();) {
        const ssize_t n = ::send(client, answer.data() + at, answer.size() - at, MSG_NOSIGNAL);
        if (n <= 0) break;
        at += size_t(n);
      }
      if (!hold) ::shutdown(client, SHUT_WR);
      while (::read(client, buffer, sizeof buffer) > 0) {
      }
      ::close(client);
    }
  }
  static std::string header(const std::string& text, const std::string& name) {
    const size_t at = text.find("\r\n" + name);
    if (at == std::string::npos) return {};
    const size_t begin = at + 2 + name.size();
    return text.substr(begin, text.find('\r', begin) - begin);
  }

  Answer answer_;
  int socket_, stop_[2] = {-1, -1};
  std::string url_;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<Request> requests_;
};

/// "HTTP/1.1 STATUS", headers, an empty line, the body; Content-Length is that of the body unless `length` says otherwise.
inline std::string http(const std::string& status, const std::string& headers, const std::string& body, long length = -1) {
  return "HTTP/1.1 " + status + "\r\n" + headers +
         "Content-Length: " + std::to_string(length < 0 ? long(body.size()) : length) + "\r\nConnection: close\r\n\r\n" +
         body;
}

/// A server with one file and its ETag that understands ranges; `cut`: bytes after which it breaks off, 0 for never.
inline std::string file_answer(const Request& request, const std::string& content, const std::string& etag, size_t cut = 0) {
  const size_t from = request.if_range.empty() || request.if_range == etag ? request.from() : 0;
  if (from >= content.size() && from > 0)
    return http("416 Range Not Satisfiable", "Content-Range: bytes */" + std::to_string(content.size()) + "\r\n", "");
  const std::string rest = content.substr(from), sent = cut == 0 ? rest : rest.substr(0, cut);
  const std::string mark = etag.empty() ? "" : "ETag: " + etag + "\r\n";
  if (from == 0) return http("200 OK", mark, sent, long(rest.size()));
  return http("206 Partial Content",
              mark + "Content-Range: bytes " + std::to_string(from) + "-" + std::to_string(content.size() - 1) + "/" +
                  std::to_string(content.size()) + "\r\n",
              sent, long(rest.size()));
}

}  // namespace tessera::test
