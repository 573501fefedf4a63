// The C headers compile without a warning in each standard, with what their macros become.
#include <tslab.h>
#include <tslab_stats.h>
#include <tslab_stats_read.h>

extern tslab_rotation by_time, by_hand;
tslab_rotation by_time = TSLAB_ROTATION("minute", .every_ms = 60000);
tslab_rotation by_hand = TSLAB_ROTATION("by hand");

tslab_epoch no_epoch(int wanted);
tslab_epoch no_epoch(int wanted) { return wanted ? TSLAB_NO_EPOCH : TSLAB_DEFAULT; }
