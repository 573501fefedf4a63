//! Who may read: all of this machine, or those who know the token.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use constant_time_eq::constant_time_eq;

/// Holds the token when no file is named. Unlike the command line, it is for the same user alone.
const VARIABLE: &str = "TSLAB_SERVE_TOKEN";

/// What a reader must send.
pub struct Token(Vec<u8>);

impl Token {
    /// The token in `file`, or else in the environment. None: neither is named.
    pub fn find(file: Option<&Path>) -> Result<Option<Self>> {
        if let Some(file) = file {
            let cannot = || format!("cannot read the token in {}", file.display());
            let bytes = fs::read(file).with_context(cannot)?;
            return Self::of(&bytes, &file.display().to_string()).map(Some);
        }
        let value = env::var_os(VARIABLE);
        value.map(|value| Self::of(value.as_bytes(), VARIABLE)).transpose()
    }

    fn of(bytes: &[u8], place: &str) -> Result<Self> {
        let token = bytes.trim_ascii();
        if token.is_empty() || !token.iter().all(u8::is_ascii_graphic) {
            bail!("{place} holds no token: write one line of letters, digits and signs to it");
        }
        Ok(Self(token.to_owned()))
    }

    /// Whether a request brings it. How long that takes tells nothing of it but its length.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        let sent = headers.get(AUTHORIZATION);
        let sent = sent.and_then(|value| value.as_bytes().split_at_checked("Bearer ".len()));
        sent.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case(b"Bearer ") && constant_time_eq(token.trim_ascii(), &self.0)
        })
    }
}

/// Refuses to listen where others can reach the server, unless `is_settled` who may read.
pub fn check_reach(listen: SocketAddr, is_settled: bool) -> Result<()> {
    if is_settled || is_this_machine(listen.ip()) {
        return Ok(());
    }
    bail!(
        "{listen} can be reached from other machines, and nothing would ask who reads: give \
         --token-file FILE, or --insecure-no-token if everyone may read"
    )
}

fn is_this_machine(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served_without_a_token() {
        let check = |listen: &str, is_settled| check_reach(listen.parse().unwrap(), is_settled);
        for listen in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(check(listen, false).is_ok(), "{listen}");
        }
        for listen in ["0.0.0.0:1", "10.0.0.1:1", "[::]:1", "[::ffff:10.0.0.1]:1"] {
            let refused = check(listen, false).unwrap_err();
            assert!(refused.to_string().contains("--token-file"), "{refused}");
            assert!(check(listen, true).is_ok(), "{listen}");
        }
    }

    #[test]
    fn a_token_is_one_word() {
        for bytes in [&b""[..], b" \n", b"two words", b"l\xc3\xa4nge", b"a\0b"] {
            assert!(Token::of(bytes, "file").is_err(), "{bytes:?}");
        }
        assert_eq!(Token::of(b" s3cret+/=\r\n", "file").unwrap().0, b"s3cret+/=");
    }

    #[test]
    fn the_whole_token_must_be_sent() {
        let token = Token::of(b"s3cret", "file").unwrap();
        let is_in = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            token.is_in(&headers)
        };
        assert!(is_in("Bearer s3cret") && is_in("bearer  s3cret "));
        for value in ["s3cret", "Bearer s3cre", "Bearer s3crets", "Basic s3cret", "Bearer ", ""] {
            assert!(!is_in(value), "{value}");
        }
        assert!(!token.is_in(&HeaderMap::new()));
    }
}
