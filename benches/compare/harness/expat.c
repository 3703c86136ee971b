/* expat: a document in two parts, with names of namespaces; its entities are read, too. */
#include <stdint.h>

#include "expat.h"

static void XMLCALL begin(void *count, const XML_Char *name, const XML_Char **attributes) {
  (void)name;
  while (*attributes++) ++*(unsigned *)count;
}

static void XMLCALL end(void *count, const XML_Char *name) { (void)count, (void)name; }

static void XMLCALL text(void *count, const XML_Char *data, int length) {
  (void)data;
  *(unsigned *)count += (unsigned)length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  XML_Parser parser = XML_ParserCreateNS(NULL, ' ');
  if (!parser) return 0;
  unsigned count = 0;
  XML_SetHashSalt(parser, 1);
  XML_SetUserData(parser, &count);
  XML_SetElementHandler(parser, begin, end);
  XML_SetCharacterDataHandler(parser, text);
  XML_SetParamEntityParsing(parser, XML_PARAM_ENTITY_PARSING_ALWAYS);
  size_t half = size / 2;
  if (XML_Parse(parser, (const char *)data, (int)half, 0) == XML_STATUS_OK)
    XML_Parse(parser, (const char *)data + half, (int)(size - half), 1);
  XML_ParserFree(parser);
  return 0;
}
