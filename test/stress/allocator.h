// allocator: which functions the stress programs allocate by.
//
// Preloaded or linked as users do, they call malloc. Built with STRESS_TSLAB_API they call tslab_*
// alone: a sanitizer keeps malloc for itself and watches ours.
#ifndef TSLAB_TEST_ALLOCATOR_H
#define TSLAB_TEST_ALLOCATOR_H

#include <malloc.h>
#include <stdlib.h>

#ifdef STRESS_TSLAB_API

#include <tslab.h>

#define allocator_malloc tslab_malloc
#define allocator_calloc tslab_calloc
#define allocator_realloc tslab_realloc
#define allocator_reallocarray tslab_reallocarray
#define allocator_aligned_alloc tslab_aligned_alloc
#define allocator_posix_memalign tslab_posix_memalign
#define allocator_free tslab_free
#define allocator_usable_size tslab_usable_size
#define allocator_trim tslab_trim

#else

#define allocator_malloc malloc
#define allocator_calloc calloc
#define allocator_realloc realloc
#define allocator_reallocarray reallocarray
#define allocator_aligned_alloc aligned_alloc
#define allocator_posix_memalign posix_memalign
#define allocator_free free
#define allocator_usable_size malloc_usable_size
#define allocator_trim malloc_trim

#endif

#endif
