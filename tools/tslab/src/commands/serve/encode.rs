//! The samples as OpenMetrics text. Names, types, units, help and labels of the metrics are those
//! of `dashboards/metrics.json`.

use std::fmt::{self, Write};
use std::sync::Arc;

use anyhow::{Context, Result};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, LabelSetEncoder, LabelValueEncoder,
    MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use serde::Deserialize;

use super::samples::{Sample, Samples, Value};

const METRICS: &str = include_str!("../../../../../dashboards/metrics.json");

/// A metric as the dashboards expect it.
#[derive(Clone, Debug, Deserialize)]
pub struct Metric {
    /// With the unit and, of a counter, `_total`.
    pub name: String,
    /// What its values are.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Empty: none.
    pub unit: String,
    /// What it means.
    pub help: String,
    /// Without those that Prometheus adds.
    pub labels: Vec<String>,
}

/// What a metric's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// What is now.
    Gauge,
    /// What has been so far.
    Counter,
    /// How many of each size there are.
    Histogram,
}

/// The metrics, in the order of their file.
pub fn metrics() -> Result<Arc<[Metric]>> {
    let metrics: Vec<_> = serde_json::from_str(METRICS).context("metrics.json is damaged")?;
    Ok(metrics.into())
}

/// Writes what a scrape gets.
pub fn openmetrics(metrics: Arc<[Metric]>, samples: Samples) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape { metrics, samples }));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Scrape {
    metrics: Arc<[Metric]>,
    samples: Samples,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for metric in self.metrics.iter() {
            let unit = metric.unit();
            let (name, kind) = (metric.bare_name(), metric.kind.for_encoder());
            let mut encoder = encoder.encode_descriptor(name, &metric.help, unit.as_ref(), kind)?;
            for sample in self.samples.of(&metric.name) {
                encode_sample(&mut encoder, metric, sample)?;
            }
        }
        Ok(())
    }
}

impl Metric {
    // The encoder adds the unit, and `_total` to counters.
    fn bare_name(&self) -> &str {
        let name = self.name.strip_suffix("_total").unwrap_or(&self.name);
        let bare = name.strip_suffix(&self.unit).and_then(|name| name.strip_suffix('_'));
        bare.filter(|_| !self.unit.is_empty()).unwrap_or(name)
    }

    fn unit(&self) -> Option<Unit> {
        (!self.unit.is_empty()).then(|| Unit::Other(self.unit.clone()))
    }
}

impl Kind {
    fn for_encoder(self) -> MetricType {
        match self {
            Self::Gauge => MetricType::Gauge,
            Self::Counter => MetricType::Counter,
            Self::Histogram => MetricType::Histogram,
        }
    }
}

fn encode_sample(encoder: &mut MetricEncoder, metric: &Metric, sample: &Sample) -> fmt::Result {
    if sample.labels.is_empty() {
        return encode_value(encoder, &sample.value);
    }
    let labels = Labels { names: &metric.labels, values: &sample.labels };
    encode_value(&mut encoder.encode_family(&labels)?, &sample.value)
}

fn encode_value(encoder: &mut MetricEncoder, value: &Value) -> fmt::Result {
    match value {
        // The encoder's largest; more than that is damage, which must not cost the scrape.
        Value::Gauge(value) => encoder.encode_gauge(&i64::try_from(*value).unwrap_or(i64::MAX)),
        Value::Seconds(value) => encoder.encode_gauge(value),
        Value::Counter(value) => encoder.encode_counter::<NoLabelSet, u64, f64>(value, None),
        Value::CountedSeconds(value) => encoder.encode_counter::<NoLabelSet, f64, f64>(value, None),
        Value::Histogram(value) => {
            let count = value.count();
            encoder.encode_histogram::<NoLabelSet>(value.sum, count, &value.buckets, None)
        }
    }
}

struct Labels<'a> {
    names: &'a [String],
    values: &'a [Arc<str>],
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> fmt::Result {
        for (name, value) in self.names.iter().zip(self.values) {
            let mut label = encoder.encode_label();
            let mut key = label.encode_label_key()?;
            key.write_str(name)?;
            let mut out = key.encode_label_value()?;
            Escaped(value).encode(&mut out)?;
            out.finish()?;
        }
        Ok(())
    }
}

// The encoder writes values as they are, quotes and line breaks included.
struct Escaped<'a>(&'a str);

impl EncodeLabelValue for Escaped<'_> {
    fn encode(&self, out: &mut LabelValueEncoder) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '"' => out.write_str("\\\"")?,
                '\\' => out.write_str("\\\\")?,
                '\n' => out.write_str("\\n")?,
                _ => out.write_char(char)?,
            }
        }
        Ok(())
    }
}
