#include "alloc/face.h"

#include "base/atomic.h"
#include "base/options.h"
#include "base/warn.h"
#include "tslab.h"

const char tsl_face_version[] = TSLAB_VERSION;

// The call goes to the copy that the loader found first.
void tsl_face_look_for_first(void) {
  const char *first = tslab_version();
  if (first == tsl_face_version) return;
  tsl_options.stats = 0;
  if (tsl_option(on_error) == TSL_ON_ERROR_IGNORE) return;
  tsl_warn(
      "two copies of the library are in use, of versions %s and %s, and cannot free each "
      "other's blocks; let all parts of the program have the first",
      first, tsl_face_version);
}

// A thread that comes here while another one parts the libraries does the same: it must not go on
// before.
void tsl_face_expect_epoch(void) {
  static uint32_t parted;                                  // [remote]
  if (tsl_likely(tsl_load_acquire(&parted) != 0)) return;  // pairs: libraries
  bool wanted = tsl_option(libraries) == TSL_LIBRARIES_APART;
  if (wanted && tsl_face_captures()) tsl_face_part_libraries();
  tsl_store_release(&parted, 1);  // pairs: libraries
}

void tsl_face_expect_capture(void) {
  static uint32_t said;  // [remote]
  tsl_face_expect_epoch();
  if (tsl_face_captures() || tsl_option(on_error) == TSL_ON_ERROR_IGNORE) return;
  if (tsl_exchange_relaxed(&said, 1) != 0) return;
  tsl_warn("scopes hold tslab_* allocations only, because malloc is not tslab's here; %s",
           tsl_face_remedy);
}
