/* sqlite: statements on an empty database in memory, with limits of time and size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

#define STEPS 20
#define INSTRUCTIONS 1000

static int stop(void *left) { return --*(int *)left < 0; }

static int row(void *data, int columns, char **values, char **names) {
  (void)data, (void)columns, (void)values, (void)names;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sqlite3 *database;
  char *text = malloc(size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = 0;
  if (sqlite3_open(":memory:", &database) == SQLITE_OK) {
    int left = STEPS;
    sqlite3_progress_handler(database, INSTRUCTIONS, stop, &left);
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 100000);
    sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_exec(database, text, row, NULL, NULL);
  }
  sqlite3_close(database);
  free(text);
  return 0;
}
