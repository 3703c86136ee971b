/* libyaml: the events of a text, given to the emitter, which writes at most 64 KiB. */
#include <stdint.h>

#include "yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static unsigned char output[64 << 10];
  yaml_parser_t parser;
  yaml_emitter_t emitter;
  yaml_event_t event;
  size_t written;
  if (!yaml_parser_initialize(&parser)) return 0;
  if (!yaml_emitter_initialize(&emitter)) return yaml_parser_delete(&parser), 0;
  yaml_parser_set_input_string(&parser, data, size);
  yaml_emitter_set_output_string(&emitter, output, sizeof output, &written);
  for (int last = 0; !last && yaml_parser_parse(&parser, &event);) {
    last = event.type == YAML_STREAM_END_EVENT;
    /* It takes the event, also when it fails. */
    if (!yaml_emitter_emit(&emitter, &event)) break;
  }
  yaml_emitter_delete(&emitter);
  yaml_parser_delete(&parser);
  return 0;
}
