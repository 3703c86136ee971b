/* capstone: byte 0 selects the machine, the rest is its code, of which 128 instructions are read. */
#include <stdint.h>

#include "capstone/capstone.h"

#define MOST_INSTRUCTIONS 128

static const struct {
  cs_arch arch;
  int mode;
} machines[] = {
    {CS_ARCH_X86, CS_MODE_32},
    {CS_ARCH_X86, CS_MODE_64},
    {CS_ARCH_X86, CS_MODE_16},
    {CS_ARCH_ARM, CS_MODE_ARM},
    {CS_ARCH_ARM, CS_MODE_THUMB | CS_MODE_V8},
    {CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN},
    {CS_ARCH_MIPS, CS_MODE_MIPS64 | CS_MODE_BIG_ENDIAN},
    {CS_ARCH_PPC, CS_MODE_64 | CS_MODE_BIG_ENDIAN},
    {CS_ARCH_SPARC, CS_MODE_BIG_ENDIAN | CS_MODE_V9},
    {CS_ARCH_SYSZ, CS_MODE_BIG_ENDIAN},
    {CS_ARCH_M68K, CS_MODE_BIG_ENDIAN | CS_MODE_M68K_040},
    {CS_ARCH_M680X, CS_MODE_M680X_6809},
    {CS_ARCH_TMS320C64X, CS_MODE_BIG_ENDIAN},
    {CS_ARCH_XCORE, CS_MODE_BIG_ENDIAN},
    {CS_ARCH_EVM, 0},
    {CS_ARCH_X86, CS_MODE_64},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  csh reader;
  cs_insn *list;
  if (size < 1) return 0;
  int index = data[0] & 15;
  if (cs_open(machines[index].arch, (cs_mode)machines[index].mode, &reader) != CS_ERR_OK) return 0;
  cs_option(reader, CS_OPT_DETAIL, CS_OPT_ON);
  if (data[0] & 16) cs_option(reader, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
  size_t count = cs_disasm(reader, data + 1, size - 1, 0x1000, MOST_INSTRUCTIONS, &list);
  if (count) cs_free(list, count);
  cs_close(&reader);
  return 0;
}
