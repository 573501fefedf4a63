//! Call stacks as people see them: functions, inlined ones too, and where each calls the next.

use std::collections::HashMap;

use crate::names::Names;
use crate::sampling::Site;

/// A function by its number.
pub type Function = usize;

/// A function that is entered by the same calls, by its number.
pub type Node = usize;

/// A step of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it is.
    pub node: Node,
    /// The same function, however it was called.
    pub function: Function,
    /// Where in it: a line, or an address where lines are not known.
    pub at: u64,
}

/// A function of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Known {
    /// As it is written in its source.
    pub name: String,
    /// The source.
    pub file: Option<String>,
    /// It is of a library that came with the system.
    pub is_system: bool,
}

/// The stacks of all sites.
#[derive(Debug, Default)]
pub struct Stacks {
    /// By number.
    pub functions: Vec<Known>,
    // Outermost first, by the site's row.
    paths: HashMap<usize, Vec<Step>>,
}

// Sources of libraries, in which nobody puts a scope; and where sources are not known, beginnings
// of their functions.
const FOLDERS: [&str; 2] = ["/usr/", "/rustc/"];
const SYSTEM: [&str; 3] = ["/usr/lib", "/lib", "["];
const BEGINNINGS: [&str; 9] = [
    "std::",
    "__gnu_cxx::",
    "core::",
    "alloc::",
    "_start",
    "__libc_",
    "start_thread",
    "clone3",
    "0x",
];

impl Known {
    /// Whether a scope may stand there.
    pub fn is_place(&self) -> bool {
        if self.is_system {
            return false;
        }
        if let Some(file) = &self.file {
            return !FOLDERS.iter().any(|folder| file.starts_with(folder));
        }
        let is_foreign = BEGINNINGS.iter().any(|begin| self.name.starts_with(begin));
        !is_foreign && !self.name.contains("+0x")
    }
}

// The program itself comes first of all modules, and may be installed anywhere.
fn is_of_system(names: &Names, call: u64) -> bool {
    let library = names.module(call).filter(|&module| module != 0);
    let path = library.and_then(|module| Some(&names.modules.get(module)?.mapping.path));
    path.is_some_and(|path| SYSTEM.iter().any(|folder| path.starts_with(folder)))
}

impl Stacks {
    /// Names them.
    pub fn of(sites: &[Site], names: &Names) -> Self {
        let mut stacks = Self::default();
        let (mut functions, mut nodes) = (HashMap::new(), HashMap::new());
        for site in sites {
            let mut lines = Vec::new();
            for call in names.user_calls(site) {
                lines.extend(names.lines(call).into_iter().map(|line| (call, line)));
            }
            let mut path = Vec::new();
            let mut outer = None;
            for (call, line) in lines.into_iter().rev() {
                let at = line.number.map_or(call, u64::from);
                let (name, file) = (line.function, line.file);
                let known = Known { name, file, is_system: is_of_system(names, call) };
                let function = stacks.function(&mut functions, known);
                let fresh = nodes.len();
                let node = *nodes.entry((outer, function)).or_insert(fresh);
                outer = Some((node, at));
                path.push(Step { node, function, at });
            }
            stacks.paths.insert(site.row, path);
        }
        stacks
    }

    fn function(&mut self, known: &mut HashMap<Known, Function>, function: Known) -> Function {
        *known.entry(function).or_insert_with_key(|function| {
            self.functions.push(function.clone());
            self.functions.len() - 1
        })
    }

    /// The steps to a site, outermost first; none where it is not known.
    pub fn path(&self, site: usize) -> &[Step] {
        self.paths.get(&site).map(Vec::as_slice).unwrap_or_default()
    }

    /// The first step in a function.
    pub fn step(&self, site: usize, function: Function) -> Option<Step> {
        self.path(site).iter().find(|step| step.function == function).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn steps_are_told_apart_by_the_calls_that_led_there() {
        let names = names::of_test(&[
            (0x1000, "main", "a.c", 5),
            (0x1001, "main", "a.c", 6),
            (0x1010, "serve", "a.c", 20),
        ]);
        let site = |row, frames: &[u64]| Site { row, frames: frames.to_vec(), ..Site::default() };
        let sites = [site(1, &[0x1011, 0x1001]), site(2, &[0x1011, 0x1002])];
        let stacks = Stacks::of(&sites, &names);
        let [outer, inner] = stacks.path(1) else { panic!("two steps") };
        assert_eq!((outer.at, inner.at), (5, 20));
        assert_eq!(stacks.functions[inner.function].name, "serve");
        let other = stacks.step(2, inner.function).unwrap();
        assert_eq!(other.at, 20);
        assert_ne!(other.node, inner.node, "another line of main calls it");
        assert_eq!(stacks.path(2)[0].node, outer.node);
        assert!(stacks.path(3).is_empty());
    }

    #[test]
    fn no_scope_belongs_into_a_library() {
        let is_place = |name: &str, file: Option<&str>| {
            let file = file.map(ToOwned::to_owned);
            Known { name: name.to_owned(), file, is_system: false }.is_place()
        };
        assert!(is_place("serve", None) && is_place("core::step", Some("/srv/core.cc")));
        assert!(is_place("clone_tree", None));
        for name in ["std::vector<int>::push_back", "__libc_start_main", "libc.so.6+0x29d68"] {
            assert!(!is_place(name, None), "{name}");
        }
        assert!(!Known { is_system: true, ..Known::default() }.is_place());
        assert!(!is_place("push_back", Some("/usr/include/c++/12/bits/stl_vector.h")));
    }
}
