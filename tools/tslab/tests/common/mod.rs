//! Statistics files for tests, put together field by field as a library does.
#![allow(dead_code, reason = "each test program uses a part")]
#![allow(clippy::cast_possible_truncation, reason = "what tests build is small")]

pub const CLASS_BYTES: [u64; 4] = [64, 128, 256, 512];
pub const TOLD_MS: u64 = 1_000_000;

const GAUGE: u8 = 0;
const COUNTER: u8 = 1;
const ID: u8 = 2;
const TEXT: u8 = 3;

const BYTES: u8 = 1;
const MS: u8 = 2;
const OBJECTS: u8 = 4;
const PIECES: u8 = 5;

pub struct Field {
    pub name: &'static str,
    pub kind: u8,
    pub unit: u8,
    pub at: u32,
    pub bytes: u16,
    pub count: u16,
}

fn field(name: &'static str, kind: u8, unit: u8, bytes: u16, count: u16) -> Field {
    Field { name, kind, unit, at: 0, bytes, count }
}

pub fn long(name: &'static str, kind: u8, unit: u8) -> Field {
    field(name, kind, unit, 8, 1)
}

fn word(name: &'static str, kind: u8, unit: u8) -> Field {
    field(name, kind, unit, 4, 1)
}

fn each(name: &'static str, kind: u8, unit: u8, bytes: u16) -> Field {
    field(name, kind, unit, bytes, 4)
}

pub struct Table {
    pub name: &'static str,
    pub fields: Vec<Field>,
    pub row_bytes: u32,
    pub rows: u32,
    pub most_rows: u32,
    pub is_full: u32,
    data: Vec<u8>,
}

impl Table {
    pub fn new(name: &'static str, rows: u32, mut fields: Vec<Field>) -> Self {
        let mut end = 0;
        for field in &mut fields {
            field.at = u32::next_multiple_of(end, field.bytes.into());
            end = field.at + u32::from(field.bytes) * u32::from(field.count);
        }
        let row_bytes = end.next_multiple_of(8);
        let data = vec![0; (row_bytes * rows) as usize];
        Self { name, fields, row_bytes, rows, most_rows: rows, is_full: 0, data }
    }
}

/// A file to be. What stands in the header, and the tables.
pub struct Image {
    pub abi: u32,
    pub pid: u32,
    pub start_ticks: u64,
    pub page_bytes: u32,
    pub made_ms: u64,
    pub told_ms: u64,
    pub version: &'static str,
    /// Further bytes in each description, as a newer library might have.
    pub more_bytes: usize,
    pub tables: Vec<Table>,
}

impl Image {
    /// With the tables of `src/epoch/rows.h`, and no values.
    pub fn new(pid: u32, start_ticks: u64) -> Self {
        let mut image = Self {
            abi: 1,
            pid,
            start_ticks,
            page_bytes: 4096,
            made_ms: 1000,
            told_ms: TOLD_MS,
            version: "0.1.0",
            more_bytes: 0,
            tables: tables(),
        };
        for (row, bytes) in CLASS_BYTES.into_iter().enumerate() {
            image.set("classes", row, "bytes", bytes);
            image.set("classes", row, "slab_bytes", 65536);
            image.set("classes", row, "capacity", 65536 / bytes);
        }
        image.text("labels", 0, b"default");
        image
    }

    pub fn table(&mut self, name: &str) -> &mut Table {
        self.tables.iter_mut().find(|table| table.name == name).expect("a table of this name")
    }

    pub fn set(&mut self, table: &str, row: usize, field: &str, value: u64) {
        self.set_class(table, row, field, 0, value);
    }

    pub fn set_all(&mut self, table: &str, row: usize, values: &[(&str, u64)]) {
        for (field, value) in values {
            self.set(table, row, field, *value);
        }
    }

    /// The value of one size class.
    pub fn set_class(&mut self, table: &str, row: usize, field: &str, class: usize, value: u64) {
        let table = self.table(table);
        let field = table.fields.iter().find(|known| known.name == field).expect("such a field");
        let width = usize::from(field.bytes);
        let at = row * table.row_bytes as usize + field.at as usize + class * width;
        let place = &mut table.data[at..at + width];
        match width {
            4 => place.copy_from_slice(&u32::try_from(value).expect("it fits").to_ne_bytes()),
            _ => place.copy_from_slice(&value.to_ne_bytes()),
        }
    }

    pub fn text(&mut self, table: &str, row: usize, text: &[u8]) {
        let table = self.table(table);
        let at = row * table.row_bytes as usize;
        table.data[at..at + text.len()].copy_from_slice(text);
    }

