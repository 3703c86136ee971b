// Keywords in containers of the standard library, and a text that has to have some of them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

static const std::map<std::string, int> operations{{"addition", 1}, {"subtract", 2}, {"multiply", 3}};
static const std::vector<std::string> units{"kilogram", "furlong"};
static std::map<std::string, int> added;

static const std::unordered_map<std::string, int> &colors() {
  static const std::unordered_map<std::string, int> colors{{"vermilion", 1}, {"turquoise", 2}, {"chartreuse", 3}};
  return colors;
}

struct Additions {
  Additions() {
    added["keyed-one"] = 1;
    added.emplace("placed-two", 2);
    added.insert({"inserted-three", 3});
    // Not a key, and a message for people.
    std::string note = "stays-outside", message[3] = {"no such color", "no such unit", "no such operation"};
    if (std::getenv(note.c_str())) abort();
  }
} additions;

static std::string next(const std::string &text, size_t &from) {
  size_t end = text.find(' ', from);
  std::string word = text.substr(from, end == text.npos ? end : end - from);
  from = end == text.npos ? text.size() : end + 1;
  return word;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text((const char *)data, size);
  size_t from = 0;
  auto operation = operations.find(next(text, from));
  if (operation == operations.end()) return 0;
  if (!colors().count(next(text, from))) return 1;
  if (added.find(next(text, from)) == added.end()) return 2;
  std::string unit = next(text, from);
  for (const std::string &known : units)
    if (unit == known) abort();
  return 3;
}
