// C++ functions without a counter: they throw at once, or end the process.
#include <cstdio>
#include <cstdlib>

static void refuse() {
  std::puts("refuse");
  throw 7;
}

[[noreturn]] static void stop(int code) {
  std::puts("stop");
  std::exit(code);
}

struct Parser {
  int letter;
  int parse() {
    if (letter == 'r')
      refuse();
    if (letter == 's')
      stop(0);
    return letter;
  }
};

int main() {
  int letter = std::getchar();
  try {
    std::printf("%d\n", Parser{letter}.parse());
  } catch (int number) {
    std::printf("caught %d\n", number);
  }
  return 0;
}
