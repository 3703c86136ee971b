// The functions of C and C++ that allocate and free, for the domains that count bytes.
#ifndef FFUZZ_ALLOCATIONS_HPP
#define FFUZZ_ALLOCATIONS_HPP

#include "ffuzz-domain.hpp"
#include "llvm/ADT/StringSwitch.h"

namespace fuzzfactory {

// Where an allocating call says how much. Strings: the length of the copy is all there is.
struct Allocation {
  int Size = -1;         // argument with the bytes, or the bytes of one item
  int Count = -1;        // argument with the number of items
  int Old = -1;          // argument with a block that is given back
  int Result = -1;       // argument that points at the place of the result; -1: it is returned
  bool IsString = false; // the result is a string of unknown length

  explicit operator bool() const { return Size >= 0 || IsString; }
};

inline Allocation sized(int Size, int Count = -1, int Old = -1, int Result = -1) { return {Size, Count, Old, Result, false}; }

// Of the call itself, if it is one with arguments as they have to be.
inline Allocation allocationBy(const llvm::CallBase &Call, llvm::StringRef Name) {
  Allocation A = llvm::StringSwitch<Allocation>(Name)
                     .Cases("malloc", "valloc", "pvalloc", sized(0))
                     .Case("calloc", sized(1, 0))
                     .Case("realloc", sized(1, -1, 0))
                     .Case("reallocarray", sized(2, 1, 0))
                     .Cases("aligned_alloc", "memalign", sized(1))
                     .Case("posix_memalign", sized(2, -1, -1, 0))
                     .Cases("strdup", "strndup", "__strdup", "__strndup", {-1, -1, -1, -1, true})
                     .Default({});
  // operator new and new[], plain, aligned and without exceptions.
  if (startsWith(Name, "_Znwm") || startsWith(Name, "_Znam")) A = sized(0);
  for (int Argument : {A.Size, A.Count})
    if (Argument >= 0 && (Argument >= (int)Call.arg_size() || !Call.getArgOperand(Argument)->getType()->isIntegerTy())) return {};
  for (int Argument : {A.Old, A.Result})
    if (Argument >= 0 && !Call.getArgOperand(Argument)->getType()->isPointerTy()) return {};
  if (A.Result < 0 && A && !Call.getType()->isPointerTy()) return {};
  return A;
}

// free, and operator delete with whatever follows the block.
inline bool isRelease(const llvm::CallBase &Call, llvm::StringRef Name) {
  bool Frees = Name == "free" || startsWith(Name, "_ZdlPv") || startsWith(Name, "_ZdaPv");
  return Frees && Call.arg_size() && Call.getArgOperand(0)->getType()->isPointerTy();
}

} // namespace fuzzfactory

#endif