    /// Takes a field out of the description, as if the library did not have it.
    pub fn forget(&mut self, table: &str, field: &str) {
        self.table(table).fields.retain(|known| known.name != field);
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let (table_bytes, field_bytes) = (40 + self.more_bytes, 48 + self.more_bytes);
        let fields: usize = self.tables.iter().map(|table| table.fields.len()).sum();
        let fields_at = 112 + self.tables.len() * table_bytes;
        let rows_at = (fields_at + fields * field_bytes).next_multiple_of(8);
        let rows: usize = self.tables.iter().map(|table| table.data.len()).sum();
        let mut out = Vec::with_capacity(rows_at + rows);
        out.extend(b"tslabst\0");
        add_words(&mut out, &[self.abi, 112]);
        add_longs(&mut out, &[(rows_at + rows) as u64, 112]);
        add_words(&mut out, &[self.tables.len() as u32, table_bytes as u32]);
        add_longs(&mut out, &[fields_at as u64]);
        add_words(&mut out, &[fields as u32, field_bytes as u32]);
        add_longs(&mut out, &[0x1234]);
        add_words(&mut out, &[self.pid, self.page_bytes]);
        add_longs(&mut out, &[self.start_ticks, self.made_ms, self.told_ms]);
        add_name(&mut out, self.version, 16);
        self.add_tables(&mut out, rows_at);
        self.add_fields(&mut out);
        out.resize(rows_at, 0);
        self.tables.iter().for_each(|table| out.extend(&table.data));
        out
    }

    fn add_tables(&self, out: &mut Vec<u8>, rows_at: usize) {
        let mut at = rows_at;
        for table in &self.tables {
            add_name(out, table.name, 16);
            add_longs(out, &[at as u64]);
            add_words(out, &[table.row_bytes, table.most_rows, table.rows, table.is_full]);
            out.resize(out.len() + self.more_bytes, 0xee);
            at += table.data.len();
        }
    }

    fn add_fields(&self, out: &mut Vec<u8>) {
        for (number, table) in self.tables.iter().enumerate() {
            for field in &table.fields {
                add_name(out, field.name, 32);
                out.extend((number as u16).to_ne_bytes());
                out.extend([field.kind, field.unit]);
                add_words(out, &[field.at]);
                out.extend(field.bytes.to_ne_bytes());
                out.extend(field.count.to_ne_bytes());
                add_words(out, &[0]);
                out.resize(out.len() + self.more_bytes, 0xee);
            }
        }
    }
}

fn add_words(out: &mut Vec<u8>, values: &[u32]) {
    for value in values {
        out.extend(value.to_ne_bytes());
    }
}

fn add_longs(out: &mut Vec<u8>, values: &[u64]) {
    for value in values {
        out.extend(value.to_ne_bytes());
    }
}

fn add_name(out: &mut Vec<u8>, name: &str, bytes: usize) {
    let end = out.len() + bytes;
    out.extend(name.as_bytes());
    out.resize(end, 0);
}

fn tables() -> Vec<Table> {
    vec![
        Table::new("process", 1, process_fields()),
        Table::new(
            "classes",
            4,
            vec![
                word("bytes", GAUGE, BYTES),
                word("slab_bytes", GAUGE, BYTES),
                word("capacity", GAUGE, OBJECTS),
            ],
        ),
        Table::new("labels", 8, vec![field("text", TEXT, 0, 1, 64)]),
        Table::new("epochs", 16, epoch_fields()),
        Table::new("heaps", 8, heap_fields()),
        Table::new("bins", 8, bin_fields()),
        Table::new("control", 1, vec![word("sample_bytes", GAUGE, BYTES)]),
        Table::new("sites", 8, site_fields()),
        Table::new("samples", 16, sample_fields()),
    ]
}

fn process_fields() -> Vec<Field> {
    vec![
        long("open_bytes", GAUGE, BYTES),
        long("free_bytes", GAUGE, BYTES),
        long("dirty_bytes", GAUGE, BYTES),
        long("cached_bytes", GAUGE, BYTES),
        long("large_objects", GAUGE, OBJECTS),
        long("large_bytes", GAUGE, BYTES),
        long("large_allocations", COUNTER, OBJECTS),
        long("purges", COUNTER, PIECES),
        long("purged_bytes", COUNTER, BYTES),
        long("purges_refused", COUNTER, PIECES),
        long("limits_refused", COUNTER, PIECES),
        long("memory_refused", COUNTER, PIECES),
        long("sample_bytes", GAUGE, BYTES),
        long("weight_bytes", GAUGE, BYTES),
        long("samples_taken", COUNTER, OBJECTS),
        long("samples_lost", COUNTER, OBJECTS),
        long("region_at", ID, 0),
        long("region_bytes", GAUGE, BYTES),
        long("blocks_at", ID, 0),
        long("blocks_bytes", GAUGE, BYTES),
    ]
}

