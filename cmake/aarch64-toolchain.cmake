# SPDX-License-Identifier: Apache-2.0
# Debian's cross compiler for AArch64; libraries from the folder CYB_AARCH64_ROOT, programs run by qemu-aarch64.
# tools/test_neon.sh makes that folder and uses this file.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CYB_AARCH64_ROOT)
set(CMAKE_FIND_ROOT_PATH ${CYB_AARCH64_ROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CYB_AARCH64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CYB_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CYB_AARCH64_ROOT}/usr/share/pkgconfig)
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${CYB_AARCH64_ROOT}/usr/include/aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${CYB_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu")
set(CMAKE_CROSSCOMPILING_EMULATOR
  qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${CYB_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu)
