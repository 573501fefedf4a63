//! The ports that are asked for, and whether they are free.

use std::net::TcpListener;

use anyhow::{Context, Result};
use clap::builder::RangedI64ValueParser;

use super::setup::HOST;

/// Of options; 0 would be any port.
pub fn parser() -> RangedI64ValueParser<u16> {
    RangedI64ValueParser::new().range(1..=i64::from(u16::MAX))
}

/// Each is a port, and the option that names another.
pub fn check_all(wanted: impl Iterator<Item = (u16, &'static str)>) -> Result<()> {
    // Held until all are looked at: a port that is named twice is found, too.
    let mut held = Vec::new();
    for (port, option) in wanted {
        let listener = TcpListener::bind((HOST, port));
        held.push(listener.with_context(|| {
            format!("cannot listen on {HOST}:{port}: name another port with {option}")
        })?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_in_use_or_named_twice_is_said() {
        let taken = TcpListener::bind((HOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let said = check_all([(port, "--port")].into_iter()).unwrap_err().to_string();
        assert!(said.contains(&format!("{HOST}:{port}")) && said.ends_with("--port"), "{said}");
        drop(taken);
        assert!(check_all([(port, "--port")].into_iter()).is_ok());
        let twice = [(port, "--port"), (port, "--grafana-port")];
        let said = check_all(twice.into_iter()).unwrap_err().to_string();
        assert!(said.ends_with("--grafana-port"), "{said}");
    }
}
