# synthetic_bench: every pattern for a second, its policies, its files, and what it refuses.
function(tslab_synthetic_smoke name expected)
  tslab_bench_smoke(synthetic_${name} synthetic_bench "${expected}"
    --allocator=malloc --duration_s=1 ${ARGN})
endfunction()

function(tslab_synthetic_smoke_epochs name expected)
  tslab_bench_smoke_epochs(synthetic_epochs_${name} synthetic_bench "${expected}"
    --allocator=tslab --duration_s=1 ${ARGN})
endfunction()

# Refused with these words and status 2.
function(tslab_synthetic_refuses name expected)
  add_test(NAME bench_smoke_synthetic_refuses_${name}
    COMMAND sh -c "\"$@\"; echo status $?" sh $<TARGET_FILE:synthetic_bench> ${ARGN})
  set_tests_properties(bench_smoke_synthetic_refuses_${name} PROPERTIES
    LABELS bench TIMEOUT 20
    PASS_REGULAR_EXPRESSION "${expected}.*usage: synthetic_bench.*status 2")
endfunction()

set(no_lag "lag_least=0 lag_most=0 ")
set(lag_of_8 "held=400 .*lag_least=8 lag_most=8 ")
tslab_synthetic_smoke(burst "pattern=burst .*p50_ns=${positive}.* ${no_lag}" --pattern=burst)
tslab_synthetic_smoke(steady "pattern=steady .*${lag_of_8}" --pattern=steady)
tslab_synthetic_smoke(leak "pattern=leak .*leaked=${positive}" --pattern=leak)
tslab_synthetic_smoke(hotspot "pattern=hotspot .*${no_lag}" --pattern=hotspot)
tslab_synthetic_smoke(kernel "pattern=kernel .*${no_lag}" --pattern=kernel)
tslab_synthetic_smoke(overload "late=${positive}.* unserved=${positive}"
  --pattern=kernel --rate_factor=10000)
tslab_synthetic_smoke(closed
  "loop=closed .*late=0 overslept=0 unserved=0 .*held=6 .*lag_least=3 lag_most=3 "
  --rate_factor=max --threads=2 --objs_min=1 --objs_max=1 --sizes=64:1,4096:2 --free_policy=lag:3
  --rss_sample_ms=0 --hold_s=1)

set(synthetic_csv ${CMAKE_CURRENT_BINARY_DIR}/synthetic_smoke.csv)
set(synthetic_hgrm ${CMAKE_CURRENT_BINARY_DIR}/synthetic_smoke.hgrm)
add_test(NAME bench_smoke_synthetic_clean COMMAND ${CMAKE_COMMAND} -E rm -f ${synthetic_csv})
tslab_synthetic_smoke(files "p50_ns=${positive}" --csv=${synthetic_csv} --hgrm=${synthetic_hgrm})
add_test(NAME bench_smoke_synthetic_written
  COMMAND ${CMAKE_COMMAND} -E cat ${synthetic_csv} ${synthetic_hgrm})
set_tests_properties(bench_smoke_synthetic_clean PROPERTIES
  LABELS bench FIXTURES_SETUP synthetic_clean)
set_tests_properties(bench_smoke_synthetic_files PROPERTIES
  FIXTURES_REQUIRED synthetic_clean FIXTURES_SETUP synthetic_files)
set_tests_properties(bench_smoke_synthetic_written PROPERTIES
  LABELS bench FIXTURES_REQUIRED synthetic_files PASS_REGULAR_EXPRESSION
  "^allocator,version,pattern,[^#]*,burst,malloc,open,1,[^#]*# program=synthetic_bench .* 1\n")

# That what the closes tell agrees with what was left is the program's own check: there is no result
# otherwise.
if(TARGET tslab_preload)
  foreach(pattern IN ITEMS burst hotspot kernel)
    tslab_synthetic_smoke_epochs(${pattern}
      "pattern=${pattern} mode=tslab .*survivors=0 .*epochs=${positive}" --pattern=${pattern})
  endforeach()
  tslab_synthetic_smoke_epochs(steady "survivors=${positive}.* ${lag_of_8}" --pattern=steady)
  tslab_synthetic_smoke_epochs(leak "leaked=${positive}.* survivors=${positive}" --pattern=leak)
  tslab_synthetic_smoke_epochs(manual "leaked=${positive}.* survivors=${positive}.* epochs=2 "
    --threads=2 --req_rate=100 --epoch_policy=manual --free_policy=leak:10)
endif()

tslab_synthetic_refuses(other_malloc "needs libtslab-preload.so" --allocator=tslab)
tslab_synthetic_refuses(pattern "no pattern: x" --pattern=x)
tslab_synthetic_refuses(policy "no epoch policy: batch" --epoch_policy=batch)
tslab_synthetic_refuses(leak "out of range: 101" --free_policy=leak:101)
tslab_synthetic_refuses(sizes "not BYTES:WEIGHT: 128" --sizes=128)
tslab_synthetic_refuses(rate "not a number: fast" --rate_factor=fast)
tslab_synthetic_refuses(objects "--objs_min is above --objs_max" --objs_min=500)
tslab_synthetic_refuses(samples "too few samples" --duration_s=1 --rss_sample_ms=200)
tslab_synthetic_refuses(hold "out of range: 86401" --hold_s=86401)
tslab_synthetic_refuses(argument "unexpected argument: --threads" --threads 2)