fn epoch_fields() -> Vec<Field> {
    vec![
        long("id", ID, 0),
        long("parent", ID, 0),
        word("label", ID, 0),
        word("state", ID, 0),
        long("opened_ms", GAUGE, MS),
        long("closed_ms", GAUGE, MS),
        long("held_bytes", GAUGE, BYTES),
        long("soft_limit_bytes", GAUGE, BYTES),
        long("hard_limit_bytes", GAUGE, BYTES),
        long("large_objects", GAUGE, OBJECTS),
        long("large_bytes", GAUGE, BYTES),
        each("survivors", GAUGE, OBJECTS, 4),
    ]
}

fn heap_fields() -> Vec<Field> {
    vec![
        word("state", ID, 0),
        word("epoch", ID, 0),
        word("home", ID, 0),
        word("thread", ID, 0),
        word("scopes", GAUGE, PIECES),
        word("cached_units", GAUGE, PIECES),
        long("cut_objects", COUNTER, OBJECTS),
        long("cut_bytes", COUNTER, BYTES),
        long("freed_objects", COUNTER, OBJECTS),
        long("freed_bytes", COUNTER, BYTES),
        long("away_objects", COUNTER, OBJECTS),
        long("away_bytes", COUNTER, BYTES),
        long("cell_bytes", GAUGE, BYTES),
    ]
}

fn bin_fields() -> Vec<Field> {
    vec![
        each("allocations", COUNTER, OBJECTS, 8),
        each("out", GAUGE, OBJECTS, 4),
        each("hot", GAUGE, OBJECTS, 4),
        each("sent", COUNTER, OBJECTS, 8),
        each("taken", COUNTER, OBJECTS, 8),
        each("slabs", GAUGE, PIECES, 4),
        each("opened", COUNTER, PIECES, 4),
        each("refills", COUNTER, PIECES, 8),
        each("returned", COUNTER, OBJECTS, 8),
        long("cells_taken", COUNTER, PIECES),
        long("cells_restarted", COUNTER, PIECES),
        long("ended_objects", COUNTER, OBJECTS),
        long("ended_bytes", COUNTER, BYTES),
    ]
}

fn site_fields() -> Vec<Field> {
    vec![
        long("allocations", COUNTER, OBJECTS),
        long("bytes", COUNTER, BYTES),
        long("frees", COUNTER, OBJECTS),
        word("label", ID, 0),
        word("class", ID, 0),
        long("depth", GAUGE, PIECES),
        field("frames", ID, 0, 8, 32),
    ]
}

fn sample_fields() -> Vec<Field> {
    vec![
        word("site", ID, 0),
        word("times", GAUGE, OBJECTS),
        long("address", ID, 0),
        long("bytes", GAUGE, BYTES),
        long("epoch", ID, 0),
        long("sampled_ms", GAUGE, MS),
    ]
}

/// A process with two threads. What lives, in objects and bytes: in the default epoch 133 and
/// 216,768; in epoch 3, which is open, 319 and 154,880; in epoch 7, closed for 61 s, 357 and
/// 47,872; in 5, a closed child of 3, and in 6, which is released, nothing.
pub fn sample(pid: u32, start_ticks: u64) -> Image {
    let mut image = Image::new(pid, start_ticks);
    image.set_all("process", 0, &[("open_bytes", 1 << 20), ("purges", 5)]);
    // Two in the default epoch, and one in epoch 3.
    image.set_all("process", 0, &[("large_objects", 3), ("large_bytes", 200_000 + 131_072)]);
    let blocks = [("blocks_at", (1 << 44) + (16 << 20)), ("blocks_bytes", 64 << 20)];
    image.set_all("process", 0, &[("region_at", 1 << 44), ("region_bytes", 128 << 20)]);
    image.set_all("process", 0, &blocks);
    add_epoch(&mut image, 3, "batch", &[("opened_ms", TOLD_MS - 10_000), ("held_bytes", 262_144)]);
    image.set_all("epochs", 3, &[("large_objects", 1), ("large_bytes", 131_072)]);
    let closed = [("state", 1), ("opened_ms", 100), ("closed_ms", TOLD_MS - 61_000)];
    add_epoch(&mut image, 7, "GET /upload", &closed);
    image.set("epochs", 7, "held_bytes", 49_152);
    image.set_class("epochs", 7, "survivors", 1, 340);
    image.set_class("epochs", 7, "survivors", 2, 17);
    add_epoch(&mut image, 5, "step", &closed);
    add_epoch(&mut image, 6, "gone", &[("state", 2), ("opened_ms", 100), ("closed_ms", 200)]);
    image.set("epochs", 5, "parent", 3);
    add_heaps(&mut image);
    image
}

