#include "cli/say.hpp"

#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

namespace tidegate {
namespace {

// Not through the middle of a character of UTF-8.
std::string cut(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

std::size_t width() {
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? size.ws_col - 1U : 79U;
}

}  // namespace

void say(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stderr) == text.size()) std::fflush(stderr);
}

void say_line(const std::string& text) {
  if (isatty(STDERR_FILENO) != 0) say("\r\033[K" + cut(text, width()));
}

}  // namespace tidegate
