// libraries: what the C library, the loader and the C++ runtime make in passing and keep lies in no
// declared epoch, so that a release leaves it alone. Each case runs in a process of its own, which
// calls a function in an epoch, counts what is left there, releases it, and calls again.
//
//   api_libraries apart|inside LIBRARY     what option `libraries` is expected to do
#include <dlfcn.h>
#include <execinfo.h>
#include <iconv.h>
#include <libintl.h>
#include <pthread.h>
#include <pwd.h>
#include <sys/wait.h>
#include <tslab.h>

#include <clocale>
#include <ctime>
#include <cwchar>
#include <exception>
#include <iomanip>
#include <locale>
#include <sstream>
#include <string>

#include "../check.h"

namespace {

constexpr int kKeys = 40;  // the first 32 of a thread need no memory
constexpr int kHandlers = 40;

int (*count_in_library)();
std::locale *named;

void time_zone() {
  time_t now = 86400;
  tm parts;
  CHECK(localtime_r(&now, &parts) != nullptr);
  CHECK_EQ(parts.tm_year, 70);
}

void environment() {
  CHECK_EQ(setenv("TSLAB_TEST_OF_LIBRARIES", "a value", 1), 0);
  CHECK_EQ(strcmp(getenv("TSLAB_TEST_OF_LIBRARIES"), "a value"), 0);
}

void locale_of_process() {
  CHECK(setlocale(LC_ALL, "C.UTF-8") != nullptr);
  CHECK_EQ(strcmp(setlocale(LC_CTYPE, nullptr), "C.UTF-8"), 0);
}

void exit_handlers() {
  for (int i = 0; i < kHandlers; i++) CHECK_EQ(atexit([] {}), 0);
}

void threads() {
  for (int i = 0; i < 4; i++) {
    pthread_t thread;
    CHECK_EQ(pthread_create(
                 &thread, nullptr, [](void *word) { return word; }, nullptr),
             0);
    CHECK_EQ(pthread_join(thread, nullptr), 0);
  }
}

void thread_keys() {
  static pthread_key_t keys[kKeys];
  if (keys[kKeys - 1] == 0)
    for (pthread_key_t &key : keys) CHECK_EQ(pthread_key_create(&key, nullptr), 0);
  CHECK_EQ(pthread_setspecific(keys[kKeys - 1], keys), 0);
  CHECK(pthread_getspecific(keys[kKeys - 1]) == keys);
}

struct late {
  ~late() { destroyed++; }
  int value = 1;
  static int destroyed;
};
int late::destroyed;

void thread_local_object() {
  thread_local late object;
  CHECK_EQ(object.value, 1);
}

void thread_local_of_library() { CHECK(count_in_library() > 0); }

void library() { CHECK(dlopen("libresolv.so.2", RTLD_NOW) != nullptr); }

void loader_error() {
  CHECK(dlsym(RTLD_DEFAULT, "tslab_has_no_such_name") == nullptr);
  CHECK(strstr(dlerror(), "tslab_has_no_such_name") != nullptr);
}

void users() { CHECK_EQ(strcmp(getpwuid(0)->pw_name, "root"), 0); }

// A system of a cross compiler has the converters that are built in alone.
void conversion() {
  iconv_t opened = iconv_open("UTF-16LE", "ISO-8859-15");
  if (opened == (iconv_t)-1) opened = iconv_open("UCS-2", "UTF-8");
  char from[] = "x", to[8], *in = from, *out = to;
  size_t in_left = 1, out_left = sizeof to;
  CHECK(opened != (iconv_t)-1);
  CHECK_EQ(iconv(opened, &in, &in_left, &out, &out_left), 0);
  CHECK_EQ(iconv_close(opened), 0);
}

void output() { CHECK(printf("a line of %d\n", 1) > 0); }

void wide_output() { CHECK(wprintf(L"a line of %d\n", 1) > 0); }

void error_text() { CHECK(strstr(strerror(123456), "123456") != nullptr); }

void translation() { CHECK(bindtextdomain("tslab", "/nowhere") != nullptr); }

void stack() {
  void *calls[4];
  CHECK(backtrace(calls, 4) > 0);
}

template <class Char>
std::basic_string<Char> in_named_locale() {
  std::basic_ostringstream<Char> out;
  out.imbue(*named);
  out << std::boolalpha << 1234.5 << true;
  return out.str();
}

void numerals() { CHECK(in_named_locale<char>() == "1234.5true"); }
void wide_numerals() { CHECK(in_named_locale<wchar_t>() == L"1234.5true"); }

template <class Char>
void money_in_named_locale() {
  for (bool international : {false, true}) {
    std::basic_ostringstream<Char> out;
    out.imbue(*named);
    std::use_facet<std::money_put<Char>>(*named).put(out, international, out, Char(' '), 12345.0L);
    CHECK(out.good());
  }
}

void money() { money_in_named_locale<char>(); }
void wide_money() { money_in_named_locale<wchar_t>(); }

void exception() {
  static std::exception_ptr kept;
  if (kept != nullptr) return;
  try {
    throw 7;
  } catch (...) {
    kept = std::current_exception();
  }
}

constexpr struct {
  const char *name;
  void (*call)();
} cases[] = {
    {"time zone", time_zone},
    {"environment", environment},
    {"locale of the process", locale_of_process},
    {"exit handlers", exit_handlers},
    {"threads", threads},
    {"keys of threads", thread_keys},
    {"thread-local object", thread_local_object},
    {"thread-local memory of a library", thread_local_of_library},
    {"library", library},
    {"error of the loader", loader_error},
    {"users", users},
    {"conversion", conversion},
    {"output", output},
    {"wide output", wide_output},
    {"text of an error", error_text},
    {"translation", translation},
    {"call stack", stack},
    {"numerals", numerals},
    {"wide numerals", wide_numerals},
    {"money", money},
    {"wide money", wide_money},
    {"exception", exception},
};

tslab_epoch epoch_open(void) {
  tslab_epoch_options options{};
  options.size = sizeof options;
  options.place = TSLAB_PLACE_OWN;
  tslab_epoch id = tslab_epoch_open("a case", &options);
  CHECK(id != TSLAB_NO_EPOCH);
  return id;
}

// The thread has a heap in the epoch before its first scope, as programs have that allocate the
// request itself by the epoch's id.
template <class Work>
tslab_epoch run_in_epoch(Work work) {
  tslab_epoch id = epoch_open();
  tslab_scope scope;
  tslab_free(tslab_epoch_malloc(id, 16));
  CHECK_EQ(tslab_scope_enter(&scope, id), 0);
  work();
  CHECK_EQ(tslab_scope_leave(&scope), 0);
  return id;
}

size_t objects_in(tslab_epoch id) {
  tslab_epoch_stats stats{};
  stats.size = sizeof stats;
  CHECK_EQ(tslab_epoch_get_stats(id, &stats), 0);
  return stats.live_objects;
}

// What is released is soon another's, who writes to it.
void overwrite() {
  CHECK_EQ(tslab_epoch_release(run_in_epoch([] {
             for (size_t bytes = 16; bytes < 8192; bytes += 16) memset(malloc(bytes), 0xA5, bytes);
           })),
           0);
}

// What the program copies is its own.
void strings_are_in_the_epoch() {
  const char *text = "a text that was asked for";
  char *whole = nullptr, *part = nullptr;
  tslab_epoch id = run_in_epoch([&] {
    whole = strdup(text);
    part = strndup(text, 6);
  });
  CHECK_EQ(strcmp(whole, text), 0);
  CHECK_EQ(strcmp(part, "a text"), 0);
  CHECK_EQ(tslab_epoch_of(whole), id);
  CHECK_EQ(tslab_epoch_of(part), id);
  CHECK_EQ(tslab_epoch_release(id), 0);
}

// A block that a library makes larger stays where it is.
void what_a_library_resizes_keeps_its_epoch() {
  size_t room = 16;
  char *line = nullptr;
  FILE *file = fopen("/proc/self/maps", "r");
  CHECK(file != nullptr);
  tslab_epoch id = run_in_epoch([&] {
    line = static_cast<char *>(malloc(room));
    CHECK(getline(&line, &room, file) > 16);
  });
  CHECK_EQ(tslab_epoch_of(line), id);
  CHECK_EQ(fclose(file), 0);
  CHECK_EQ(tslab_epoch_release(id), 0);
}

[[noreturn]] void run_case(void (*call)(), bool apart) {
  tslab_epoch id = run_in_epoch(call);
  CHECK_THAT((objects_in(id) == 0) == apart, "%zu objects", objects_in(id));
  if (apart) {
    CHECK_EQ(tslab_epoch_release(id), 0);
    overwrite();
    CHECK_EQ(tslab_epoch_release(run_in_epoch(call)), 0);
    call();
  }
  _exit(0);
}

}  // namespace

int main(int count, char **values) {
  CHECK_EQ(count, 3);
  bool apart = strcmp(values[1], "apart") == 0;
  void *library = dlopen(values[2], RTLD_NOW);
  CHECK(library != nullptr);
  count_in_library = reinterpret_cast<int (*)()>(dlsym(library, "library_count"));
  CHECK(count_in_library != nullptr && tslab_captures_malloc());
  strings_are_in_the_epoch();
  what_a_library_resizes_keeps_its_epoch();
  std::locale made("C.UTF-8");
  named = &made;
  for (const auto &each : cases) {
    pid_t child = fork();
    CHECK(child >= 0);
    check_context_set("%s", each.name);
    if (child == 0) run_case(each.call, apart);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_THAT(status == 0, "status %d", status);
  }
  return 0;
}
