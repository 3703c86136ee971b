/* cmark: the bits of byte 0 are options and the writer, the rest is a text. */
#include <stdint.h>
#include <stdlib.h>

#include "cmark.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  int options = (data[0] & 1 ? CMARK_OPT_UNSAFE : 0) | (data[0] & 2 ? CMARK_OPT_SMART : 0) |
                (data[0] & 4 ? CMARK_OPT_SOURCEPOS : 0) | (data[0] & 8 ? CMARK_OPT_HARDBREAKS : 0);
  cmark_node *document = cmark_parse_document((const char *)data + 1, size - 1, options);
  if (!document) return 0;
  switch (data[0] >> 4 & 7) {
    case 1: free(cmark_render_commonmark(document, options, 40)); break;
    case 2: free(cmark_render_latex(document, options, 40)); break;
    case 3: free(cmark_render_man(document, options, 40)); break;
    case 4: free(cmark_render_xml(document, options)); break;
    default: free(cmark_render_html(document, options));
  }
  cmark_node_free(document);
  return 0;
}
