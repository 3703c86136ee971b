// The name under which domains written for FuzzFactory know their base class.
#ifndef FFUZZ_FUZZFACTORY_HPP
#define FFUZZ_FUZZFACTORY_HPP

#include "ffuzz-domain.hpp"

namespace fuzzfactory {
using namespace llvm;
}

#endif
