// nothrow: the one place that needs a C++ compiler, because a nothrow new must end what its
// new-handler throws. The C++ runtime's names are weak: a program without that runtime has no
// new-handler either.
__asm__(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch");

extern "C" __attribute__((visibility("hidden"))) bool tsl_call_new_handler(void (*handler)()) {
  try {
    handler();
    return true;
  } catch (...) {
    return false;
  }
}
