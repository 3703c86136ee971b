/* Runs its code in memory that belongs to no file, as a packed program does. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static inline long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

__attribute__((section("payload"), noinline)) static void unpacked(void) {
  char text[4] = {0};
  call(0, 0, (long)text, 3);
  if (text[0] != 'a') call(60, 1, 0, 0);
  if (text[1] != 'b') call(60, 2, 0, 0);
  if (text[2] == 'c') *(volatile int *)0 = 1;
  call(60, 3, 0, 0);
}

extern const char __start_payload[], __stop_payload[];

int main(void) {
  size_t size = (size_t)(__stop_payload - __start_payload);
  void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (size > 4096 || code == MAP_FAILED) return 9;
  memcpy(code, __start_payload, size);
  mprotect(code, 4096, PROT_READ | PROT_EXEC);
  ((void (*)(void))((char *)code + ((char *)unpacked - __start_payload)))();
  return 0;
}
