//! Statistics files for tests, put together field by field as a library does.
#![allow(dead_code, reason = "each test program uses a part")]
#![allow(clippy::cast_possible_truncation, reason = "what tests build is small")]

use super::rows::{self, ABI, Kind, MAGIC, Shape, TABLES, Unit, header};

pub const CLASS_BYTES: [u64; 4] = [64, 128, 256, 512];
pub const TOLD_MS: u64 = 1_000_000;

/// As a file describes it: the numbers may be those of a newer library.
pub struct Field {
    pub name: &'static str,
    pub kind: u8,
    pub unit: u8,
    pub at: u32,
    pub bytes: u16,
    pub count: u16,
}

impl Field {
    fn of(field: &rows::Field) -> Self {
        let (bytes, count) = match field.shape {
            Shape::One(bytes) => (bytes, 1),
            Shape::Each(bytes) => (bytes, CLASS_BYTES.len() as u16),
            Shape::List(bytes) => (bytes, 32),
            Shape::Text(bytes) => (bytes, 64),
        };
        Self { count, ..Self::one(field.name, bytes, field.kind, field.unit) }
    }

    fn one(name: &'static str, bytes: u16, kind: Kind, unit: Unit) -> Self {
        Self { name, kind: kind as u8, unit: unit as u8, at: 0, bytes, count: 1 }
    }