/// An epoch in row `row`, with its label in the same row of the labels.
pub fn add_epoch(image: &mut Image, row: usize, label: &str, values: &[(&str, u64)]) {
    image.text("labels", row, label.as_bytes());
    let id = 1 << 24 | row as u64;
    image.set_all("epochs", row, &[("id", id), ("label", row as u64)]);
    image.set_all("epochs", row, values);
}

fn add_heaps(image: &mut Image) {
    image.set_all("heaps", 1, &[("state", 1), ("home", 1), ("thread", 42)]);
    image.set_all("heaps", 2, &[("state", 2), ("home", 2)]);
    image.set_all("heaps", 3, &[("state", 1), ("home", 1), ("epoch", 3)]);
    // What a heap that is nobody's has left behind counts for nothing.
    image.set_all("heaps", 4, &[("home", 1), ("epoch", 3), ("cut_objects", 9_999)]);
    image.set_all("heaps", 3, &[("cut_objects", 1000), ("cut_bytes", 64_000)]);
    image.set_all("heaps", 3, &[("freed_objects", 600), ("freed_bytes", 38_400)]);
    image.set_all("heaps", 3, &[("away_objects", 105), ("away_bytes", 7_680)]);
    add_bins(image, 0, 1, &[("sent", 1)]);
    let busy = [("out", 100), ("hot", 10), ("sent", 5), ("taken", 3), ("allocations", 1000)];
    add_bins(image, 1, 1, &busy);
    add_bins(image, 1, 1, &[("slabs", 2), ("opened", 4)]);
    add_bins(image, 2, 1, &[("out", 50), ("hot", 5), ("sent", 2), ("taken", 1)]);
    add_bins(image, 3, 2, &[("out", 20), ("hot", 2), ("taken", 5), ("slabs", 1)]);
}

fn add_bins(image: &mut Image, row: usize, class: usize, values: &[(&str, u64)]) {
    for (field, value) in values {
        image.set_class("bins", row, field, class, *value);
    }
}

/// What the sample sampled, a byte in 4,096 on average, and no more: of epoch 7, four blocks of
/// 128 B that live, three by one caller and one by another, and one of 256 B; a large one in the
/// default epoch.
pub fn add_samples(image: &mut Image) {
    let told = [("weight_bytes", 4096), ("samples_taken", 40), ("samples_lost", 1)];
    image.set_all("process", 0, &told);
    add_site(image, 1, (7, 1), 20, 128, &[0x1001, 0x2001]);
    add_site(image, 2, (7, 1), 1, 128, &[0x1001, 0x3001]);
    add_site(image, 3, (7, 2), 4, 256, &[0x4001, 0x2001, 0x5001, 0x6001]);
    add_site(image, 4, (0, 81), 2, 100_000, &[0x5001]);
    let upload = 1 << 24 | 7;
    for row in 1..=3 {
        add_sample(image, row, 1, 128, upload, 61_500);
    }
    add_sample(image, 4, 2, 128, upload, 3_600_000);
    add_sample(image, 5, 3, 256, upload, 61_500);
    add_sample(image, 6, 4, 100_000, 0, 5);
}

// `of`: the row of its label, and of its class.
fn add_site(image: &mut Image, row: usize, of: (u64, u64), count: u64, bytes: u64, calls: &[u64]) {
    image.set_all("sites", row, &[("allocations", count), ("bytes", count * bytes)]);
    image.set_all("sites", row, &[("label", of.0), ("class", of.1), ("depth", calls.len() as u64)]);
    for (number, call) in calls.iter().enumerate() {
        image.set_class("sites", row, "frames", number, *call);
    }
}

fn add_sample(image: &mut Image, row: usize, site: u64, bytes: u64, epoch: u64, age_ms: u64) {
    let address = 0x7000 + (row as u64 - 1) * 0x1000;
    let sampled_ms = TOLD_MS.saturating_sub(age_ms);
    image.set_all("samples", row, &[("site", site), ("address", address), ("bytes", bytes)]);
    image.set_all("samples", row, &[("epoch", epoch), ("sampled_ms", sampled_ms)]);
}

/// Pseudo-random numbers that are the same in every run.
pub struct Random(pub u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        // xorshift64*, by Vigna.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}
