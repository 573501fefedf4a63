//! The profile that `pprof` reads: a gzip'd protocol buffer (github.com/google/pprof,
//! proto/profile.proto), with estimated values and with names as far as they are known.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::{Amount, Profile, Sample, View};
use crate::names::{FAMILY, GONE_ON, Module};
use crate::sampling::{Reach, whole};

/// The message, as far as it is used here. Texts are places in the table of strings.
pub mod proto {
    use prost::Message;

    /// All of it.
    #[derive(Clone, PartialEq, Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<Sample>,
        /// The program itself comes first.
        #[prost(message, repeated, tag = "3")]
        pub mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        /// The first one is empty.
        #[prost(string, repeated, tag = "6")]
        pub string_table: Vec<String>,
        /// Functions, as a regular expression, that are left out with those that they called.
        #[prost(int64, tag = "7")]
        pub drop_frames: i64,
        /// Since 1970.
        #[prost(int64, tag = "9")]
        pub time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub duration_nanos: i64,
        #[prost(message, optional, tag = "11")]
        pub period_type: Option<ValueType>,
        #[prost(int64, tag = "12")]
        pub period: i64,
        #[prost(int64, repeated, tag = "13")]
        pub comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub default_sample_type: i64,
    }

    /// What is counted, and in what.
    #[derive(Clone, Copy, PartialEq, Eq, Message)]
    pub struct ValueType {
        #[prost(int64, tag = "1")]
        pub r#type: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }

    /// A stack, innermost first, and a value of each type.
    #[derive(Clone, PartialEq, Eq, Message)]
    pub struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub label: Vec<Label>,
    }

    /// A text, or a number with its unit.
    #[derive(Clone, Copy, PartialEq, Eq, Message)]
    pub struct Label {
        #[prost(int64, tag = "1")]
        pub key: i64,
        #[prost(int64, tag = "2")]
        pub str: i64,
        #[prost(int64, tag = "3")]
        pub num: i64,
        #[prost(int64, tag = "4")]
        pub num_unit: i64,
    }

    /// A file that was mapped.
    #[derive(Clone, Copy, PartialEq, Eq, Message)]
    #[expect(clippy::struct_excessive_bools, reason = "the message has them")]
    pub struct Mapping {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub memory_start: u64,
        #[prost(uint64, tag = "3")]
        pub memory_limit: u64,
        #[prost(uint64, tag = "4")]
        pub file_offset: u64,
        #[prost(int64, tag = "5")]
        pub filename: i64,
        #[prost(int64, tag = "6")]
        pub build_id: i64,
        #[prost(bool, tag = "7")]
        pub has_functions: bool,
        #[prost(bool, tag = "8")]
        pub has_filenames: bool,
        #[prost(bool, tag = "9")]
        pub has_line_numbers: bool,
        #[prost(bool, tag = "10")]
        pub has_inline_frames: bool,
    }

    /// A call; of inlined functions the innermost comes first.
    #[derive(Clone, PartialEq, Eq, Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub mapping_id: u64,
        #[prost(uint64, tag = "3")]
        pub address: u64,
        #[prost(message, repeated, tag = "4")]
        pub line: Vec<Line>,
    }

    /// A line of a function.
    #[derive(Clone, Copy, PartialEq, Eq, Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function_id: u64,
        #[prost(int64, tag = "2")]
        pub line: i64,
    }

    /// A function.
    #[derive(Clone, Copy, PartialEq, Eq, Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "3")]
        pub system_name: i64,
        #[prost(int64, tag = "4")]
        pub filename: i64,
    }
}

// The types of samples, and their units; values are in this order.
const TYPES: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

/// When a profile was taken, what it lacks, and what is shown of it first.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Nanoseconds since 1970.
    pub time_nanos: u64,
    /// For how long was sampled; 0: not known.
    pub duration_nanos: u64,
    /// Of what samples are missing.
    pub gap: Option<String>,
    /// What is shown first.
    pub view: View,
}

