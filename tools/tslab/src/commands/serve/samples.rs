//! Values by metric, before they become text.

use std::collections::HashMap;
use std::sync::Arc;

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// What is now.
    Gauge(u64),
    /// What is now, in seconds.
    Seconds(f64),
    /// What has been so far.
    Counter(u64),
    /// What has been so far, in seconds.
    CountedSeconds(f64),
    /// How many of each size there are now.
    Histogram(Histogram),
}

/// Numbers of things by size.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// All sizes together.
    pub sum: f64,
    /// How many are at most as large as the bound, and larger than the one before.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Sorts `sizes` by `bounds`, which ascend.
    pub fn of(bounds: &[f64], sizes: &[f64]) -> Self {
        // What the encoder writes as +Inf.
        let bounds = bounds.iter().copied().chain([f64::MAX]);
        let mut buckets: Vec<_> = bounds.map(|bound| (bound, 0)).collect();
        for size in sizes {
            let first = buckets.partition_point(|(bound, _)| bound < size);
            buckets[first].1 += 1;
        }
        Self { sum: sizes.iter().sum(), buckets }
    }

    /// How many things there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

/// A value and what it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// In the order of the metric's labels.
    pub labels: Vec<Arc<str>>,
    /// The value.
    pub value: Value,
}

/// All that one scrape gets, by the metric's name.
#[derive(Debug, Default)]
pub struct Samples(HashMap<&'static str, Vec<Sample>>);

impl Samples {
    /// Adds a value.
    pub fn add(&mut self, metric: &'static str, labels: Vec<Arc<str>>, value: Value) {
        self.0.entry(metric).or_default().push(Sample { labels, value });
    }

    /// The values of a metric.
    pub fn of(&self, metric: &str) -> &[Sample] {
        self.0.get(metric).map(Vec::as_slice).unwrap_or_default()
    }

    /// The names of all metrics that have values.
    #[cfg(test)]
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}

/// Adds the values of one process. What is not known has no value.
pub struct OfProcess<'a> {
    samples: &'a mut Samples,
    process: [Arc<str>; 2],
}

impl<'a> OfProcess<'a> {
    /// Of the process with this number and name.
    pub fn new(samples: &'a mut Samples, pid: u32, name: &str) -> Self {
        Self { samples, process: [pid.to_string().into(), name.into()] }
    }

    /// A gauge; `more`: the labels behind the process's.
    pub fn gauge(&mut self, metric: &'static str, more: &[&Arc<str>], value: Option<u64>) {
        self.add(metric, more, value.map(Value::Gauge));
    }

    /// A counter.
    pub fn counter(&mut self, metric: &'static str, more: &[&Arc<str>], value: Option<u64>) {
        self.add(metric, more, value.map(Value::Counter));
    }

    /// Any value.
    pub fn add(&mut self, metric: &'static str, more: &[&Arc<str>], value: Option<Value>) {
        let Some(value) = value else { return };
        let labels = self.process.iter().chain(more.iter().copied()).cloned().collect();
        self.samples.add(metric, labels, value);
    }
}
