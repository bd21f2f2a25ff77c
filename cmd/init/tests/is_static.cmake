# The shipped init runs in any image, whatever libraries that has: it must need none. It is small, as
# every sandbox maps it, and hardened as far as a static program can be.
set(size_max 262144)

execute_process(
  COMMAND ${READELF} --wide --file-header --program-headers --dynamic ${PROGRAM}
  OUTPUT_VARIABLE headers
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "readelf cannot read ${PROGRAM}")
endif()

foreach(absent "INTERP" "DYNAMIC" "NEEDED" "GNU_STACK[^\n]*RWE" "LOAD[^\n]*RWE")
  if(headers MATCHES "${absent}")
    message(FATAL_ERROR "${PROGRAM} has ${CMAKE_MATCH_0}:\n${headers}")
  endif()
endforeach()
foreach(present "There is no dynamic section" "GNU_STACK" "GNU_RELRO")
  if(NOT headers MATCHES "${present}")
    message(FATAL_ERROR "${PROGRAM} lacks ${present}:\n${headers}")
  endif()
endforeach()

file(SIZE ${PROGRAM} size)
if(size GREATER size_max)
  message(FATAL_ERROR "${PROGRAM} has ${size} bytes, must have at most ${size_max}")
endif()
