/* jq: a program of the query language, compiled with a small library of functions, never run. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jq.h"
#include "compile.h"
#include "jq_parser.h"
#include "linker.h"

/* In place of those that read modules from files. */
int load_program(jq_state *jq, struct locfile *source, block *program) {
  (void)jq;
  int errors = jq_parse(source, program);
  if (errors) return errors;
  jv_free(block_take_imports(program));
  return 0;
}

jv load_module_meta(jq_state *jq, jv name) {
  (void)jq;
  jv_free(name);
  return jv_invalid();
}

/* What stands for each function of the library that is written in C: none runs. */
static jv stub(jq_state *jq, jv input) {
  (void)jq;
  return input;
}

#define STUB(name, arguments) {(cfunction_ptr)stub, name, arguments}
static const struct cfunction stubs[] = {
    STUB("_plus", 3), STUB("_minus", 3), STUB("_multiply", 3), STUB("_divide", 3), STUB("_mod", 3),
    STUB("_negate", 1), STUB("_equal", 3), STUB("_notequal", 3), STUB("_less", 3), STUB("_greater", 3),
    STUB("_lesseq", 3), STUB("_greatereq", 3), STUB("error", 2), STUB("format", 2), STUB("getpath", 2),
    STUB("setpath", 3), STUB("delpaths", 2), STUB("tojson", 1), STUB("length", 1), STUB("not", 1),
};

/* What the syntax of the language uses, and a little more: the whole library takes milliseconds, with each program anew. */
static const char library[] =
    "def error: error(.);\n"
    "def map(f): [.[] | f];\n"
    "def select(f): if f then . else empty end;\n"
    "def recurse(f): def r: ., (f | r); r;\n"
    "def recurse: recurse(.[]?);\n"
    "def _assign(paths; value): value as $v | reduce path(paths) as $p (.; setpath($p; $v));\n"
    "def _modify(paths; update): reduce path(paths) as $p (.; label $out | (setpath($p; getpath($p) | update) | ., break $out), delpaths([$p]));\n";

int builtins_bind(jq_state *jq, block *program) {
  struct locfile *source = locfile_init(jq, "<library>", library, sizeof library - 1);
  block functions;
  int errors = jq_parse_library(source, &functions);
  locfile_free(source);
  if (errors) return errors;
  block own = gen_function("empty", gen_noop(), gen_op_simple(BACKTRACK));
  own = BLOCK(own, gen_function("path", gen_param("f"),
                                BLOCK(gen_op_simple(PATH_BEGIN), gen_call("f", gen_noop()), gen_op_simple(PATH_END))));
  *program = block_bind(functions, *program, OP_IS_CALL_PSEUDO);
  *program = block_bind(own, *program, OP_IS_CALL_PSEUDO);
  *program = block_drop_unreferenced(gen_cbinding(stubs, sizeof stubs / sizeof *stubs, *program));
  return 0;
}

static void say_nothing(void *handle, jv message) {
  (void)handle;
  jv_free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = 0;
  jq_state *jq = jq_init();
  if (jq) {
    jq_set_error_cb(jq, say_nothing, NULL);
    jq_compile(jq, text);
    jq_teardown(&jq);
  }
  free(text);
  return 0;
}
