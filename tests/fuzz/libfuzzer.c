// libFuzzer's entry; TARGET is the function of targets.h to drive. See tests/fuzz/build.
#include "tests/fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  TARGET(bytes, size);
  return 0;
}
