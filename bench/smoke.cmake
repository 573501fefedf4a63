# Every program once, with so little work that it ends at once: it must say what it measured.
function(tslab_bench_smoke name program expected)
  add_test(NAME bench_smoke_${name} COMMAND ${program} ${ARGN})
  set_tests_properties(bench_smoke_${name} PROPERTIES
    LABELS bench TIMEOUT 20
    PASS_REGULAR_EXPRESSION "result program=.* allocator=[^ ]+ version=.* ${expected}")
endfunction()

set(positive "[0-9.]*[1-9][0-9]*[.]?[0-9]*")
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
tslab_bench_smoke(accurate benchmark_accurate "warm_free_p9999_ns=${positive}"
  --blocks 20000 --operations 20000)
string(CONCAT untold "warm_free_p9999_ns=${positive} .*"
  "current misses: the allocator tells nothing\n"
  "dominant cause of the tail: [a-z]")
set_tests_properties(bench_smoke_accurate PROPERTIES PASS_REGULAR_EXPRESSION "${untold}")
tslab_bench_smoke(threads_sweep benchmark_threads "t16_rate=${positive}" --blocks 1000 --rounds 2)
tslab_bench_smoke(threads_3 benchmark_threads "t3_free_p99_ns=${positive}" --blocks 1000 3)
tslab_bench_smoke(churn_fixed churn_fixed "p99999_over_p50=${positive}" --live 1000 --cycles 20)
tslab_bench_smoke(churn_test churn_test "peak_bytes=${positive}" --live 10000 --cycles 100)
tslab_bench_smoke(founding_smoke smoke_tests "damaged=0" 20000)
tslab_bench_smoke(ws_sweep ws_sweep "rate_4096=${positive}" 10000 4096)
tslab_bench_smoke(idle_return idle_return "returned_40ms_pct=" 20000 10 20 40)
tslab_bench_smoke(idle_return_pinned idle_return "live_bytes=${positive}" --pinned 20000 10 20 40)
tslab_bench_smoke(idle_return_pinned_seldom idle_return "live_bytes=${positive}"
  --pinned-seldom 20000 10 20 40)
tslab_bench_smoke(idle_return_handed idle_return "live_bytes=${positive}"
  --pinned --handed 20000 10 20 40)
tslab_bench_smoke(bursts burst_cost "cpu_ms=${positive}.* faults=${positive}" 2 20000 5)
tslab_bench_smoke(bursts_large burst_cost "cpu_ms=${positive}.* faults=${positive}" --large 2 4 5)
tslab_bench_smoke(realloc_growth realloc_growth "step_peak_bytes=${positive}" 4 300000 1)
tslab_bench_smoke(shapes_free_only thread_shapes "rate=${positive}" free_only 3 50000)
tslab_bench_smoke(shapes_pairs thread_shapes "rate=${positive}" producer_consumer 4 50000)
tslab_bench_smoke(shapes_churn thread_shapes "late_bytes=${positive}" churn 2 200)
tslab_bench_smoke(shapes_sleeping thread_shapes "asleep_bytes=${positive}" sleeping 4 5000 20)
tslab_bench_smoke(shapes_sharing thread_shapes "rate=${positive}" sharing 2 100 1000)

foreach(mode IN ITEMS malloc monotonic)
  if(TARGET request_objects)
    tslab_bench_smoke(request_${mode} request_objects "request_ns=${positive}" ${mode} 1000)
  endif()
endforeach()
if(TARGET arena_request)
  get_target_property(arena_sources arena_request SOURCES)
  foreach(mode IN ITEMS malloc monotonic pool talloc apr obstack)
    tslab_bench_smoke(arena_${mode} arena_request "request_ns=${positive}" ${mode} 1000)
    if(mode MATCHES "talloc|apr|obstack" AND NOT "arena/${mode}.cpp" IN_LIST arena_sources)
      set_tests_properties(bench_smoke_arena_${mode} PROPERTIES
        PASS_REGULAR_EXPRESSION "not built in: ${mode}")
    endif()
  endforeach()
endif()
if(TARGET epoch_server)
  tslab_bench_smoke(server_plain epoch_server
    "mode=plain .*cpu_us=${positive}.* peak_mb=${positive}.* wrong=0" 2000)
