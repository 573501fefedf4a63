//! Names for the addresses of call stacks, and which of the calls are the allocator's own.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::modules::{Mapping, Maps};
use crate::perf_map;
use crate::sampling::Site;
use crate::symbols::{self, Line};

/// Functions that allocate, of the C library and its kin.
pub const FAMILY: [&str; 11] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "reallocarr",
    "reallocf",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "valloc",
    "pvalloc",
];

/// Functions of the allocator's files alone in which its first function may go on, so that the
/// program seems to call them (`src/alloc`, `src/override`).
pub const GONE_ON: [&str; 5] =
    ["malloc_beyond_stock", "calloc_counted", "calloc_slow", "new_again", "new_slow"];

// Linked into a program, the allocator has functions whose names do not tell: those that one of its
// files alone uses. So many of them may stand between others.
const MOST_BETWEEN: usize = 3;

/// A mapping of code that calls lie in.
#[derive(Clone, Debug)]
pub struct Module {
    /// What is mapped, and where.
    pub mapping: Mapping,
    /// Of the file, hexadecimal; empty when it is not known.
    pub build_id: String,
    /// Functions are known.
    pub has_functions: bool,
    /// Lines of sources are known.
    pub has_lines: bool,
}

// What is known of a call.
#[derive(Clone, Debug, Default)]
struct Call {
    // Its place in `modules`.
    module: Option<usize>,
    // As the file has it; of no file: as the process has it.
    address: u64,
    lines: Vec<Line>,
}

/// What is known of calls; an address that nothing is known of is a name too.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The program itself comes first.
    pub modules: Vec<Module>,
    /// The process's mappings, as the system tells them; empty when it does not.
    pub maps_text: String,
    calls: HashMap<u64, Call>,
}

impl Names {
    /// Looks calls up in the files of a process that runs; without `maps` nothing is known of them.
    pub fn of(maps: Option<&Maps>, calls: &BTreeSet<u64>) -> Self {
        let mut names = Self::default();
        let Some(maps) = maps else { return names };
        names.maps_text.clone_from(&maps.text);
        let mut by_file = BTreeMap::<&str, Vec<(u64, &Mapping)>>::new();
        if let Some(main) = maps.main() {
            names.add_module(main);
            by_file.entry(&main.path).or_default();
        }
        for &call in calls {
            let Some(mapping) = maps.find(call) else { continue };
            let place = names.add_module(mapping);
            let known = Call { module: Some(place), address: call, lines: Vec::new() };
            names.calls.insert(call, known);
            if mapping.is_file() {
                by_file.entry(&mapping.path).or_default().push((call, mapping));
            }
        }
        for (path, calls) in by_file {
            names.resolve(maps, path, &calls);
        }
        names.resolve_generated(maps.pid);
        names
    }

    // Code of no file, and of a file that only the process has: what it compiled itself.
    fn resolve_generated(&mut self, pid: u32) {
        let is_generated = |call: &Call| {
            let module = call.module.and_then(|module| self.modules.get(module));
            call.lines.is_empty() && module.is_some_and(|module| module.mapping.is_executable)
        };
        let unknown = self.calls.iter().filter(|(_, call)| is_generated(call));
        let mut addresses: Vec<_> = unknown.map(|(&address, _)| address).collect();
        if addresses.is_empty() {
            return;
        }
        addresses.sort_unstable();
        let lines = perf_map::lines(pid, &addresses).unwrap_or_default();
        for (address, line) in addresses.into_iter().zip(lines) {
            let Some((call, line)) = self.calls.get_mut(&address).zip(line) else { continue };
            call.lines.push(line);
            if let Some(module) = call.module.and_then(|module| self.modules.get_mut(module)) {
                module.has_functions = true;
            }
        }
    }

    // The place of a mapping in `modules`.
    fn add_module(&mut self, mapping: &Mapping) -> usize {
        let known = self.modules.iter().position(|module| module.mapping == *mapping);
        known.unwrap_or_else(|| {
            self.modules.push(Module {
                mapping: mapping.clone(),
                build_id: String::new(),
                has_functions: false,
                has_lines: false,
            });
            self.modules.len() - 1
        })
    }

