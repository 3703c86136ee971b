// All that a function can have when it starts the fork server: what was set before is used and changed later.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

struct Pair {
  int a, b;
};
struct Loud {
  const char *name;
  ~Loud() { printf(" end of %s\n", name); }
};

static void __attribute__((noinline)) change(Pair *pair) { pair->a++; }

#ifdef HELPER
static int __attribute__((noinline)) serve(int argc, char **argv)
#else
int main(int argc, char **argv)
#endif
{
  Loud first{"first"};
  Pair pair = {3, 4};
  change(&pair);
  int count = 5, *counted = &count;
  unsigned short small = 7;
  double scale = 1.5;
  long double wide = 2.25;
  const char *word = "boom";
  char name[16] = "name-";
  std::string text = "before ";
  for (int i = 0; i < 3; i++) small += i;
#ifdef SOMETIMES
  if (argc > 1) __AFL_INIT();
#else
  __AFL_INIT();
#endif
  Loud second{"second"};
  char input[16] = {0};
  FILE *file = fopen(argv[argc - 1], "r");
  if (!file) return 3;
  int n = (int)fread(input, 1, sizeof input - 1, file);
  fclose(file);
  count += n;
  small += *counted;
  scale *= small;
  wide += n;
  name[5] = input[0];
  change(&pair);
  text += input;
  printf("%d %d %g %Lg %s %d %d %s", count, small, scale, wide, name, pair.a, pair.b, text.c_str());
  try {
    if (!strcmp(input, word)) throw std::runtime_error(text);
  } catch (const std::exception &error) {
    printf(" caught %s", error.what());
  }
  for (int i = 0; i < n; i++) {
    Loud third{"third"};
    if (input[i] == 'o') break;
  }
  if (count == 0x777) return 9;
  return pair.a == 5 && small == 19 ? 0 : 4;
}

#ifdef HELPER
int main(int argc, char **argv) { return serve(argc, argv); }
#endif
