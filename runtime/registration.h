/* What a domain's constructor calls; see include/waypoints.h. */
#ifndef FFUZZ_REGISTRATION_H
#define FFUZZ_REGISTRATION_H

#include "domains.h"

HIDDEN void ffuzz_registration(void); /* the name by which the linker is asked for this object */
dsf_t __ffuzz_new_domain(const char *name, uint32_t size, uint32_t reducer, uint32_t initial);
dsf_t __fuzzfactory_new_domain(uint32_t size, uint32_t reducer, uint32_t initial);

#endif
