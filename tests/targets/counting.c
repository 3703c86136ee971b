/* Many small finds: every value of the first byte takes a way of its own.
 *   counting many [FILE] */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define WAY(n) case n: puts("way " #n); break;
#define WAYS(n) WAY(n) WAY(n + 1) WAY(n + 2) WAY(n + 3) WAY(n + 4) WAY(n + 5) WAY(n + 6) WAY(n + 7)

int main(int argc, char **argv) {
  unsigned char data[64];
  int input = argc > 2 ? open(argv[2], O_RDONLY) : 0;
  if (read(input, data, sizeof data) < 1) return 0;
  switch (data[0]) {
    WAYS(0) WAYS(8) WAYS(16) WAYS(24) WAYS(32) WAYS(40) WAYS(48) WAYS(56)
    WAYS(64) WAYS(72) WAYS(80) WAYS(88) WAYS(96) WAYS(104) WAYS(112) WAYS(120)
    WAYS(128) WAYS(136) WAYS(144) WAYS(152) WAYS(160) WAYS(168) WAYS(176) WAYS(184)
  }
  return 0;
}
