# Builds project/ in DIR, the WAY a user would: find_package or add_subdirectory.

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${DIR})
set(configure ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/project -B ${DIR}/build -G ${GENERATOR}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=Release -D CMAKE_EXPORT_COMPILE_COMMANDS=ON)

if(WAY STREQUAL "find_package")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${DIR}/prefix)
  run(${configure} -D CMAKE_PREFIX_PATH=${DIR}/prefix)
  run(${CMAKE_COMMAND} --build ${DIR}/build)
  run(${DIR}/build/consumer)
else()
  # Public headers go through the strictest common warnings; -Werror reaches only the consumer's own file.
  run(${configure} -D TESSERA_SOURCE=${SOURCE} "-DCMAKE_CXX_FLAGS=-Wpedantic -Wconversion -Werror")
  run(${CMAKE_COMMAND} --build ${DIR}/build --target CMakeFiles/consumer.dir/main.cpp.o)
endif()

# None of the library's own compile options may reach the user's file.
file(READ ${DIR}/build/compile_commands.json commands)
string(REGEX MATCH "[^\n]*consumer.dir/main.cpp.o[^\n]*" command "${commands}")
if(NOT command OR command MATCHES " (-Wall|-Wextra|-Wshadow|-Wno-|-O3 -fno|-m)")
  message(FATAL_ERROR "consumer: a compile option of the library leaks to its users: ${command}")
endif()
