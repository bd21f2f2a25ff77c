# How every target is compiled. One interface target, `project_flags`; nothing is set globally but
# what CMake has no target property for.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
set_property(GLOBAL PROPERTY GLOBAL_DEPENDS_NO_CYCLES ON)

# An assert guards against our own bugs and stays on in every build.
foreach(config RELEASE RELWITHDEBINFO MINSIZEREL)
  string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${config} "${CMAKE_C_FLAGS_${config}}")
endforeach()

set(CODE_RUNNER_SANITIZE "" CACHE STRING "value of -fsanitize=, or empty")
option(CODE_RUNNER_WERROR "treat warnings as errors" ON)
option(CODE_RUNNER_FUZZ "build the libFuzzer targets (clang)" OFF)
option(CODE_RUNNER_COVERAGE "instrument for coverage" OFF)

include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported()

set(warning_flags
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wformat=2 -Wvla -Wundef
    -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wwrite-strings -Wnull-dereference
    -Wimplicit-fallthrough)

add_library(project_flags INTERFACE)
target_compile_options(
  project_flags
  INTERFACE ${warning_flags}
            $<$<BOOL:${CODE_RUNNER_WERROR}>:-Werror>
            -fno-common
            -fno-delete-null-pointer-checks
            -fno-strict-overflow
            -fstack-protector-strong
            -include "${CMAKE_SOURCE_DIR}/runner/base/include/base/banned.h")
target_compile_definitions(project_flags INTERFACE _GNU_SOURCE)

set(hardening_compile -fstack-clash-protection -fcf-protection=full -ftrivial-auto-var-init=zero)
foreach(flag IN LISTS hardening_compile)
  string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
  check_c_compiler_flag(${flag} ${have})
  if(${have})
    target_compile_options(project_flags INTERFACE ${flag})
  endif()
endforeach()
target_link_options(project_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code)

# `, ##__VA_ARGS__` in base/log.h: gcc takes it under -Wpedantic, clang has a warning of its own for it.
if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
  target_compile_options(project_flags INTERFACE -Wno-gnu-zero-variadic-macro-arguments)
endif()

if(CODE_RUNNER_SANITIZE)
  target_compile_options(project_flags INTERFACE -fsanitize=${CODE_RUNNER_SANITIZE}
                                                 -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(project_flags INTERFACE -fsanitize=${CODE_RUNNER_SANITIZE})
else()
  # Fortify needs optimisation, which every preset without a sanitizer has.
  target_compile_options(project_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()
if(CODE_RUNNER_FUZZ)
  target_compile_options(project_flags INTERFACE -fsanitize=fuzzer-no-link -fprofile-instr-generate
                                                 -fcoverage-mapping)
  target_link_options(project_flags INTERFACE -fprofile-instr-generate)
endif()
if(CODE_RUNNER_COVERAGE)
  target_compile_options(project_flags INTERFACE --coverage)
  target_link_options(project_flags INTERFACE --coverage)
endif()