/// The file's bytes.
pub fn bytes(profile: &Profile, frame: &Frame) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&message(profile, frame).encode_to_vec())?;
    encoder.finish()
}

fn message(profile: &Profile, frame: &Frame) -> proto::Profile {
    let mut builder = Builder::default();
    builder.string("");
    let mut message = proto::Profile {
        sample_type: TYPES.map(|(kind, unit)| builder.value_type(kind, unit)).to_vec(),
        mapping: builder.mappings(&profile.names.modules),
        drop_frames: builder.string(&drop_frames()),
        time_nanos: signed(frame.time_nanos),
        duration_nanos: signed(frame.duration_nanos),
        period_type: Some(builder.value_type("space", "bytes")),
        period: signed(profile.mean_bytes),
        comment: builder.comments(profile, frame),
        default_sample_type: builder.string(match frame.view {
            View::Live => "inuse_space",
            View::Cumulative => "alloc_space",
        }),
        sample: profile.samples.iter().map(|one| builder.sample(one, profile.reach)).collect(),
        ..proto::Profile::default()
    };
    let calls: BTreeSet<_> =
        profile.samples.iter().flat_map(|sample| &sample.key.calls).copied().collect();
    message.location = calls.into_iter().map(|call| builder.location(profile, call)).collect();
    message.function = builder.functions;
    message.string_table = builder.strings;
    message
}

fn comment(profile: &Profile) -> String {
    format!(
        "{} blocks were sampled, a byte in {} on average; {} further ones were lost",
        profile.taken, profile.mean_bytes, profile.lost
    )
}

