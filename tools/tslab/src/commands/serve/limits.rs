//! What the command line says of the figures.

/// What figures to make.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Labels of epochs told apart in each process.
    pub most_labels: usize,
    /// Ms since an epoch was closed after which its objects are leak candidates.
    pub leak_after_ms: u64,
}