    fn resolve(&mut self, maps: &Maps, path: &str, calls: &[(u64, &Mapping)]) {
        let of_file = |module: &&mut Module| module.mapping.path == path;
        let Some(module) = self.modules.iter().find(|module| module.mapping.path == path) else {
            return;
        };
        let Some(file) = maps.open(&module.mapping) else { return };
        let offsets: Vec<_> =
            calls.iter().map(|(call, mapping)| mapping.file_offset(*call)).collect();
        let found = symbols::resolve(file, &offsets, |build_id| maps.open_debug(build_id));
        let Some(found) = found else { return };
        let mut lines = found.places.iter().flat_map(|place| &place.lines);
        let has_functions = lines.clone().any(|line| !line.function.is_empty());
        let has_lines = lines.any(|line| line.number.is_some());
        for module in self.modules.iter_mut().filter(of_file) {
            module.build_id.clone_from(&found.build_id);
            (module.has_functions, module.has_lines) = (has_functions, has_lines);
        }
        for ((call, _), place) in calls.iter().zip(found.places) {
            let known = self.calls.entry(*call).or_default();
            (known.address, known.lines) = (place.address, place.lines);
        }
    }

    /// The functions at a call, innermost first, as far as they are known.
    pub fn known_lines(&self, call: u64) -> &[Line] {
        self.calls.get(&call).map(|call| call.lines.as_slice()).unwrap_or_default()
    }

    /// The same, never empty: of what is not known, the place in its file, or its address.
    pub fn lines(&self, call: u64) -> Vec<Line> {
        let mut lines = self.known_lines(call).to_vec();
        if lines.is_empty() {
            lines.push(Line::default());
        }
        for line in lines.iter_mut().filter(|line| line.function.is_empty()) {
            line.function = self.place_text(call);
        }
        lines
    }

    fn place_text(&self, call: u64) -> String {
        let known = self.calls.get(&call);
        match known.and_then(|known| Some((known, self.modules.get(known.module?)?))) {
            Some((known, module)) if !module.mapping.path.is_empty() => {
                format!("{}+{:#x}", module.mapping.name(), known.address)
            }
            _ => format!("{call:#x}"),
        }
    }

    /// The number of a call's module, which is its place in `modules`.
    pub fn module(&self, call: u64) -> Option<usize> {
        self.calls.get(&call)?.module
    }

    /// Where a stack's calls stand, without the allocator's at its beginning.
    pub fn user_calls(&self, site: &Site) -> Vec<u64> {
        let mut calls: Vec<_> = site.calls().collect();
        let own = self.own_calls(&calls).max(site.own).min(calls.len().saturating_sub(1));
        calls.drain(..own);
        calls
    }

    // How many calls at the beginning are the allocator's.
    fn own_calls(&self, calls: &[u64]) -> usize {
        let is_library = calls.first().is_some_and(|call| self.is_in_library(*call));
        let most_between = if is_library { 0 } else { MOST_BETWEEN };
        let mut own = 0;
        for (place, &call) in calls.iter().enumerate() {
            if self.is_in_library(call) || self.is_named_so(call) {
                own = place + 1;
            } else if place - own >= most_between {
                break;
            }
        }
        own
    }

    fn is_in_library(&self, call: u64) -> bool {
        let module = self.module(call).and_then(|module| self.modules.get(module));
        let name = module.map(|module| module.mapping.name()).unwrap_or_default();
        name.starts_with("libtslab") && name.contains(".so")
    }

    fn is_named_so(&self, call: u64) -> bool {
        let outermost = self.known_lines(call).last();
        outermost.is_some_and(|line| is_allocator_function(&line.function))
    }
}

