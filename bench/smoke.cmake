# Every program once, with so little work that it ends at once: it must say what it measured.
function(tslab_bench_smoke name program expected)
  add_test(NAME bench_smoke_${name} COMMAND ${program} ${ARGN})
  set_tests_properties(bench_smoke_${name} PROPERTIES
    LABELS bench TIMEOUT 20
    PASS_REGULAR_EXPRESSION "result program=.* allocator=[^ ]+ version=.* ${expected}")
endfunction()

set(positive "[0-9.]*[1-9]")
tslab_bench_smoke(random_mixed bench_random_mixed "rate=${positive}" 100000 256 7)
tslab_bench_smoke(producer_consumer producer_consumer "rate=${positive}" 100000)
tslab_bench_smoke(bulk_random bulk_random "malloc_ns=${positive}" 10000)
tslab_bench_smoke(churn_128 churn_latency "malloc_p50_ns=${positive}" 100000 1000)
tslab_bench_smoke(churn_mixed churn_latency "free_p9999_ns=${positive}" --mixed 100000 1000)
tslab_bench_smoke(pair_instructions pair_instructions "pair_instructions=${positive}" 20)
tslab_bench_smoke(rss_blocks rss_blocks "resident_bytes=${positive}" 20000)
tslab_bench_smoke(scaling scaling "ratio=${positive}" 2 20000)
tslab_bench_smoke(threads_p99 threads_p99 "malloc_p99_ns=${positive}" 16 20000)
tslab_bench_smoke(tiny shape_tiny "rate=${positive}" 100000)
tslab_bench_smoke(tiny_lists shape_tiny "rate=${positive}" --lists 100000)
foreach(threads IN ITEMS 2 4 16)
  tslab_bench_smoke(larson_${threads} shape_larson "rate=${positive}" ${threads} 100000)
  tslab_bench_smoke(xmalloc_${threads} shape_xmalloc "rate=${positive}" ${threads} 100000)
  tslab_bench_smoke(rptest_${threads} shape_rptest "rate=${positive}" ${threads} 100000)
endforeach()
tslab_bench_smoke(larson_sized shape_larson "rate=${positive}" --sized 2 100000)
tslab_bench_smoke(cache_scratch shape_cache_scratch "rate=${positive}" 2 100 1000)
tslab_bench_smoke(cache_thrash shape_cache_thrash "rate=${positive}" 2 100 1000)
tslab_bench_smoke(thread_churn shape_thread_churn "rate=${positive}" 2 200)
tslab_bench_smoke(large shape_large "rate=${positive}" 3)
tslab_bench_smoke(batches shape_batches "rate=${positive}" 2 100000)
tslab_bench_smoke(alloc_test shape_alloc_test "rate=${positive}" 2 100000)

foreach(mode IN ITEMS malloc monotonic)
  if(TARGET request_objects)
    tslab_bench_smoke(request_${mode} request_objects "request_ns=${positive}" ${mode} 1000)
  endif()
endforeach()
tslab_bench_smoke(lifetime_plain lifetime_mix "burst_1=${positive}" 1 20 50)

# Programs that use epochs find them in the library that is preloaded.
function(tslab_bench_smoke_epochs name program expected)
  tslab_bench_smoke(${name} ${program} ${expected} ${ARGN})
  set_tests_properties(bench_smoke_${name} PROPERTIES
    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:tslab_preload>")
endfunction()

if(TARGET tslab_preload)
  tslab_bench_smoke_epochs(epoch_costs epoch_costs "open_use_close_ns=${positive}" 1000 2)
  foreach(mode IN ITEMS epoch_free epoch_release)
    if(TARGET request_objects)
      tslab_bench_smoke_epochs(request_${mode} request_objects "request_ns=${positive}"
        ${mode} 1000)
    endif()
  endforeach()
  tslab_bench_smoke_epochs(many_epochs many_epochs "near_ns=${positive}" 100 10000)
  tslab_bench_smoke_epochs(lifetime_epochs lifetime_mix "burst_1=${positive}" --epochs 1 20 50)
  tslab_bench_smoke_epochs(epoch_churn epoch_churn "late_bytes=${positive}" 110 2000)
  tslab_bench_smoke_epochs(epoch_close_drained epoch_close_drained "close_ns=${positive}" 20000)
endif()
add_test(NAME bench_smoke_without_epochs COMMAND epoch_costs)
set_tests_properties(bench_smoke_without_epochs PROPERTIES
  LABELS bench PASS_REGULAR_EXPRESSION "needs epochs")

foreach(bad IN ITEMS 0 x -1 99999999999999999999)
  add_test(NAME bench_smoke_refuses_${bad} COMMAND bench_random_mixed ${bad})
  set_tests_properties(bench_smoke_refuses_${bad} PROPERTIES
    LABELS bench PASS_REGULAR_EXPRESSION "usage: bench_random_mixed")
endforeach()

add_test(NAME bench_peer_exports
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/peers/exports ${CMAKE_BINARY_DIR}/peers)
set_tests_properties(bench_peer_exports PROPERTIES LABELS bench SKIP_RETURN_CODE 77)
