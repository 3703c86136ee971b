/* tcpdump: at most 64 packets of a capture in memory, printed to nowhere. Names of addresses are one text here:
   those of the program are kept for the next packet. */
#include <config.h>

#include "netdissect-stdinc.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "netdissect.h"
#include "netdissect-alloc.h"
#include "addrtoname.h"
#include "print.h"

#define MOST_PACKETS 64
#define HEAD 24
#define PACKET_HEAD 16

static jmp_buf failed;

static int print_nowhere(netdissect_options *options, const char *format, ...) {
  return (void)options, (void)format, 0;
}

static void warn_nobody(netdissect_options *options, const char *format, ...) { (void)options, (void)format; }

__attribute__((noreturn)) static void fail(netdissect_options *options, status_exit_codes_t status,
                                           const char *format, ...) {
  (void)options, (void)status, (void)format;
  longjmp(failed, 1);
}

#define NAME(function, ...) \
  const char *function(__VA_ARGS__) { return "name"; }
NAME(linkaddr_string, netdissect_options *options, const uint8_t *data, const unsigned int type, const unsigned int size)
NAME(etheraddr_string, netdissect_options *options, const uint8_t *data)
NAME(le64addr_string, netdissect_options *options, const uint8_t *data)
NAME(tcpport_string, netdissect_options *options, u_short port)
NAME(udpport_string, netdissect_options *options, u_short port)
NAME(isonsap_string, netdissect_options *options, const uint8_t *data, u_int size)
NAME(dnaddr_string, netdissect_options *options, u_short address)
NAME(ipxsap_string, netdissect_options *options, u_short port)
NAME(ipaddr_string, netdissect_options *options, const u_char *data)
NAME(ip6addr_string, netdissect_options *options, const u_char *data)
NAME(intoa, uint32_t address)
NAME(ieee8021q_tci_string, const uint16_t tag)

void init_addrtoname(netdissect_options *options, uint32_t network, uint32_t mask) {
  (void)options, (void)network, (void)mask;
}

/* AppleTalk's printers keep names of addresses, too. */
void ltalk_if_print(netdissect_options *options, const struct pcap_pkthdr *head, const u_char *data) {
  (void)options, (void)head, (void)data;
}
u_int llap_print(netdissect_options *options, const u_char *data, u_int size) {
  return (void)options, (void)data, size;
}
void atalk_print(netdissect_options *options, const u_char *data, u_int size) {
  (void)options, (void)data, (void)size;
}
void aarp_print(netdissect_options *options, const u_char *data, u_int size) {
  (void)options, (void)data, (void)size;
}

/* Of libpcap, which has names for link types and errors. */
const char *pcap_strerror(int code) { return (void)code, "an error"; }
const char *pcap_datalink_val_to_name(int type) { return (void)type, "name"; }
const char *pcap_datalink_val_to_description(int type) { return (void)type, "a description"; }
const char *pcap_datalink_val_to_description_or_dlt(int type) { return (void)type, "a description"; }

static uint32_t number(const uint8_t *data) {
  return data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static netdissect_options options;
  if (size < HEAD || number(data) != 0xa1b2c3d4) return 0;
  memset(&options, 0, sizeof options);
  ndo_set_function_pointers(&options);
  options.ndo_printf = print_nowhere;
  options.ndo_warning = warn_nobody;
  options.ndo_error = fail;
  options.ndo_nflag = options.ndo_Sflag = options.ndo_eflag = options.ndo_tflag = 1;
  options.ndo_vflag = 3;
  options.ndo_snaplen = (int)size;
  int type = (int)(number(data + 20) & 0x3ffffff);
  if (!has_printer(type)) return 0;
  options.ndo_if_printer = get_if_printer(type);
  data += HEAD, size -= HEAD;
  for (unsigned count = 0; size > PACKET_HEAD && count < MOST_PACKETS; count++) {
    struct pcap_pkthdr head;
    memset(&head, 0, sizeof head);
    head.caplen = number(data + 8), head.len = number(data + 12);
    data += PACKET_HEAD, size -= PACKET_HEAD;
    if (head.caplen > size) head.caplen = (unsigned)size;
    if (head.len < head.caplen) head.len = head.caplen;
    /* Past its end the checkers of memory see every read. */
    uint8_t *packet = malloc(head.caplen + 1);
    if (!packet) return 0;
    memcpy(packet, data, head.caplen);
    if (!setjmp(failed)) pretty_print_packet(&options, &head, packet, count);
    nd_free_all(&options);
    free(packet);
    data += head.caplen, size -= head.caplen;
  }
  return 0;
}
