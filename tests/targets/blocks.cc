// Code whose blocks are hard to find: a jump table with cases that fall through, labels as values,
// exceptions, and what templates of the library bring.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

__attribute__((noinline)) static int by_table(int c, int n) {
  switch (c) {
    case 0: n += 3; [[fallthrough]];
    case 1: n *= 7; [[fallthrough]];
    case 2: n ^= 0x55; break;
    case 3: return n;
    case 4: n = -n; [[fallthrough]];
    case 5: n++; break;
    case 6: printf("six %d\n", n); [[fallthrough]];
    case 7: n--; break;
    case 9: n = abs(n); break;
  }
  return n + 1;
}

__attribute__((noinline)) static long by_labels(const char *code) {
  static const void *const labels[] = {&&add, &&twice, &&minus, &&end};
  long value = 0;
#define NEXT goto *labels[(*code ? *code++ : 3) & 3]
  NEXT;
add:
  value++;
  NEXT;
twice:
  value *= 2;
  NEXT;
minus:
  value = -value;
  NEXT;
end:
  return value;
}

__attribute__((noinline)) static int by_exception(const std::string &text) {
  try {
    if (text.size() > 3) throw std::runtime_error(text);
    if (text.size() > 2) throw 7;
    return std::stoi(text);
  } catch (const std::runtime_error &error) {
    printf("caught %s\n", error.what());
  } catch (int number) {
    return number;
  } catch (...) {
    return -1;
  }
  return 1;
}

int main(int argc, char **argv) {
  std::string text(1024, 0);
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
  text.resize(file ? fread(&text[0], 1, text.size(), file) : 0);
  std::map<char, int> counts;
  for (char c : text) counts[c] += by_table(c & 15, c);
  for (auto &[c, n] : counts) printf("%d: %d\n", c, n);
  printf("%ld %d\n", by_labels(text.c_str()), by_exception(text.substr(0, 4)));
  if (text.size() > 6 && text.compare(0, 6, "SIGNAL") == 0) abort();
  return (int)counts.size() & 7;
}
