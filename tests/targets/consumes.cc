// A harness that takes its input apart by the header of compiler-rt.
#include <fuzzer/FuzzedDataProvider.h>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzedDataProvider provider(data, size);
  auto number = provider.ConsumeIntegralInRange<uint32_t>(0, 1u << 30);
  auto word = provider.ConsumeRandomLengthString(8);
  if (number == 4711 && word == "stop") abort();
  return provider.ConsumeBool() ? 0 : -1;
}
