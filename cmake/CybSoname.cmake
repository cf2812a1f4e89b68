# SPDX-License-Identifier: Apache-2.0
# cyb_soname(SOURCE MACRO LIBRARY): MACRO is, in SOURCE, the name under which the program loads LIBRARY (the path of
# libNAME.so) when it needs it: libNAME.so.VERSION, as the package calls it.
function(cyb_soname source macro library)
  file(REAL_PATH ${library} path)
  get_filename_component(name ${path} NAME)
  if(NOT name MATCHES "^lib.*\\.so\\.[0-9]+")
    message(FATAL_ERROR "${library} is ${path}, not a shared library with a version")
  endif()
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS "${macro}=\"${CMAKE_MATCH_0}\"")
endfunction()
