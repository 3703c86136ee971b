/* The path of the ffuzz that has linked the program, for a harness that is to fuzz by itself. ffuzz-cc writes it over
 * this text. Weak: a program may be linked with an archive of another build, too. */
__attribute__((weak)) const char __ffuzz_program[4096] = "@path of ffuzz@";
