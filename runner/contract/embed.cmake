# Writes OUTPUT, a C file with the text of every file in INPUTS (paths joined by |) as a NUL-terminated
# byte array, in that order. The files are ASCII.  cmake -D OUTPUT=x.c -D INPUTS=a|b -P embed.cmake
string(REPLACE "|" ";" inputs "${INPUTS}")
set(arrays "")
set(rows "")
foreach(input IN LISTS inputs)
  file(READ "${input}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n"
                       bytes "${bytes}")
  get_filename_component(name "${input}" NAME)
  string(MAKE_C_IDENTIFIER "${name}" id)
  string(APPEND arrays "static const char ${id}[] = {\n${bytes}0x00};\n")
  string(REPLACE ".schema.json" "" name "${name}")
  string(APPEND rows "    {\"${name}\", ${id}},\n")
endforeach()
file(
  WRITE "${OUTPUT}"
  "/* Made by embed.cmake. */\n#include \"embedded.h\"\n\n${arrays}\nconst struct embedded embedded_schemas[] = {\n${rows}};\n")
