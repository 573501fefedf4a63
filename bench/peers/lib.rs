//! Nothing of ours: the archive exists for the C or C++ objects that the peer's crate bundles.
extern crate peer;
