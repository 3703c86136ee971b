/* A program without a C library, for several processors: reads its standard input, and crashes on "AB!". */
#if defined(__x86_64__)
static long call(long n, long a, const void *b, long c) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return r;
}
enum { READ = 0, EXIT = 60 };
#elif defined(__i386__)
static long call(long n, long a, const void *b, long c) {
  long r;
  __asm__ volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a), "c"(b), "d"(c) : "memory");
  return r;
}
enum { READ = 3, EXIT = 1 };
#elif defined(__aarch64__)
static long call(long n, long a, const void *b, long c) {
  register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = (long)b, x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}
enum { READ = 63, EXIT = 93 };
#elif defined(__arm__)
static long call(long n, long a, const void *b, long c) {
  register long r7 __asm__("r7") = n, r0 __asm__("r0") = a, r1 __asm__("r1") = (long)b, r2 __asm__("r2") = c;
  __asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) : "memory");
  return r0;
}
enum { READ = 3, EXIT = 1 };
#elif defined(__mips__)
static long call(long n, long a, const void *b, long c) {
  register long v0 __asm__("$2") = n, a0 __asm__("$4") = a, a1 __asm__("$5") = (long)b, a2 __asm__("$6") = c, a3 __asm__("$7");
  __asm__ volatile("syscall" : "+r"(v0), "=r"(a3) : "r"(a0), "r"(a1), "r"(a2) : "memory", "$1", "$3", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15", "$24", "$25");
  return v0;
}
enum { READ = 4003, EXIT = 4001 };
#endif
static volatile int sink;
__attribute__((noinline)) static int check(const char *b, long n) {
  if (n < 3 || b[0] != 'A') return 0;
  sink = 1;
  if (b[1] != 'B') return 1;
  sink = 2;
  if (b[2] == '!') *(volatile int *)8 = 1;
  return 2;
}
void _start(void) {
  char b[16];
  long n = call(READ, 0, b, sizeof b);
  call(EXIT, check(b, n) > 5, 0, 0);
  for (;;) continue;
}
#if defined(__mips__)
void __start(void) __attribute__((alias("_start")));
#endif