endif()
tslab_bench_smoke(request_leaks request_leaks "lost_bytes=${positive}" 1000)
tslab_bench_smoke(epoch_survivors epoch_survivors
  "survivors=2000 live_bytes=${positive}.*survivor_bytes=${positive}" 2000)
tslab_bench_smoke(epoch_survivors_most epoch_survivors
  "survivors=[1-9][0-9]?[0-9]?[0-9]?[0-9]?[0-9]? live" --most 20 1000000)
tslab_bench_smoke(epoch_labels epoch_labels "mode=plain request_us=${positive}" 20 30)
tslab_bench_smoke(lifetime_plain lifetime_mix "burst_1=${positive}" 1 20 50)

# Programs that use epochs find them in the library that is preloaded.
function(tslab_bench_smoke_epochs name program expected)
  tslab_bench_smoke(${name} ${program} ${expected} ${ARGN})
  set_tests_properties(bench_smoke_${name} PROPERTIES
    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:tslab_preload>")
endfunction()

if(TARGET tslab_preload)
  # Each of 20,000 blocks of 128 bytes comes from a slab of 512, by bins of at most 64.
  string(CONCAT told
    "slabs_opened=[34][0-9] refills=[34][0-9][0-9] returned=${positive} slow_path_pct=${positive} "
    ".*slow path hits ${positive}, .*current misses ${positive}, .*\n"
    "dominant cause of the tail: [a-z]")
  tslab_bench_smoke_epochs(accurate_of_ours benchmark_accurate "${told}"
    --blocks 20000 --operations 20000)
  tslab_bench_smoke_epochs(random_mixed_of_ours bench_random_mixed
    "rate=${positive} unit=Mops/s slow_path_pct=${positive}" 100000 8192 7)
  tslab_bench_smoke_epochs(bursts_kept burst_cost "gives=nothing .*cpu_ms=${positive}"
    --never 2 20000 5)
  tslab_bench_smoke_epochs(idle_return_inside idle_return "live_bytes=${positive}"
    --pinned --inside 20000 10 20 40)
  tslab_bench_smoke_epochs(epoch_costs epoch_costs "open_use_close_ns=${positive}" 1000 2)
  if(TARGET epoch_requests)
    tslab_bench_smoke_epochs(epoch_requests epoch_requests
      "plain_ns=${positive}.* own_x=${positive}.* released_x=${positive}" 100 2)
    tslab_bench_smoke_epochs(epoch_containers epoch_containers
      "plain_ns=${positive}.* epoch_x=${positive}.* shared_x=${positive}" 100 2)
    tslab_bench_smoke_epochs(epoch_containers_counted epoch_containers
      "plain_instructions=${positive}.* epoch_x=${positive}.* shared_x=${positive}"
      --instructions 20)
    set_tests_properties(bench_smoke_epoch_containers_counted PROPERTIES TIMEOUT 100)
    add_test(NAME bench_smoke_without_valgrind COMMAND epoch_requests --instructions 20)
    set_tests_properties(bench_smoke_without_valgrind PROPERTIES LABELS bench
      ENVIRONMENT "PATH=/nowhere;LD_PRELOAD=$<TARGET_FILE:tslab_preload>"
      PASS_REGULAR_EXPRESSION "cannot count instructions: valgrind is not installed")
  endif()
  foreach(mode IN ITEMS epoch_free epoch_release)
    if(TARGET request_objects)
      tslab_bench_smoke_epochs(request_${mode} request_objects "request_ns=${positive}"
        ${mode} 1000)
      tslab_bench_smoke_epochs(arena_${mode} arena_request "request_ns=${positive}" ${mode} 1000)
    endif()
  endforeach()
  tslab_bench_smoke_epochs(epoch_sessions epoch_sessions "resident_over_live=${positive}"
    --released 64 200000)
  tslab_bench_smoke_epochs(epoch_sessions_passing epoch_sessions
    "resident_over_live=${positive}" --wrapped --passing 64 200000)
  tslab_bench_smoke_epochs(many_epochs many_epochs "near_ns=${positive}" 100 10000)
  tslab_bench_smoke_epochs(epoch_curve epoch_curve
    "alloc_ns_1=${positive}.* floor_ns_100=${positive}.* filled_kib_100=${positive}" 100 10000 2)
  tslab_bench_smoke_epochs(lifetime_epochs lifetime_mix "burst_1=${positive}" --epochs 1 20 50)
  if(TARGET epoch_server)
    foreach(mode IN ITEMS wrapped shared annotated released)
      tslab_bench_smoke_epochs(server_${mode} epoch_server
        "mode=${mode} .*cpu_us=${positive}.* idle_mb=${positive}.* wrong=0" --${mode} 2000)
    endforeach()
  endif()
  foreach(mode IN ITEMS wrapped annotated)
    tslab_bench_smoke_epochs(lifetime_${mode} lifetime_mix
      "mode=${mode} .*peak_bytes=${positive}.*burst_1=${positive}"
      --${mode} --helper --idle 1 20 50)
  endforeach()
  tslab_bench_smoke_epochs(request_leaks_wrapped request_leaks
    "mode=wrapped .*resident_over_live=${positive}" --wrapped 1000)
  tslab_bench_smoke_epochs(epoch_survivors_wrapped epoch_survivors
    "mode=wrapped survivors=2000 .*survivor_bytes=${positive}" --wrapped 2000)
  tslab_bench_smoke_epochs(epoch_labels_wrapped epoch_labels
    "mode=wrapped request_us=${positive} resident_mb=${positive}" --wrapped --keeps 20 30)
  tslab_bench_smoke_epochs(epoch_churn epoch_churn "late_bytes=${positive}" 110 2000)
  tslab_bench_smoke_epochs(epoch_close_drained epoch_close_drained "close_ns=${positive}" 20000)
endif()
add_test(NAME bench_smoke_without_epochs COMMAND epoch_costs)
set_tests_properties(bench_smoke_without_epochs PROPERTIES
  LABELS bench PASS_REGULAR_EXPRESSION "needs epochs")

include(synthetic/smoke.cmake)
tslab_bench_smoke(epoch_curve_refuses epoch_curve "" 0)
set_tests_properties(bench_smoke_epoch_curve_refuses PROPERTIES
  PASS_REGULAR_EXPRESSION "out of range: 0.*usage: epoch_curve")
if(TARGET arena_request)
  tslab_bench_smoke(arena_refuses arena_request "" x)
  set_tests_properties(bench_smoke_arena_refuses PROPERTIES
    PASS_REGULAR_EXPRESSION "not a mode: x.*usage: arena_request")
endif()

foreach(bad IN ITEMS 0 x -1 99999999999999999999)
  add_test(NAME bench_smoke_refuses_${bad} COMMAND bench_random_mixed ${bad})
  set_tests_properties(bench_smoke_refuses_${bad} PROPERTIES
    LABELS bench PASS_REGULAR_EXPRESSION "usage: bench_random_mixed")
endforeach()

# Two runs into one file: one header, and the second run's rows behind the first one's.
function(tslab_bench_smoke_file name option expected program)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  string(REPLACE ";" " " arguments "${ARGN}")
  set(run "$<TARGET_FILE:${program}> ${option} '${file}' ${arguments} >/dev/null")
  add_test(NAME bench_smoke_file_${name}
    COMMAND sh -c "rm -f '${file}' && ${run} && ${run} && cat '${file}'")
  set_tests_properties(bench_smoke_file_${name} PROPERTIES
    LABELS bench TIMEOUT 20 PASS_REGULAR_EXPRESSION "^${expected}")
endfunction()

set(row "[^\n]+\n")
set(rows "[^,]+,1,128,malloc,${row}${row}${row}${row}[^,]+,1,128,malloc,")
tslab_bench_smoke_file(latency.csv --csv
  "allocator,threads,size_class,op,avg_ns,p50_ns,p95_ns,p99_ns,p999_ns,ops_per_sec\n${rows}"
  benchmark_accurate --blocks 1000 --operations 1000)
tslab_bench_smoke_file(fragmentation.csv --fragmentation
  "allocator,size_class,requested,rounded,wasted,efficiency_pct\n[^,]+,[0-9]+,48,"
  benchmark_accurate --blocks 1000 --operations 1000)
tslab_bench_smoke_file(rss_churn.csv --csv
  "allocator,cycle,rss_mib,slabs_allocated,slabs_recycled,slabs_overflowed\n[^,]+,0,[0-9.]+,,,\n"
  churn_test --live 1000 --cycles 100)
if(TARGET tslab_preload)
  tslab_bench_smoke_file(rss_churn_of_ours.csv --csv
    "${row}libtslab[^,]+,0,[0-9.]+,[1-9][0-9]*,0,\n"
    churn_test --live 10000 --cycles 100)
  # Slabs that drain are given up.
  tslab_bench_smoke_file(rss_churn_of_the_oldest.csv --csv
    "${row}libtslab[^,]+,0,[0-9.]+,[1-9][0-9]*,0,\n(${row})*[^,]+,100,[0-9.]+,[0-9]+,[1-9][0-9]*,\n"
    churn_test --oldest --cycles 100)
  foreach(churned IN ITEMS ours the_oldest)
    set_tests_properties(bench_smoke_file_rss_churn_of_${churned}.csv PROPERTIES
      ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:tslab_preload>")
  endforeach()
endif()
tslab_bench_smoke_file(scaling.csv --csv
  "allocator,threads,throughput_ops_sec,avg_ns,p50_ns,p95_ns,p99_ns\n[^,]+,2,${row}[^,]+,2,"
  benchmark_threads --blocks 1000 2)
tslab_bench_smoke_file(churn_fixed.hgrm --hgrm
  "# program=churn_fixed operation=malloc allocator=[^ ]+ version=${row}[0-9.]+ [0-9]+\n"
  churn_fixed --live 1000 --cycles 20)
tslab_bench_smoke_file(threads.hgrm --hgrm
  "# program=benchmark_threads operation=malloc threads=2 .*operation=free threads=2"
  benchmark_threads --blocks 1000 2)
add_test(NAME bench_smoke_json COMMAND churn_fixed --json --live 1000 --cycles 2)
set_tests_properties(bench_smoke_json PROPERTIES LABELS bench
  PASS_REGULAR_EXPRESSION "^{\"program\": \"churn_fixed\", .*\"p99999_over_p50\": [0-9.]+, .*}\n$")

# As above for the rest, and the status.
function(tslab_bench_smoke_refuses name program)
  string(REPLACE ";" " " arguments "${ARGN}")
  add_test(NAME bench_smoke_${program}_refuses_${name}
    COMMAND sh -c "$<TARGET_FILE:${program}> ${arguments}; echo status $?")
  set_tests_properties(bench_smoke_${program}_refuses_${name} PROPERTIES
    LABELS bench TIMEOUT 20 PASS_REGULAR_EXPRESSION "usage: ${program}.*status 2")
endfunction()

foreach(program IN ITEMS benchmark_accurate benchmark_threads churn_fixed churn_test smoke_tests
    ws_sweep idle_return realloc_growth thread_shapes lifetime_mix request_leaks epoch_survivors)
  tslab_bench_smoke_refuses(unknown ${program} --nonsense)
endforeach()
tslab_bench_smoke_refuses(few request_leaks 99)
tslab_bench_smoke_refuses(room epoch_survivors --most 1)
tslab_bench_smoke_refuses(two lifetime_mix --wrapped --annotated)
if(TARGET epoch_requests)
  tslab_bench_smoke_refuses(way epoch_requests --only x)
  tslab_bench_smoke_refuses(two epoch_server --wrapped --shared)
  tslab_bench_smoke_refuses(rounds epoch_containers --instructions 10 10)
endif()
tslab_bench_smoke_refuses(file benchmark_accurate --csv /nowhere/latency.csv)
tslab_bench_smoke_refuses(few churn_fixed --live 1)
tslab_bench_smoke_refuses(few churn_test --cycles 1)
tslab_bench_smoke_refuses(text churn_test --live x)
tslab_bench_smoke_refuses(zero benchmark_threads 0)
tslab_bench_smoke_refuses(few ws_sweep 1000 8)
tslab_bench_smoke_refuses(order idle_return 1000 20 10)
tslab_bench_smoke_refuses(one thread_shapes free_only 1)
tslab_bench_smoke_refuses(none thread_shapes)
