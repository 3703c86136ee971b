/* tasn1: a certificate in DER, decoded, looked through and encoded again. */
#include <stdint.h>
#include <string.h>

#include "libtasn1.h"

extern const asn1_static_node pkix_asn1_tab[];

static const char *const values[] = {"tbsCertificate.version", "tbsCertificate.serialNumber",
                                     "tbsCertificate.issuer", "tbsCertificate.validity.notBefore.utcTime",
                                     "tbsCertificate.extensions.?1.extnID", "signature"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static asn1_node definitions;
  static char encoded[1 << 14];
  if (!definitions && asn1_array2tree(pkix_asn1_tab, &definitions, NULL) != ASN1_SUCCESS) return 0;
  asn1_node certificate = NULL;
  if (asn1_create_element(definitions, "PKIX1Implicit88.Certificate", &certificate) != ASN1_SUCCESS) return 0;
  if (asn1_der_decoding(&certificate, data, (int)size, NULL) == ASN1_SUCCESS) {
    for (size_t value = 0; value < sizeof values / sizeof *values; value++) {
      int length = sizeof encoded;
      asn1_read_value(certificate, values[value], encoded, &length);
    }
    int start, end, length = sizeof encoded;
    asn1_der_decoding_startEnd(certificate, data, (int)size, "tbsCertificate.subject", &start, &end);
    asn1_der_coding(certificate, "", encoded, &length, NULL);
  }
  asn1_delete_structure(&certificate);
  return 0;
}
