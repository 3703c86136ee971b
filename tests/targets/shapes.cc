// Bugs in C++: in a method of a template, on the stack, and an exception that nobody catches.
#include <cstdio>
#include <stdexcept>
#include <vector>

#define ALONE __attribute__((noinline))

namespace shapes {

template <class T> struct Area {
  std::vector<T> values = std::vector<T>(4);
  ALONE T last(size_t count) const { return values.data()[count]; }
};

ALONE int on_stack(int at) {
  volatile int sides[4] = {1, 2, 3, 4};
  return sides[at];
}

ALONE int parse(int letter) {
  if (letter == 'e') throw std::runtime_error("no such shape");
  return letter;
}

}  // namespace shapes

int main() {
  int letter = getchar(), number = getchar() & 3;
  if (letter == 't') return shapes::Area<int>().last(4 + number);
  if (letter == 's') return shapes::on_stack(4 + number);
  return shapes::parse(letter) == 7;
}
