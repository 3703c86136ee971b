// What a second version of a function has to do as well as the first.
#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

static jmp_buf back;
static std::string said;

struct Large {
  int parts[40];
};

__attribute__((noinline)) static bool byValue(Large large, int wanted) { return large.parts[3] == wanted; }

__attribute__((noinline)) Large returned(int factor) {
  Large large;
  for (int i = 0; i < 40; i++) large.parts[i] = i * factor;
  return large;
}

int recursive(int n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }

int variadic(int count, ...) {
  va_list all;
  va_start(all, count);
  int sum = 0;
  for (int i = 0; i < count; i++) {
    int next = va_arg(all, int);
    double half = va_arg(all, double);
    if (half * 2 == next) sum += next;
  }
  va_end(all);
  return sum;
}

[[noreturn]] __attribute__((noinline)) static void quit(const char *form, ...) {
  va_list all;
  va_start(all, form);
  if (form[0] == 'q') std::vprintf(form + 1, all);
  std::exit(0);
}

struct Noisy {
  ~Noisy() { said += " unwound"; }
};

void throwing(const std::string &text) {
  Noisy noisy;
  if (text == "boom") throw std::runtime_error("x");
  said += " calm";
}

int jumping(int letter) {
  if (setjmp(back)) return said += " back", 1;
  if (letter == 'o') longjmp(back, 1);
  return 0;
}

int computed(int n) {
  static void *places[] = {&&even, &&odd};
  if (n == 0x777) return 3;
  goto *places[n & 1];
even:
  return 2;
odd:
  if (n == 0x888) return 4;
  return 1;
}

template <class T> __attribute__((always_inline)) inline T larger(T a, T b) { return a > b ? a : b; }

int main(int, char **arguments) {
  char text[16] = "";
  FILE *file = std::fopen(arguments[1], "r");
  if (!file || std::fread(text, 1, 15, file) < 4) return 1;
  std::fclose(file);
  try {
    throwing(text);
  } catch (std::runtime_error &) {
    said += " caught";
  }
  said += " " + std::to_string(byValue(returned(text[0]), 3 * text[0]));
  said += " " + std::to_string(recursive(text[1] % 16));
  said += " " + std::to_string(variadic(3, 1, 0.5, 2, 1.0, text[2], text[2] / 2.0));
  said += " " + std::to_string(jumping(text[1])) + " " + std::to_string(computed(text[2]));
  said += " " + std::to_string(larger(text[0] * 1.5, 3.25));
  std::thread other([&] { said += text[3] == 'm' ? " m" : " other"; });
  other.join();
  std::puts(said.c_str());
  quit("quit %d %.1f %s\n", 7, 1.5, text);
}
