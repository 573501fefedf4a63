//! The number of a process may return while the file of an earlier one is still there.

mod common;
mod openmetrics;
mod place;
#[path = "../src/rows.rs"]
mod rows;
mod server;

use std::process;

use common::sample;
use place::{Directory, map, own_start};
use server::Server;

#[test]
fn a_process_that_has_ended_is_named_by_when_it_began() {
    let (files, pid, start) = (Directory::new(), process::id(), own_start());
    map(&files.add(&sample(pid, start)));
    files.add(&sample(pid, start - 1));
    let server = Server::start(&files, &[]);
    for (name, began, life) in [
        (pid.to_string(), start, "alive"),
        (format!("{pid}.{start}"), start, "alive"),
        (format!("{pid}.{}", start - 1), start - 1, "dead"),
    ] {
        for question in ["", "/epochs", "/leaks", "/doctor"] {
            let told = server.json(&format!("/api/v1/processes/{name}{question}"));
            assert_eq!((&told["start_ticks"], &told["life"]), (&began.into(), &life.into()));
        }
    }
    assert_eq!(server.get(&format!("/api/v1/processes/{pid}.1")).status, 404);
    assert_eq!(files.json(&["stats", &format!("{pid}.{}", start - 1)])["life"], "dead");
}
