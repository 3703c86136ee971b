/* The path of the ffuzz that has linked the program, for a harness that is to fuzz by itself. ffuzz-cc writes it over
 * this text. */
const char __ffuzz_program[4096] = "@path of ffuzz@";
