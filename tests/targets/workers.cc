// A harness whose startup makes a thread, which does all the work. An input that begins with FU crashes.
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable changed;
static const uint8_t *work;
static size_t size;

static void worker() {
  std::unique_lock<std::mutex> held(lock);
  for (;;) {
    changed.wait(held, [] { return work != nullptr; });
    if (size > 1 && work[0] == 'F' && work[1] == 'U') abort();
    work = nullptr;
    changed.notify_all();
  }
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  std::thread(worker).detach();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static const uint8_t nothing = 0;
  std::unique_lock<std::mutex> held(lock);
  size = bytes;
  work = bytes ? data : &nothing;
  changed.notify_all();
  changed.wait(held, [] { return work == nullptr; });
  return 0;
}
