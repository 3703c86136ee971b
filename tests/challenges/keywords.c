/* Keywords that no library function compares: byte by byte and folded, by a function of the program's own, in a
 * sorted table, and by a state machine. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static int differs(const uint8_t *a, const char *b, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (a[i] != (uint8_t)b[i]) return a[i] < (uint8_t)b[i] ? -1 : 1;
  return 0;
}

static const char *const table[] = {"accept", "binary", "cancel", "domain", "escape", "finish", "gather", "handle",
                                    "import", "jungle", "kernel", "lambda", "method", "notify", "option", "period"};

static const char *look_up(const uint8_t *word) {
  int first = 0, last = 15;
  while (first <= last) {
    int middle = (first + last) / 2, order = differs(word, table[middle], 6);
    if (!order) return table[middle];
    if (order < 0)
      last = middle - 1;
    else
      first = middle + 1;
  }
  return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char folded[] = "waypointqueue";
  if (size < 44) return 0;
  for (int i = 0; i < 13; i++)
    if (tolower(data[i]) != folded[i]) return 0;
  if (!look_up(data + 14)) return 0;
  int state = 0;
  for (int i = 24; i < 36; i++) switch (state) {
      case 0: state = data[i] == '<' ? 1 : 0; break;
      case 1: state = data[i] == '!' ? 2 : 0; break;
      case 2: state = data[i] == '[' ? 3 : 0; break;
      case 3: state = data[i] == '#' ? 4 : 0; break;
      case 4: state = data[i] == ']' ? 5 : 0; break;
      case 5: abort();
    }
  return 0;
}
