# At installation: `command` writes what completes its words in `shell` to `file`. Without the
# command there is no such file.
file(REMOVE "${file}")
if(EXISTS "${command}")
  get_filename_component(folder "${file}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  execute_process(COMMAND "${command}" completions "${shell}" OUTPUT_FILE "${file}"
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${command} writes no completions for ${shell}: ${status}")
  endif()
endif()
