#include "tessera/core/error.h"

#include <cstdio>

namespace tessera {

std::string to_text(std::string_view value) { return std::string(value); }
std::string to_text(const char* value) { return value; }
std::string to_text(const std::string& value) { return value; }
std::string to_text(bool value) { return value ? "true" : "false"; }

std::string to_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string format_message(const char* text, const std::string* values, int count) {
  std::string out;
  int next = 0;
  for (const char* c = text; *c != '\0'; ++c) {
    if (c[0] == '{' && c[1] == '}' && next < count) {
      out += values[next++];
      ++c;
    } else {
      out += *c;
    }
  }
  return out;
}

}  // namespace tessera
