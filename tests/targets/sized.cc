// One bug, whose size is the input's, under names that compilers and symbolizers spell in many ways.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#define ALONE __attribute__((noinline))

namespace {

template <class T> struct Store {
  std::vector<T> values = std::vector<T>(8);
  ALONE void fill(const unsigned char *data, size_t size) {
    memcpy(values.data(), data, size);
  }
};

struct Reader {
  ALONE static void nested(Store<std::vector<std::string>> &, const unsigned char *data, size_t size, int depth) {
    if (depth > 0) return nested_again(data, size, depth - 1);
    Store<unsigned char>().fill(data, size);
  }
  ALONE static void nested_again(const unsigned char *data, size_t size, int depth) {
    Store<std::vector<std::string>> store;
    nested(store, data, size, depth);
  }
};

}  // namespace

int main() {
  unsigned char data[256];
  size_t size = fread(data, 1, sizeof data, stdin);
  std::vector<int> order = {2, 1};
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    if (size > 0 && data[0] == 'w') Reader::nested_again(data, size, 1 + (data[1] & 3));
    return a < b;
  });
  return 0;
}
