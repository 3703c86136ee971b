/* lua: a source text; it is compiled, written as bytecode, and read again, but never run. A binary
 * chunk is refused: lua trusts it. */
#include <stdint.h>

#include "lauxlib.h"
#include "lua.h"

static int append(lua_State *state, const void *data, size_t size, void *buffer) {
  (void)state;
  luaL_addlstring(buffer, data, size);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lua_State *state = luaL_newstate();
  if (!state) return 0;
  if (luaL_loadbufferx(state, (const char *)data, size, "input", "t") == LUA_OK) {
    luaL_Buffer buffer;
    luaL_buffinit(state, &buffer);
    lua_pushvalue(state, 1);
    if (lua_gettop(state) == 2) lua_dump(state, append, &buffer, 0);
  }
  lua_close(state);
  return 0;
}
