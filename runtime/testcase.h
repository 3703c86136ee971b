/* The test case of this pass of the loop. */
#ifndef FFUZZ_TESTCASE_H
#define FFUZZ_TESTCASE_H

unsigned char *__ffuzz_testcase_buf(void);
unsigned int __ffuzz_testcase_len(void);

#endif
