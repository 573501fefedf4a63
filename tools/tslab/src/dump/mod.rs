//! A process's memory after its end: its core dump, and what of it the allocator kept.

pub mod description;
pub mod file;
pub mod heap;
pub mod process;
pub mod record;
