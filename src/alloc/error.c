// error: what the errors of include/tslab.h mean, in words.
#include <errno.h>

#include "tslab.h"

const char *tslab_error_text(int error) {
  switch (error) {
    case 0: return "no error";
    case EPERM:
      return "not allowed: the default epoch is not ended nor changed, nor is the shared epoch of "
             "a label ended, a scope is left as the innermost one of its thread, and a thread that "
             "ends enters none";
    case ENOENT: return "no option has this name";
    case ENOMEM: return "no memory: the system has no more, or a limit of the epoch refused it";
    case EFAULT: return "no live block lies at this address";
    case EBUSY: return "a thread is still inside the epoch, or closes or resets it at this moment";
    case EINVAL:
      return "an argument does not fit: a label over 63 bytes, an alignment that is no power of "
             "two, a struct whose `size` was not set, or a value that the option does not take";
    case ERANGE: return "the value needs a larger buffer";
    case ELOOP: return "the parent epoch has 63 ancestors, and cannot have more children";
    case ENOTSUP:
      return "the system refused the advice; or the epoch shares its label's memory, and has no "
             "limits, nor does a release or a reset end its objects";
    case ESTALE: return "the epoch is over, or never was";
    case ECANCELED: return "the epoch has ended: it was closed or released";
    default: return "not an error of tslab";
  }
}
