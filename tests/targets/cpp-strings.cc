// std::string compared as a whole and in parts: short ones stand in the object, long ones elsewhere.
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text((const char *)data, size);
  int equal = 0;
  if (size < 6) return 0;
  if (text.compare(0, 3, "one") == 0) equal++;
  if (text.substr(0, 6) == "twenty") equal++;
  if (text.compare("a text") == 0) equal++;
  if (equal == 3) std::abort();
  return 0;
}
