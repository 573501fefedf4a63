#include "observe/postmortem.h"

#include "base/atomic.h"
#include "state/cut_back.h"
#include "state/epoch.h"
#include "state/label.h"

#define VALUE(text, number) \
  { .name = text, .value = (number) }
#define ADDRESS(text, place) \
  { .name = text, .address = (place) }
#define FIELD(type, field) VALUE(#type "." #field, offsetof(struct tsl_##type, field))
#define REGION(field) FIELD(region, field)
#define CLASS(size, slab_units) {(size), (slab_units)},
#define TINY(least, bytes) CLASS(bytes, 1)
#define MEDIUM(bytes, units) CLASS(bytes, units)

// Not constant: what is constant lies in no dump.
struct tsl_postmortem tsl_postmortem = {
    .magic = TSL_POSTMORTEM_MAGIC,
    .abi = TSL_POSTMORTEM_ABI,
    .numbers = TSL_POSTMORTEM_NUMBERS,
    .classes = TSL_BINS,
    .class_at = offsetof(struct tsl_postmortem, by_class),
    .number =
        {
            // Where everything lies, and how an address leads to its entry and its record.
            ADDRESS("region", &tsl_region),
            ADDRESS("labels", tsl_labels),
            ADDRESS("store_empty", &tsl_store_empty),
            REGION(base),
            REGION(units),
            REGION(granules),
            REGION(first_unit),
            REGION(records),
            REGION(cells),
            REGION(heaps),
            REGION(epochs),
            REGION(last_heap),
            REGION(last_epoch),
            VALUE("unit_log2", TSL_UNIT_LOG2),
            VALUE("granule_log2", TSL_GRANULE_LOG2),
            VALUE("cell_page_log2", TSL_CELL_PAGE_LOG2),
            VALUE("record_bytes", TSL_RECORD_BYTES),
            VALUE("cells_bytes", sizeof(struct tsl_cells)),
            VALUE("cell_bytes", sizeof(struct tsl_cell)),
            VALUE("heap_bytes", TSL_HEAP_BYTES),
            VALUE("epoch_bytes", TSL_EPOCH_BYTES),
            VALUE("label_bytes", sizeof(struct tsl_label)),
            VALUE("most_labels", TSL_MOST_LABELS),
            VALUE("code_bits", TSL_CODE_BITS),
            VALUE("code_large", TSL_CODE_LARGE),
            VALUE("code_visited", TSL_CODE_VISITED),
            VALUE("block_classes", TSL_CLASSES),
            VALUE("guard_bytes", TSL_GUARD_BYTES),
            VALUE("cell_freed", TSL_CELL_FREED),
            VALUE("cell_counted", TSL_CELL_COUNTED),
            // Which blocks of slabs the program has: those that are in no other place of H2.
            FIELD(slab, free),
            FIELD(slab, remote),
            FIELD(slab, sealed),
            VALUE("span.units", TSL_RECORD_SLAB_BYTES + offsetof(struct tsl_span, units)),
            VALUE("span.bytes", TSL_RECORD_SLAB_BYTES + offsetof(struct tsl_span, bytes)),
            VALUE("span.epoch", TSL_RECORD_SLAB_BYTES + offsetof(struct tsl_span, epoch)),
            FIELD(cell, epoch),
            // The block of a cell whose place is cut again next.
            FIELD(heap, cell_start),
            FIELD(heap, cell_cut_back),
            VALUE("cut_back_shift", TSL_CUT_BACK_SHIFT),
            VALUE("cut_back_byte", TSL_CUT_BACK_BYTE),
            FIELD(heap, number),
            FIELD(heap, store),
            FIELD(heap, home),
            FIELD(bin, head),
            VALUE("bin_bytes", sizeof(struct tsl_bin)),
            VALUE("free_block.link", offsetof(struct tsl_free_block, link)),
            FIELD(stock, next),
            FIELD(stock, run),
            FIELD(stock, rest),
            VALUE("stock_bytes", sizeof(struct tsl_stock)),
            FIELD(store, quarantine),
            VALUE("quarantine_blocks", TSL_SECURE ? TSL_QUARANTINE_BLOCKS : 0),
            VALUE("home_store.gathers", offsetof(struct tsl_home_store, gathers)),
            VALUE("gather_classes", TSL_GATHERS),
            VALUE("gather_bytes", sizeof(struct tsl_gather)),
            FIELD(gather, start),
            FIELD(gather, opened),
            FIELD(gather, out),
            // Whose they are, and for how long.
            FIELD(epoch, word),
            FIELD(epoch, label),
            FIELD(epoch, parent),
            FIELD(epoch, place),
            FIELD(epoch, is_shared),
            FIELD(epoch, held_bytes),
            FIELD(epoch, opened_ms),
            FIELD(epoch, closed_ms),
        },
    .by_class =
        {
#include "slab/sizeclass.def"
            CLASS(4096, 1) CLASS(16384, 1) CLASS(65536, 1)},
};

#undef TINY
#undef MEDIUM
#undef CLASS
#undef REGION
#undef FIELD
#undef ADDRESS
#undef VALUE

// PM1.
void tsl_postmortem_tell(void) {
  tsl_store_relaxed(&tsl_postmortem.self, (uint64_t)(uintptr_t)&tsl_postmortem);
}
