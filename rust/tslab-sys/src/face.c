// face: what a Rust program has in place of override/alone.c. There malloc is Rust's allocator.
#include "alloc/face.h"

// lib.rs asks Rust's allocator for a block.
extern bool tslab_rust_captures(void);

const char *const tsl_face_remedy =
    "in Rust, let a `static` of type tslab::TemporalSlab be the #[global_allocator]";

bool tsl_face_captures(void) { return tslab_rust_captures(); }

// The C library has its own.
void tsl_face_part_libraries(void) {}

void tsl_face_begin(void) {}
