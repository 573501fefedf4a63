// probe: static probes (USDT) on slow paths, for bpftrace, perf, gdb and SystemTap. A probe is a
// no-op instruction until a tool attaches to it. A library that was built without <sys/sdt.h> has
// none. docs/probes.md lists them.
#pragma once

#include "base/compiler.h"

#if defined(__has_include) && __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define TSL_PROBE1(name, a) DTRACE_PROBE1(tslab, name, a)
#define TSL_PROBE2(name, a, b) DTRACE_PROBE2(tslab, name, a, b)
#define TSL_PROBE3(name, a, b, c) DTRACE_PROBE3(tslab, name, a, b, c)
// The probes of samples have the names that profilers look for in any allocator.
#define TSL_PROBE_SAMPLED(block, bytes, weight) \
  DTRACE_PROBE3(TSL_SAMPLE_PROVIDER, alloc, block, bytes, weight)
#define TSL_PROBE_ENDED(block) DTRACE_PROBE1(TSL_SAMPLE_PROVIDER, free, block)
#else
#define TSL_PROBE1(name, a) ((void)(a))
#define TSL_PROBE2(name, a, b) ((void)(a), (void)(b))
#define TSL_PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define TSL_PROBE_SAMPLED(block, bytes, weight) ((void)(block), (void)(bytes), (void)(weight))
#define TSL_PROBE_ENDED(block) ((void)(block))
#endif

// The build may name another provider (TSLAB_SAMPLE_PROVIDER).
#ifndef TSL_SAMPLE_PROVIDER
#define TSL_SAMPLE_PROVIDER otel_memory
#endif
