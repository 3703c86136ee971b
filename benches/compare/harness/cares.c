/* c-ares: the answer of a DNS server, given to the reader of each kind of record. */
#include <netdb.h>
#include <stddef.h>
#include <stdint.h>

#include "ares.h"

#define DATA(type, parse)                                           \
  do {                                                              \
    struct type *reply = NULL;                                      \
    if (parse(data, length, &reply) == ARES_SUCCESS) ares_free_data(reply); \
  } while (0)

static void hosts(const unsigned char *data, int length) {
  struct hostent *host = NULL;
  struct ares_addrttl four[5];
  struct ares_addr6ttl six[5];
  unsigned char address[4] = {16, 32, 48, 64};
  int count = 5;
  if (ares_parse_a_reply(data, length, &host, four, &count) == ARES_SUCCESS) ares_free_hostent(host);
  host = NULL, count = 5;
  if (ares_parse_aaaa_reply(data, length, &host, six, &count) == ARES_SUCCESS) ares_free_hostent(host);
  host = NULL;
  if (ares_parse_ptr_reply(data, length, address, sizeof address, 2, &host) == ARES_SUCCESS)
    ares_free_hostent(host);
  host = NULL;
  if (ares_parse_ns_reply(data, length, &host) == ARES_SUCCESS) ares_free_hostent(host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int length = (int)size;
  hosts(data, length);
  DATA(ares_srv_reply, ares_parse_srv_reply);
  DATA(ares_mx_reply, ares_parse_mx_reply);
  DATA(ares_txt_reply, ares_parse_txt_reply);
  DATA(ares_soa_reply, ares_parse_soa_reply);
  DATA(ares_naptr_reply, ares_parse_naptr_reply);
  DATA(ares_caa_reply, ares_parse_caa_reply);
  DATA(ares_uri_reply, ares_parse_uri_reply);
  return 0;
}