// Also of a program that the allocator is linked into.
fn is_allocator_function(name: &str) -> bool {
    let name = name.split('.').next().unwrap_or(name);
    let plain = ["__libc_", "__"].iter().find_map(|prefix| name.strip_prefix(prefix));
    let is_family = |name| FAMILY.contains(&name);
    let shim = name.strip_prefix("__rustc::").unwrap_or(name);
    ["tsl_", "tslab_", "operator new", "<tslab::Tslab as"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || is_family(name)
        || GONE_ON.contains(&name)
        || plain.is_some_and(is_family)
        || ["__rust_", "__rdl_", "__rg_"].iter().any(|prefix| {
            let function = shim.strip_prefix(prefix);
            function.is_some_and(|name| ["alloc", "realloc", "alloc_zeroed"].contains(&name))
        })
}

/// The call stacks of a test: addresses as in `fixture::add_samples`, with these functions.
#[cfg(test)]
pub fn of_test(functions: &[(u64, &str, &str, u32)]) -> Names {
    let mut names = Names::default();
    let path = "/opt/server".to_owned();
    let mapping = Mapping { start: 0x1000, end: 0x9000, offset: 0, is_executable: true, path };
    names.modules.push(Module {
        mapping,
        build_id: "00ab".to_owned(),
        has_functions: true,
        has_lines: true,
    });
    for &(call, function, file, line) in functions {
        let line =
            Line { function: function.to_owned(), file: Some(file.to_owned()), number: Some(line) };
        names.calls.insert(call, Call { module: Some(0), address: call, lines: vec![line] });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_allocate_are_known_by_name() {
        for name in [
            "malloc",
            "__libc_memalign",
            "__posix_memalign",
            "tsl_sample_small.cold",
            "malloc_beyond_stock.cold",
            "new_slow",
            "tslab_epoch_malloc",
            "operator new(unsigned long)",
            "operator new[](unsigned long, std::align_val_t)",
            "__rustc::__rust_alloc",
            "__rg_realloc",
            "<tslab::Tslab as core::alloc::global::GlobalAlloc>::alloc",
        ] {
            assert!(is_allocator_function(name), "{name}");
        }
        for name in ["malloc_or_die", "my_tsl_", "main", "__rust_begin_short_backtrace", ""] {
            assert!(!is_allocator_function(name), "{name}");
        }
    }

    #[test]
    fn the_allocators_calls_are_left_out_at_the_beginning_alone() {
        let names = of_test(&[
            (0x1000, "tsl_sample_small", "", 1),
            (0x2000, "malloc", "", 1),
            (0x3000, "parse", "", 1),
        ]);
        let users = |frames: &[u64]| {
            let site = Site { frames: frames.to_vec(), ..Site::default() };
            names.user_calls(&site)
        };
        let deep = [0x1001, 0x2001, 0x3001, 0x3001, 0x3001, 0x3001, 0x2001];
        assert_eq!(users(&deep), [0x3000, 0x3000, 0x3000, 0x3000, 0x2000]);
        assert_eq!(users(&[0x1001, 0x2001]), [0x2000]);
        assert_eq!(users(&[0, 0x3001]), [0, 0x3000]);
        assert!(users(&[]).is_empty());
        let unnamed = Site { frames: vec![0x9001, 0x9101, 0x3001], own: 2, ..Site::default() };
        assert_eq!(Names::default().user_calls(&unnamed), [0x3000]);
    }

    #[test]
    fn calls_between_the_allocators_are_its_own() {
        let functions = [(0x10, "sample_begin"), (0x20, "tsl_sample_small"), (0x30, "refill")];
        let functions = functions.iter().chain(&[(0x40, "malloc"), (0x50, "parse")]);
        let functions: Vec<_> = functions.map(|(call, name)| (*call, *name, "", 1)).collect();
        let mut names = of_test(&functions);
        let users = |names: &Names, frames: &[u64]| {
            names.user_calls(&Site { frames: frames.to_vec(), ..Site::default() })
        };
        assert_eq!(users(&names, &[0x11, 0x21, 0x31, 0x41, 0x51, 0x51]), [0x50, 0x50]);
        assert_eq!(users(&names, &[0x11, 0x31, 0x31, 0x41, 0x51]), [0x50]);
        assert_eq!(users(&names, &[0x51, 0x51, 0x51, 0x51, 0x41]).len(), 5);
        // Of the library all is known, and what it calls back is somebody's.
        names.modules[0].mapping.path = "/usr/lib/libtslab-preload.so.0".to_owned();
        names.modules.push(Module {
            mapping: Mapping { path: "/a".into(), ..names.modules[0].mapping.clone() },
            ..names.modules[0].clone()
        });
        names.calls.get_mut(&0x50).unwrap().module = Some(1);
        assert_eq!(users(&names, &[0x11, 0x51, 0x21, 0x51]), [0x50, 0x20, 0x50]);
    }

    #[test]
    fn what_is_not_known_has_a_place_or_an_address() {
        let names = of_test(&[(0x1000, "", "", 1), (0x2000, "main", "a.c", 7)]);
        assert_eq!(names.lines(0x1000)[0].function, "server+0x1000");
        assert_eq!(names.lines(0x2000)[0].function, "main");
        assert_eq!(names.lines(0x3000)[0].function, "0x3000");
        assert_eq!(Names::of(None, &BTreeSet::from([1])).lines(1)[0].function, "0x1");
    }

    #[test]
    fn calls_of_the_own_process_are_found() {
        let maps = Maps::of_process(std::process::id()).unwrap();
        let start = maps.main().unwrap().start;
        let here = (is_allocator_function as fn(&str) -> bool) as usize as u64;
        let names = Names::of(Some(&maps), &BTreeSet::from([here, 1]));
        assert!(names.lines(here)[0].function.contains("is_allocator_function"));
        assert_eq!((names.module(here), names.modules[0].mapping.start), (Some(0), start));
        assert_eq!((names.lines(1)[0].function.as_str(), names.module(1)), ("0x1", None));
        assert!(names.modules[0].has_lines && !names.maps_text.is_empty());
    }
}