// For readers that find names that are not known here.
fn drop_frames() -> String {
    let (family, gone_on) = (FAMILY.join("|"), GONE_ON.join("|"));
    let shims = "(__rustc::)?__(rust|rdl|rg)_(alloc|realloc|alloc_zeroed)";
    format!(r"tsl_.*|tslab_.*|(__libc_|__)?({family})|operator new(\[\])?|{gone_on}|{shims}")
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

// Every text and function once.
#[derive(Default)]
struct Builder {
    strings: Vec<String>,
    places: HashMap<String, i64>,
    functions: Vec<proto::Function>,
    function_ids: HashMap<(String, Option<String>), u64>,
    location_ids: HashMap<u64, u64>,
}

impl Builder {
    fn string(&mut self, text: &str) -> i64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = signed(self.strings.len() as u64);
        self.strings.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }

    fn comments(&mut self, profile: &Profile, frame: &Frame) -> Vec<i64> {
        let all = [comment(profile)].into_iter().chain(frame.gap.clone());
        all.map(|comment| self.string(&comment)).collect()
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> proto::ValueType {
        proto::ValueType { r#type: self.string(kind), unit: self.string(unit) }
    }

    // Their numbers are their places from 1 on.
    fn mappings(&mut self, modules: &[Module]) -> Vec<proto::Mapping> {
        let mut id = 0;
        let mut mapping = |module: &Module| {
            id += 1;
            proto::Mapping {
                id,
                memory_start: module.mapping.start,
                memory_limit: module.mapping.end,
                file_offset: module.mapping.offset,
                filename: self.string(&module.mapping.path),
                build_id: self.string(&module.build_id),
                has_functions: module.has_functions,
                has_filenames: module.has_lines,
                has_line_numbers: module.has_lines,
                has_inline_frames: module.has_lines,
            }
        };
        modules.iter().map(&mut mapping).collect()
    }

    // A collector that joins the profiles of many processes tells by a label which are of a part.
    fn sample(&mut self, sample: &Sample, reach: Reach) -> proto::Sample {
        let key = &sample.key;
        let Amount { alloc_objects, alloc_bytes, objects, bytes } = sample.estimate;
        let values = [alloc_objects, alloc_bytes, objects, bytes];
        let mut label = vec![self.text_label("sampled", reach.text())];
        if let Some(text) = &key.label {
            label.push(self.text_label("epoch", text));
        }
        if let Some(bytes) = key.class_bytes {
            label.push(proto::Label {
                key: self.string("bytes"),
                str: 0,
                num: signed(bytes),
                num_unit: self.string("bytes"),
            });
        }
        if let Some(age) = key.age {
            label.push(self.text_label("age", age.text()));
        }
        proto::Sample {
            location_id: key.calls.iter().map(|call| self.location_id(*call)).collect(),
            value: values.map(|value| signed(whole(value))).to_vec(),
            label,
        }
    }

    fn text_label(&mut self, key: &str, text: &str) -> proto::Label {
        proto::Label { key: self.string(key), str: self.string(text), num: 0, num_unit: 0 }
    }

    fn location_id(&mut self, call: u64) -> u64 {
        let next = self.location_ids.len() as u64 + 1;
        *self.location_ids.entry(call).or_insert(next)
    }

    // A call of which nothing is known has no line, so that readers can look for it themselves.
    fn location(&mut self, profile: &Profile, call: u64) -> proto::Location {
        let module = profile.names.module(call);
        let is_known = profile.names.known_lines(call).iter().any(|line| !line.function.is_empty());
        let lines = if is_known { profile.names.lines(call) } else { Vec::new() };
        let line = |line: crate::symbols::Line| proto::Line {
            function_id: self.function(line.function, line.file),
            line: line.number.unwrap_or_default().into(),
        };
        let line = lines.into_iter().map(line).collect();
        proto::Location {
            id: self.location_id(call),
            mapping_id: module.map_or(0, |module| module as u64 + 1),
            address: call,
            line,
        }
    }

    fn function(&mut self, name: String, file: Option<String>) -> u64 {
        if let Some(id) = self.function_ids.get(&(name.clone(), file.clone())) {
            return *id;
        }
        let id = self.functions.len() as u64 + 1;
        let place = self.string(&name);
        let filename = self.string(file.as_deref().unwrap_or_default());
        self.functions.push(proto::Function { id, name: place, system_name: place, filename });
        self.function_ids.insert((name, file), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::profile::of_test;

    const FRAME: Frame = Frame {
        time_nanos: 1_700_000_000_000_000_000,
        duration_nanos: 5,
        gap: None,
        view: View::Live,
    };

    fn decoded(profile: &Profile, frame: &Frame) -> proto::Profile {
        let mut plain = Vec::new();
        let packed = bytes(profile, frame).unwrap();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut plain).unwrap();
        proto::Profile::decode(plain.as_slice()).unwrap()
    }

    impl proto::Profile {
        fn text(&self, place: i64) -> &str {
            &self.string_table[usize::try_from(place).unwrap()]
        }

        fn labels(&self, sample: &proto::Sample) -> Vec<(&str, &str, i64, &str)> {
            let label = |label: &proto::Label| {
                let text = |place| self.text(place);
                (text(label.key), text(label.str), label.num, text(label.num_unit))
            };
            sample.label.iter().map(label).collect()
        }

        fn functions(&self, sample: &proto::Sample) -> Vec<&str> {
            let location = |id: &u64| self.location.iter().find(|known| known.id == *id).unwrap();
            let lines = sample.location_id.iter().flat_map(|id| &location(id).line);
            let function = |line: &proto::Line| {
                self.function.iter().find(|known| known.id == line.function_id).unwrap()
            };
            lines.map(|line| self.text(function(line).name)).collect()
        }
    }

    #[test]
    fn the_frame_is_as_readers_expect_it() {
        let profile = decoded(&of_test(), &FRAME);
        assert_eq!(profile.string_table[0], "");
        let types: Vec<_> = profile
            .sample_type
            .iter()
            .map(|t| (profile.text(t.r#type), profile.text(t.unit)))
            .collect();
        assert_eq!(types, TYPES);
        assert_eq!(profile.text(profile.default_sample_type), "inuse_space");
        assert_eq!((profile.period, profile.duration_nanos), (4096, 5));
        let period = profile.period_type.unwrap();
        assert_eq!((profile.text(period.r#type), profile.text(period.unit)), ("space", "bytes"));
        assert_eq!(profile.time_nanos, 1_700_000_000_000_000_000);
        assert!(profile.text(profile.drop_frames).contains("|calloc|"));
        assert!(profile.text(profile.comment[0]).starts_with("40 blocks were sampled"));
        let cumulative = decoded(&of_test(), &Frame { view: View::Cumulative, ..FRAME });
        assert_eq!(cumulative.text(cumulative.default_sample_type), "alloc_space");
    }

    #[test]
    fn the_program_is_the_first_mapping_and_calls_lie_in_it() {
        let profile = decoded(&of_test(), &FRAME);
        let main = profile.mapping[0];
        assert_eq!((main.id, profile.text(main.filename)), (1, "/opt/server"));
        assert_eq!((profile.text(main.build_id), main.has_functions), ("00ab", true));
        assert_eq!((main.memory_start, main.memory_limit), (0x1000, 0x9000));
        let addresses: Vec<_> =
            profile.location.iter().map(|l| (l.address, l.mapping_id)).collect();
        assert_eq!(addresses, [(0x2000, 1), (0x3000, 1), (0x4000, 1), (0x5000, 0), (0x6000, 0)]);
        let copy = profile.function.iter().find(|f| profile.text(f.name) == "copy_name").unwrap();
        assert_eq!(profile.text(copy.filename), "/src/user.c");
        let line = profile.location[2].line[0];
        assert_eq!((line.function_id, line.line), (copy.id, 40));
        assert_eq!(profile.location[3].line, []);
    }

    #[test]
    fn samples_have_values_and_labels() {
        let profile = decoded(&of_test(), &FRAME);
        let values: Vec<_> = profile.sample.iter().map(|sample| sample.value.as_slice()).collect();
        assert_eq!(values[0], [0, 0, 1, 100_000]);
        assert_eq!(values[1], [0, 0, 98, 12_481]);
        let upload = &profile.sample[1];
        let expected = [
            ("sampled", "ended", 0, ""),
            ("epoch", "GET /upload", 0, ""),
            ("bytes", "", 128, "bytes"),
            ("age", "1-10min", 0, ""),
        ];
        assert_eq!(profile.labels(upload), expected);
        assert_eq!(profile.functions(upload), ["handle"]);
        assert_eq!(
            profile.labels(&profile.sample[0]),
            [("sampled", "ended", 0, ""), ("epoch", "default", 0, ""), ("age", "0-1s", 0, "")]
        );
        let deep = profile.sample.iter().find(|sample| sample.location_id.len() == 4).unwrap();
        assert_eq!(profile.functions(deep), ["copy_name", "handle"]);
        let allocated = profile.sample.iter().find(|sample| sample.value[1] == 83_207).unwrap();
        assert_eq!(allocated.value, [650, 83_207, 0, 0]);
        assert_eq!(profile.labels(allocated).len(), 3);
    }

    #[test]
    fn a_part_says_that_it_is_one() {
        let gap = Some("process 42 samples only some epochs".to_owned());
        let part = Profile { reach: Reach::Watched, ..of_test() };
        let profile = decoded(&part, &Frame { gap, ..FRAME });
        let comments: Vec<_> = profile.comment.iter().map(|place| profile.text(*place)).collect();
        assert_eq!((comments.len(), comments[1]), (2, "process 42 samples only some epochs"));
        let is_marked = |sample| profile.labels(sample)[0] == ("sampled", "watched", 0, "");
        assert!(profile.sample.iter().all(is_marked));
    }

    #[test]
    fn nothing_is_a_profile_too() {
        let profile = decoded(&Profile::default(), &FRAME);
        assert_eq!((profile.sample.len(), profile.mapping.len(), profile.period), (0, 0, 0));
    }
}
