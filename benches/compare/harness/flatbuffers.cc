// flatbuffers: a schema, with data in JSON or without; schema and data are written again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "flatbuffers/idl.h"
#include "flatbuffers/util.h"

static bool no_file(const char *, bool, std::string *) { return false; }
static bool exists_not(const char *) { return false; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  flatbuffers::SetLoadFileFunction(no_file);
  flatbuffers::SetFileExistsFunction(exists_not);
  const std::string text(reinterpret_cast<const char *>(data), size);
  flatbuffers::IDLOptions options;
  options.strict_json = false;
  flatbuffers::Parser parser(options);
  if (!parser.Parse(text.c_str(), nullptr, "input")) return 0;
  flatbuffers::GenerateFBS(parser, "input");
  if (parser.root_struct_def_ && parser.builder_.GetSize() > 0) {
    std::string written;
    flatbuffers::GenerateText(parser, parser.builder_.GetBufferPointer(), &written);
  }
  parser.Serialize();
  return 0;
}
