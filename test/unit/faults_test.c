#include <setjmp.h>
#include <signal.h>

#include "capture.h"
#include "os/os.h"

enum { MOST_CODE_BYTES = 1000 };  // with what sanitizers add

static char *page;
static const void *asked, *asked_by;
static sigjmp_buf back;

static void page_forbid(void) {
  page = tsl_os_borrow(tsl_os_page_bytes());
  CHECK(page != NULL && tsl_os_protect(page, tsl_os_page_bytes(), true));
}

static bool page_open(const void *address, const void *code) {
  asked = address;
  asked_by = code;
  return tsl_os_protect(page, tsl_os_page_bytes(), false);
}

static bool refuse(const void *address, const void *code) {
  asked = address;
  asked_by = code;
  return false;
}

TSL_NOINLINE static void page_write(void) { *(volatile char *)(page + 5) = 1; }

static void what_is_explained_is_tried_again(void) {
  page_forbid();
  tsl_os_explain_faults(page_open);
  page_write();
  CHECK(asked == page + 5);
  CHECK((uintptr_t)asked_by - (uintptr_t)page_write < MOST_CODE_BYTES);
  CHECK_EQ(page[5], 1);
}

static void else_the_program_ends(void) {
  page_forbid();
  tsl_os_explain_faults(refuse);
  int status = capture_child(page_write);
  CHECK(status != 0);  // sanitizers report the signal and exit
}

static void jump_back(int number) { siglongjmp(back, number); }

static void jump_back_with_details(int number, siginfo_t *info, void *context) {
  (void)context;
  siglongjmp(back, info->si_addr == page + 5 ? number : -1);
}

static void check_handled(const struct sigaction *own) {
  page_forbid();
  CHECK_EQ(sigaction(SIGSEGV, own, NULL), 0);
  tsl_os_explain_faults(refuse);
  volatile int number = sigsetjmp(back, 1);
  if (number == 0) page_write();
  CHECK_EQ(number, SIGSEGV);
}

static void or_its_own_handler_runs(void) {
  check_handled(&(struct sigaction){.sa_handler = jump_back});
}

static void with_details_where_it_asked_for_them(void) {
  struct sigaction own = {.sa_flags = SA_SIGINFO};
  own.sa_sigaction = jump_back_with_details;
  check_handled(&own);
}

int main(void) {
  RUN(what_is_explained_is_tried_again);
  RUN(else_the_program_ends);
  RUN(or_its_own_handler_runs);
  RUN(with_details_where_it_asked_for_them);
  return test_status();
}
