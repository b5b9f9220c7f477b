# cmake -D OUT=<source> -D FILES="name=file;…" -P embed.cmake
# Writes a source in which every file is a text: std::string_view tidegate::<name>().
set(text "#include <string_view>\n\nnamespace tidegate {\n\n")
foreach(entry ${FILES})
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${entry}")
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" content)
  string(APPEND text "std::string_view ${name}() {\n  return R\"embedded(${content})embedded\";\n}\n\n")
endforeach()
string(APPEND text "}  // namespace tidegate\n")
file(WRITE ${OUT} "${text}")
