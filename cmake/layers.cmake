# The layers of the project, as functions. A library sees only the headers of what it declares in
# PUBLIC or PRIVATE, and a cycle stops the configure step: so the picture in docs/architecture.md is
# checked by every build.

# runner_library(bus HEADERS bus/bus.h SOURCES memory.c PUBLIC base PRIVATE json)
#   HEADERS  below include/, the library's manual
#   PUBLIC   libraries whose types our headers show
#   PRIVATE  libraries only our .c files use
function(runner_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES;PUBLIC;PRIVATE")
  list(TRANSFORM arg_HEADERS PREPEND include/)
  add_library(${name} STATIC ${arg_SOURCES})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${arg_HEADERS})
  target_link_libraries(
    ${name}
    PUBLIC ${arg_PUBLIC}
    PRIVATE project_flags ${arg_PRIVATE})
endfunction()

# runner_test(bus memory SOURCES tests/test_memory.c LINKS bus)
#   one cmocka binary, ctest name <library>.<module>; exit 77 is a skip, which REQUIRE can turn into
#   a failure (see tests/support/require.h). LABELS docker root ... name what it needs.
function(runner_test library module)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT" "SOURCES;LINKS;LABELS;DEFINITIONS")
  set(target test_${library}_${module})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE project_flags PkgConfig::CMOCKA ${library} ${arg_LINKS})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/tests/support)
  target_compile_definitions(
    ${target} PRIVATE PROJECT_SOURCE_DIR="${CMAKE_SOURCE_DIR}" PROJECT_BINARY_DIR="${CMAKE_BINARY_DIR}"
                      ${arg_DEFINITIONS})
  add_test(NAME ${library}.${module} COMMAND ${target})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set_tests_properties(
    ${library}.${module}
    PROPERTIES LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT ${arg_TIMEOUT}
               ENVIRONMENT "ASAN_OPTIONS=handle_segv=2;TSAN_OPTIONS=halt_on_error=1")
endfunction()

# runner_fuzz(frames decode SOURCES tests/fuzz_decode.c LINKS frames)
#   one entry point LLVMFuzzerTestOneInput; its corpus (tests/corpus/<module>) is replayed by ctest in
#   every build, and with CODE_RUNNER_FUZZ a libFuzzer binary is made too.
function(runner_fuzz library module)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;LINKS")
  set(target replay_${library}_${module})
  add_executable(${target} ${arg_SOURCES} ${CMAKE_SOURCE_DIR}/tests/support/replay.c)
  target_link_libraries(${target} PRIVATE project_flags ${library} ${arg_LINKS})
  add_test(NAME ${library}.corpus_${module}
           COMMAND ${target} ${CMAKE_CURRENT_SOURCE_DIR}/tests/corpus/${module})
  set_tests_properties(${library}.corpus_${module} PROPERTIES TIMEOUT 60)
  if(CODE_RUNNER_FUZZ)
    set(fuzzer fuzz_${library}_${module})
    add_executable(${fuzzer} ${arg_SOURCES})
    target_link_libraries(${fuzzer} PRIVATE project_flags ${library} ${arg_LINKS})
    target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
