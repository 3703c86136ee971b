// std::string compared with ==, parts of the input.
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text((const char *)data, size);
  auto at = text.find('=');
  if (at == std::string::npos) return 0;
  if (text.substr(0, at) != "configuration") return 0;
  if (text.substr(at + 1) == "override-everything") std::abort();
  return 0;
}
