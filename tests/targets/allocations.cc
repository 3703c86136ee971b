// One call of each function that allocates, each with a size of its own; none is used for anything.
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>

struct alignas(64) Wide {
  char bytes[128];
};

int main() {
  void *aligned = nullptr;
  volatile size_t huge = static_cast<size_t>(1) << 46;
  free(malloc(1000));
  free(calloc(10, 200));
  free(realloc(malloc(1), 3000));
  free(reallocarray(nullptr, 20, 200));
  free(aligned_alloc(16, 5008));
  if (posix_memalign(&aligned, 16, 6000) == 0) free(aligned);
  free(memalign(16, 7000));
  free(valloc(8000));
  free(strdup("0123456789"));
  free(strndup("0123456789", 5));
  delete[] new char[9000];
  delete new int;
  delete[] new (std::nothrow) char[10000];
  delete new Wide;
  try {
    char *volatile some = new char[11000];
    delete[] some;
    char *volatile too_many = new char[huge];
    delete[] too_many;
  } catch (std::bad_alloc &) {
  }
  return 0;
}
