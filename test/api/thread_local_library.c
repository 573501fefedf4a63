// thread_local_library: a library that a program loads late, so that each thread gets its memory
// here at the first touch.
enum { WORDS = 4096 };

static __thread int counts[WORDS];

int library_count(void);

int library_count(void) { return ++counts[WORDS - 1]; }
