# SPDX-License-Identifier: Apache-2.0
# cyb_proto(TARGET FILE): the static library TARGET of the messages in FILE (a path below this folder), for the lite
# runtime; their header is FILE with .pb.h for .proto. Generated code is compiled without our warnings.
function(cyb_proto target file)
  string(REGEX REPLACE "\\.proto$" ".pb" stem ${file})
  set(root ${CMAKE_CURRENT_BINARY_DIR}/proto)
  file(MAKE_DIRECTORY ${root})
  add_custom_command(
    OUTPUT ${root}/${stem}.cc ${root}/${stem}.h
    COMMAND protobuf::protoc --cpp_out=${root} -I${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file}
    VERBATIM)
  add_library(${target} STATIC ${root}/${stem}.cc ${root}/${stem}.h)
  target_compile_options(${target} PRIVATE -w)
  target_include_directories(${target} SYSTEM PUBLIC ${root})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf-lite)
endfunction()
