//! The forms of a scrape: which one is wanted, and what sets them apart.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use super::encode::{Kind, Metric};

const OPENMETRICS: &str = "application/openmetrics-text";

/// How the figures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// What Prometheus has always read, and every other reader, too.
    Plain,
    /// Its successor, for those who ask for it by name.
    OpenMetrics,
}

impl Form {
    /// `OpenMetrics` when the reader likes it no less than plain text.
    pub fn wanted(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
        let (mut openmetrics, mut plain) = (0.0_f32, 0.0_f32);
        for range in lines.flat_map(|line| line.split(',')) {
            let (kind, weight) = weighed(range);
            if kind.eq_ignore_ascii_case(OPENMETRICS) {
                openmetrics = openmetrics.max(weight);
            } else if ["text/plain", "text/*", "*/*"].contains(&kind) {
                plain = plain.max(weight);
            }
        }
        if openmetrics > 0.0 && openmetrics >= plain { Self::OpenMetrics } else { Self::Plain }
    }

    /// What the text is, for HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Writes OpenMetrics in this form.
    pub fn of(self, text: String, metrics: &[Metric]) -> String {
        match self {
            Self::OpenMetrics => text,
            Self::Plain => plain(&text, metrics),
        }
    }
}

// A media range, and its weight: 1 unless it says otherwise, 0 if that makes no sense.
fn weighed(range: &str) -> (&str, f32) {
    let mut parts = range.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q="));
    (kind, weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
}

// Samples are the same in both forms. Plain text knows neither units nor an end, and calls a
// counter by the name of its samples.
fn plain(openmetrics: &str, metrics: &[Metric]) -> String {
    let is_counter = |family: &str| {
        let is_it = |metric: &Metric| metric.name.strip_suffix("_total") == Some(family);
        metrics.iter().any(|metric| metric.kind == Kind::Counter && is_it(metric))
    };
    let mut out = String::with_capacity(openmetrics.len());
    for line in openmetrics.lines() {
        let Some((word, rest)) = line.strip_prefix("# ").and_then(|line| line.split_once(' '))
        else {
            if line != "# EOF" {
                out.extend([line, "\n"]);
            }
            continue;
        };
        let Some((family, rest)) = rest.split_once(' ').filter(|_| word != "UNIT") else {
            continue;
        };
        let ending = if is_counter(family) { "_total" } else { "" };
        out.extend(["# ", word, " ", family, ending, " ", rest, "\n"]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &str) -> Form {
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
        Form::wanted(&headers)
    }

    #[test]
    fn openmetrics_is_for_those_who_ask_for_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.6,\
                          application/openmetrics-text;version=0.0.1;q=0.5,\
                          text/plain;version=0.0.4;q=0.4,*/*;q=0.3";
        assert_eq!(wanted(prometheus), Form::OpenMetrics);
        assert_eq!(wanted("Application/OpenMetrics-Text"), Form::OpenMetrics);
        assert_eq!(wanted("text/plain, application/openmetrics-text; q=1.0"), Form::OpenMetrics);
        let plain = "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;q=0.5,*/*;q=0.1";
        for accept in [
            plain,
            "",
            "*/*",
            "text/html, text/*;q=0.9",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=high",
            "application/json",
        ] {
            assert_eq!(wanted(accept), Form::Plain, "{accept}");
        }
        assert_eq!(Form::wanted(&HeaderMap::new()), Form::Plain);
    }

    #[test]
    fn several_lines_are_one_list() {
        let mut headers = HeaderMap::new();
        headers.append(ACCEPT, "text/plain;q=0.5".parse().unwrap());
        headers.append(ACCEPT, "application/openmetrics-text".parse().unwrap());
        assert_eq!(Form::wanted(&headers), Form::OpenMetrics);
    }
}
