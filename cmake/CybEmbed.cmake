# SPDX-License-Identifier: Apache-2.0
# cyb_embed(TARGET FILE FUNCTION HEADER): a source in TARGET that defines std::string cyb::FUNCTION(), which HEADER
# declares, returning the bytes of FILE. The build follows changes of FILE.
set(CYB_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(cyb_embed target file function header)
  set(input ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${function}.cc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DFUNCTION=${function} -DHEADER=${header} -P ${CYB_EMBED_SCRIPT}
    DEPENDS ${input} ${CYB_EMBED_SCRIPT}
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND DEFINED INPUT)
  file(READ ${INPUT} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)?(0x[0-9a-f][0-9a-f],)?(0x[0-9a-f][0-9a-f],)?(0x[0-9a-f][0-9a-f],)?(0x[0-9a-f][0-9a-f],)?(0x[0-9a-f][0-9a-f],)?(0x[0-9a-f][0-9a-f],)?)" "\\1\n" bytes "${bytes}")
  file(WRITE ${OUTPUT} "// Made by cmake/CybEmbed.cmake.
#include \"${HEADER}\"

namespace cyb {
namespace {
const unsigned char kBytes[] = {
${bytes}0};
}
std::string ${FUNCTION}() { return std::string(reinterpret_cast<const char*>(kBytes), sizeof kBytes - 1); }
}  // namespace cyb
")
endif()
