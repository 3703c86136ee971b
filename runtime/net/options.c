#include "net/options.h"

#include <stdlib.h>
#include <string.h>

HIDDEN struct net_options ffuzz_net;

static const struct {
  const char *word;
  enum role role;
  enum protocol protocol;
} words[] = {
    {"tcp-client", ROLE_CLIENT, TCP}, {"udp-client", ROLE_CLIENT, UDP}, {"tcp", ROLE_SERVER, TCP},
    {"udp", ROLE_SERVER, UDP},        {"unix", ROLE_SERVER, UNIX},
};

HIDDEN void ffuzz_net_read_options(const char *text) {
  size_t length = strcspn(text, ":");
  const char *rest = text[length] ? text + length + 1 : "";
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strlen(words[i].word) != length || memcmp(words[i].word, text, length)) continue;
    ffuzz_net = (struct net_options){.role = words[i].role, .protocol = words[i].protocol};
    if (ffuzz_net.protocol != UNIX)
      ffuzz_net.port = atoi(rest);
    else
      strncpy(ffuzz_net.path, rest, sizeof ffuzz_net.path - 1);
    return;
  }
}
