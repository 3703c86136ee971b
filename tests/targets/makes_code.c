/* Calculates by machine code that it makes of its input; -DREFUSED: forbids itself and what it starts to make any, as
 * a policy of the system would, and starts the program that its arguments name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

#ifdef REFUSED
int main(int argc, char **argv) {
  (void)argc;
  if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)) return 77;
  execv(argv[1], argv + 1);
  return 78;
}
#else
int main(void) {
  unsigned char input[64];
  int n = (int)fread(input, 1, sizeof input, stdin), sum = 0;
  unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 3;
  for (int i = 0; i < n; i++) {
    /* mov eax, edi; add eax, the byte; ret */
    unsigned char bytes[] = {0x89, 0xf8, 0x83, 0xc0, input[i], 0xc3};
    memcpy(code, bytes, sizeof bytes);
    sum = ((int (*)(int))code)(sum);
  }
  if (n > 3 && input[0] == 'J' && input[1] == 'I' && sum == 'J' + 'I' + 'T' + 'x') abort();
  printf("%d\n", sum);
  munmap(code, 4096);
  return 0;
}
#endif
