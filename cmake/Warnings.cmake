# tslab_warnings(target...): the warnings that every file of the project compiles without.
function(tslab_warnings)
  set(for_c "$<COMPILE_LANGUAGE:C>")
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE
      -Wall -Wextra -Wundef -Wconversion -Wshadow
      $<${for_c}:-Wmissing-prototypes> $<${for_c}:-Wstrict-prototypes>
      $<$<BOOL:${TSLAB_WERROR}>:-Werror>)
  endforeach()
endfunction()
