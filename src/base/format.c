#include "base/format.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sink {
  char *at;
  char *end;  // last place, kept for the NUL
};

static void sink_put(struct sink *sink, const char *text, size_t length) {
  size_t room = (size_t)(sink->end - sink->at);
  if (length > room) length = room;
  memcpy(sink->at, text, length);
  sink->at += length;
}

static void sink_put_number(struct sink *sink, uint64_t value, unsigned base) {
  char digits[24];
  char *at = digits + sizeof digits;
  do {
    *--at = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  sink_put(sink, at, (size_t)(digits + sizeof digits - at));
}

static void sink_put_signed(struct sink *sink, int64_t value) {
  if (value < 0) sink_put(sink, "-", 1);
  sink_put_number(sink, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
}

static void sink_put_text(struct sink *sink, const char *text) {
  if (text == NULL) text = "(null)";
  sink_put(sink, text, strlen(text));
}

// Handles one conversion after its '%'; returns the place behind it.
static const char *sink_convert(struct sink *sink, const char *at, va_list *list) {
  bool wide = at[0] == 'z' || (at[0] == 'l' && at[1] == 'l');
  if (wide) at += at[0] == 'z' ? 1 : 2;
  switch (*at) {
    case 's': sink_put_text(sink, va_arg(*list, const char *)); break;
    case 'c': sink_put(sink, &(char){(char)va_arg(*list, int)}, 1); break;
    case 'd': sink_put_signed(sink, va_arg(*list, int)); break;
    case 'u':
      sink_put_number(sink, wide ? va_arg(*list, unsigned long long) : va_arg(*list, unsigned), 10);
      break;
    case 'x': sink_put_number(sink, va_arg(*list, unsigned), 16); break;
    case 'p':
      sink_put(sink, "0x", 2);
      sink_put_number(sink, (uintptr_t)va_arg(*list, void *), 16);
      break;
    case '%': sink_put(sink, "%", 1); break;
    default:
      if (TSL_DEBUG >= 1) __builtin_trap();
      return at;
  }
  return at + 1;
}

size_t tsl_format_list(char *buffer, size_t size, const char *format, va_list list) {
  struct sink sink = {buffer, buffer + size - 1};
  va_list rest;
  va_copy(rest, list);
  while (*format != '\0') {
    if (*format == '%') {
      format = sink_convert(&sink, format + 1, &rest);
    } else {
      sink_put(&sink, format++, 1);
    }
  }
  va_end(rest);
  *sink.at = '\0';
  return (size_t)(sink.at - buffer);
}

size_t tsl_format(char *buffer, size_t size, const char *format, ...) {
  va_list list;
  va_start(list, format);
  size_t length = tsl_format_list(buffer, size, format, list);
  va_end(list);
  return length;
}
