/* Ways to go on in a program: each case prints what it has done. */
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define APART __attribute__((noinline))

static thread_local unsigned sum; // threads would lose each other's values
static void note(const char *what, long value) {
  std::printf("%s %ld\n", what, value);
  sum = sum * 31 + (unsigned)value;
}

struct Guard {
  const char *name;
  ~Guard() { note(name, 1); }
};

APART static int deep(int n) {
  Guard guard{"left"};
  if (n == 0) throw std::runtime_error("thrown");
  if (n == 1) throw n;
  return deep(n - 2) + 1;
}

APART static int caught(int n) {
  try {
    return deep(n);
  } catch (const std::runtime_error &error) {
    return (int)std::strlen(error.what());
  } catch (int value) {
    return -value;
  }
}

static std::jmp_buf place;
APART static void jumps(int n) {
  if (n > 3) std::longjmp(place, n);
  jumps(n + 1);
}
APART static int returns_twice() {
  volatile int times = 0;
  int value = setjmp(place);
  if (times++ < 3) jumps(times);
  return value * 10 + times;
}

APART static long chosen(int n, long x) {
  switch (n) {
    case 0: return x + 1;
    case 1: return x * 3;
    case 2: x ^= 77; /* falls through */
    case 3: return x - 5;
    case 4: return x << 2;
    case 5: return x / 7;
    case 6: return x % 11;
    case 7: x += 2; /* falls through */
    case 8: return -x;
    case 9: return ~x;
    case 12: return x | 1;
  }
  return 0;
}

APART static int threaded(const char *code) {
  static const void *const places[] = {&&add, &&twice, &&less, &&end};
  int value = 1;
#define NEXT goto *places[*code++ & 3]
  NEXT;
add:
  value += 3;
  NEXT;
twice:
  value *= 2;
  NEXT;
less:
  value--;
  NEXT;
end:
  return value;
}

APART static int by_distance(const char *code) {
  static const int distances[] = {0, (int)((char *)&&second - (char *)&&first), (int)((char *)&&third - (char *)&&first)};
  int value = 1;
again:
  if (!*code) return value;
  goto *((char *)&&first + distances[(*code++ & 255) % 3]);
first:
  value += 5;
  goto again;
second:
  value *= 3;
  goto again;
third:
  value ^= 6;
  goto again;
}

struct Shape {
  virtual ~Shape() = default;
  virtual long area(long n) const { return n; }
};
struct Square : Shape {
  long area(long n) const override { return n * n; }
};
APART static long area(const Shape *shape, long n) { return shape->area(n + 1); }
typedef long function(long);
APART static long plus(long n) { return n + 1; }
APART static long times(long n) { return n * 2; }
APART static long tail(function *to, long n) { return to(n); }

APART static unsigned __int128 wide(uint64_t a, uint64_t b) {
  unsigned __int128 x = a, y = b;
  for (int i = 0; i < 9; i++) {
    x = x * 3 + y;
    y = y << 5 | y >> 59;
    if (x < y) x -= y >> 1;
  }
  return x;
}

APART static double floats(double x, int n) {
  for (int i = 0; i < n; i++) x = x > 2 ? x / 3 : x != x ? 1 : x * 1.5 + i;
  return x;
}

APART static int total(int n, ...) {
  va_list list;
  va_start(list, n);
  int all = 0;
  while (n--) all += va_arg(list, int);
  va_end(list);
  return all;
}

static sigjmp_buf after;
static void on_fault(int) { siglongjmp(after, 1); }
APART static int faults(volatile int *at) {
  if (sigsetjmp(after, 1)) return 7;
  return *at;
}

APART static int compared(const char *a, const char *b, size_t n) {
  int bits = 0;
  for (size_t i = 0; i < n; i++) bits = bits * 2 + (a[i] > b[i]) - (a[i] == b[i] && i % 3 == 1);
  return bits;
}

APART static uint64_t hashed(const unsigned char *at, size_t n) {
  uint64_t h = 14695981039346656037u;
  while (n--) {
    h ^= *at++;
    h *= 1099511628211u;
    if (h & 1) h = h << 7 | h >> 57;
    else if (h & 2) h += 12345;
  }
  return h;
}

APART static int sorted(std::vector<int> v) {
  int moves = 0;
  for (size_t i = 1; i < v.size(); i++)
    for (size_t k = i; k > 0 && v[k - 1] > v[k]; k--, moves++) std::swap(v[k - 1], v[k]);
  return moves * 1000 + v[v.size() / 2];
}

int main(int argc, char **argv) {
  std::string text = argc > 1 ? argv[1] : "";
  char line[256] = "";
  if (std::fgets(line, sizeof line, stdin)) text += line;
  std::signal(SIGSEGV, on_fault);
  for (int n = 0; n < 6; n++) note("caught", caught(n));
  note("twice", returns_twice());
  for (size_t i = 0; i < text.size(); i++) note("chosen", chosen(text[i] & 15, text[i] * 1000L));
  note("threaded", threaded("aabbccab\3") + threaded((text + "\3").c_str()));
  note("distance", by_distance(text.c_str()));
  Square square;
  Shape shape;
  note("area", area(&square, 4) + area(&shape, 5) + tail(plus, 6) + tail(times, 7));
  note("wide", (long)(wide(text.size() + 1, 0x123456789abcdef) % 1000003));
  note("floats", (long)(floats(1.25, 20) * 1000));
  note("total", total(5, 1, 2, 3, 4, 5));
  note("faults", faults(nullptr) + faults(nullptr));
  note("compared", compared("hello world", "hellp wor", 9));
  note("hashed", (long)(hashed((const unsigned char *)text.data(), text.size()) & 0xffffff));
  note("sorted", sorted({5, 2, 9, 1, 7, 7, 3, 8, 0, 4}));
  std::vector<std::thread> threads;
  long results[4] = {};
  for (int i = 0; i < 4; i++)
    threads.emplace_back([i, &results] { results[i] = caught(i) + chosen(i, 40) + sorted({3, 1, i}); });
  for (auto &thread : threads) thread.join();
  for (long result : results) note("thread", result);
  std::printf("%u\n", sum);
  return 0;
}