    /// Of 8 bytes.
    pub fn long(name: &'static str, kind: Kind, unit: Unit) -> Self {
        Self::one(name, 8, kind, unit)
    }
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
    /// With the tables of this version, and no values.
    pub fn new(pid: u32, start_ticks: u64) -> Self {
        let mut image = Self {
            abi: ABI,
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

    /// Makes room for rows up to this one.
    pub fn reach(&mut self, table: &str, row: usize) {
        let table = self.table(table);
        table.rows = table.rows.max(row as u32 + 1);
        table.most_rows = table.most_rows.max(table.rows.next_power_of_two() * 2);
        table.data.resize((table.row_bytes * table.rows) as usize, 0);
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
        let is_text = |field: &&Field| field.kind == Kind::Text as u8;
        let field = table.fields.iter().find(is_text).expect("a table with a text");
        let at = row * table.row_bytes as usize + field.at as usize;
        table.data[at..at + text.len()].copy_from_slice(text);
    }

    /// Takes a field out of the description, as if the library did not have it.
    pub fn forget(&mut self, table: &str, field: &str) {
        self.table(table).fields.retain(|known| known.name != field);
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let fields: usize = self.tables.iter().map(|table| table.fields.len()).sum();
        let fields_at = header::SIZE + self.tables.len() * self.table_bytes();
        let rows_at = (fields_at + fields * self.field_bytes()).next_multiple_of(8);
        let rows: usize = self.tables.iter().map(|table| table.data.len()).sum();
        let mut out = Vec::with_capacity(rows_at + rows);
        out.extend(self.header(fields_at, fields, rows_at + rows));
        self.add_tables(&mut out, rows_at);
        self.add_fields(&mut out);
        out.resize(rows_at, 0);
        self.tables.iter().for_each(|table| out.extend(&table.data));
        out
    }

    fn table_bytes(&self) -> usize {
        rows::table::SIZE + self.more_bytes
    }

    fn field_bytes(&self) -> usize {
        rows::field::SIZE + self.more_bytes
    }

    fn header(&self, fields_at: usize, fields: usize, file_bytes: usize) -> Vec<u8> {
        let mut out = vec![0; header::SIZE];
        put(&mut out, header::MAGIC.start, MAGIC);
        put_words(
            &mut out,
            &[
                (header::ABI, self.abi),
                (header::HEADER_BYTES, header::SIZE as u32),
                (header::TABLES, self.tables.len() as u32),
                (header::TABLE_BYTES, self.table_bytes() as u32),
                (header::FIELDS, fields as u32),
                (header::FIELD_BYTES, self.field_bytes() as u32),
                (header::PID, self.pid),
                (header::PAGE_BYTES, self.page_bytes),
            ],
        );
        put_longs(
            &mut out,
            &[
                (header::FILE_BYTES, file_bytes as u64),
                (header::TABLES_AT, header::SIZE as u64),
                (header::FIELDS_AT, fields_at as u64),
                (header::LAYOUT_HASH, 0x1234),
                (header::START_TICKS, self.start_ticks),
                (header::MADE_MS, self.made_ms),
                (header::TOLD_MS, self.told_ms),
            ],
        );
        put(&mut out, header::VERSION.start, self.version.as_bytes());
        out
    }

    fn add_tables(&self, out: &mut Vec<u8>, rows_at: usize) {
        use rows::table::{AT, IS_FULL, MOST_ROWS, NAME, ROW_BYTES, ROWS, SIZE};
        let mut at = rows_at;
        for table in &self.tables {
            let mut bytes = vec![0; SIZE];
            put(&mut bytes, NAME.start, table.name.as_bytes());
            put_longs(&mut bytes, &[(AT, at as u64)]);
            put_words(&mut bytes, &[(ROW_BYTES, table.row_bytes), (MOST_ROWS, table.most_rows)]);
            put_words(&mut bytes, &[(ROWS, table.rows), (IS_FULL, table.is_full)]);
            bytes.resize(self.table_bytes(), 0xee);
            out.extend(bytes);
            at += table.data.len();
        }
    }

    fn add_fields(&self, out: &mut Vec<u8>) {
        use rows::field::{AT, BYTES, COUNT, KIND, NAME, SIZE, TABLE, UNIT};
        for (number, table) in self.tables.iter().enumerate() {
            for field in &table.fields {
                let mut bytes = vec![0; SIZE];
                put(&mut bytes, NAME.start, field.name.as_bytes());
                put(&mut bytes, TABLE, &(number as u16).to_ne_bytes());
                (bytes[KIND], bytes[UNIT]) = (field.kind, field.unit);
                put_words(&mut bytes, &[(AT, field.at)]);
                put(&mut bytes, BYTES, &field.bytes.to_ne_bytes());
                put(&mut bytes, COUNT, &field.count.to_ne_bytes());
                bytes.resize(self.field_bytes(), 0xee);
                out.extend(bytes);
            }
        }
    }
}

fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

fn put_words(out: &mut [u8], values: &[(usize, u32)]) {
    for (at, value) in values {
        put(out, *at, &value.to_ne_bytes());
    }
}

fn put_longs(out: &mut [u8], values: &[(usize, u64)]) {
    for (at, value) in values {
        put(out, *at, &value.to_ne_bytes());
    }
}

fn tables() -> Vec<Table> {
    let table = |fields: &&[rows::Field]| {
        let name = fields[0].table;
        let rows = match name {
            "process" | "control" => 1,
            "classes" => CLASS_BYTES.len() as u32,
            "epochs" | "samples" => 16,
            _ => 8,
        };
        Table::new(name, rows, fields.iter().map(Field::of).collect())
    };
    TABLES.iter().map(table).collect()
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

/// When a process closes epochs that leave an object of 128 B: so many a second since its file was
/// made, or for some time at first.
#[derive(Clone, Copy)]
pub struct Closing {
    pub label: (usize, &'static str),
    pub a_second: u64,
    /// Its object is freed so long after.
    pub kept_ms: u64,
    /// No epoch was closed later than so long after the file was made.
    pub until_ms: u64,
}

impl Closing {
    /// Whose objects are never freed.
    pub fn leak(label: (usize, &'static str), a_second: u64) -> Self {
        Self { label, a_second, kept_ms: u64::MAX, until_ms: u64::MAX }
    }

    fn each(self, lived_ms: u64) -> impl Iterator<Item = (usize, u64)> {
        let end_ms = lived_ms.min(self.until_ms);
        let closed = (0..=end_ms * self.a_second / 1000).map(move |n| n * 1000 / self.a_second);
        let lives = move |closed_ms: u64| lived_ms - closed_ms < self.kept_ms;
        closed.enumerate().filter(move |&(_, closed_ms)| closed_ms <= end_ms && lives(closed_ms))
    }
}

/// A process that has lived for so long, with the survivors of such epochs. An epoch has the same
/// row and id at each age of the process.
pub fn server(lived_ms: u64, closing: &[Closing]) -> Image {
    let mut image = Image::new(42, 7);
    image.told_ms = image.made_ms + lived_ms;
    let made_ms = image.made_ms;
    for (number, all) in closing.iter().enumerate() {
        image.text("labels", all.label.0, all.label.1.as_bytes());
        for (epoch, closed_ms) in all.each(lived_ms) {
            let row = 16 + epoch * closing.len() + number;
            image.reach("epochs", row);
            let label = all.label.0 as u64;
            image.set_all("epochs", row, &[("id", 1 << 24 | row as u64), ("label", label)]);
            image.set_all("epochs", row, &[("state", 1), ("opened_ms", 1), ("held_bytes", 4096)]);
            image.set("epochs", row, "closed_ms", made_ms + closed_ms);
            image.set_class("epochs", row, "survivors", 1, 1);
        }
    }
    image
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
    add_bins(image, 3, 2, &[("out", 20), ("hot", 2), ("taken", 5), ("away", 5), ("slabs", 1)]);
}

fn add_bins(image: &mut Image, row: usize, class: usize, values: &[(&str, u64)]) {
    for (field, value) in values {
        image.set_class("bins", row, field, class, *value);
    }
}

/// The sample of process 42, which has samples.
pub fn sampled() -> Image {
    let mut image = sample(42, 7);
    add_samples(&mut image);
    image
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
    let ended = [("frees", 17), ("short_frees", 12), ("lifetime_ms", 680)];
    image.set_all("sites", 1, &ended);
    image.set_all("sites", 4, &[("frees", 1), ("lifetime_ms", 1_000_000)]);
    for (site, decade, frees) in [(1, 0, 12), (1, 1, 3), (1, 2, 2), (4, 6, 1)] {
        image.set_class("sites", site, "frees_by_decade", decade, frees);
    }
    let upload = 1 << 24 | 7;
    for row in 1..=3 {
        add_sample(image, row, 1, 128, upload, 61_500);
    }
    add_sample(image, 4, 2, 128, upload, 3_600_000);
    add_sample(image, 5, 3, 256, upload, 61_500);
    add_sample(image, 6, 4, 100_000, 0, 5);
}

/// Adds a call stack and a sample of it; `calls` are addresses of code, innermost first.
pub fn add_sampled(image: &mut Image, calls: &[u64]) {
    image.set_all("process", 0, &[("weight_bytes", 4096), ("samples_taken", 1)]);
    add_site(image, 1, (7, 1), 1, 128, calls);
    add_sample(image, 1, 1, 128, 1 << 24 | 7, 61_500);
}

/// `of`: the row of its label, and of its class.
pub fn add_site(
    image: &mut Image,
    row: usize,
    of: (u64, u64),
    count: u64,
    bytes: u64,
    calls: &[u64],
) {
    image.set_all("sites", row, &[("allocations", count), ("bytes", count * bytes)]);
    image.set_all("sites", row, &[("label", of.0), ("class", of.1), ("depth", calls.len() as u64)]);
    for (number, call) in calls.iter().enumerate() {
        image.set_class("sites", row, "frames", number, *call);
    }
}

pub fn add_sample(image: &mut Image, row: usize, site: u64, bytes: u64, epoch: u64, age_ms: u64) {
    let address = 0x7000 + (row as u64 - 1) * 0x1000;
    let sampled_ms = image.told_ms.saturating_sub(age_ms);
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
