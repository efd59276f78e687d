//! Whose address counts for the limits per address (`--trusted-proxy`, contract ipc §6.3).

use std::net::IpAddr;

/// The address a client counts under: the socket's, unless the socket is a trusted proxy's; then the last entry of
/// `X-Forwarded-For` that no trusted proxy added about another one.
///
/// `forwarded` are the header's values in order, as bytes: one that is no text must not hide what a proxy wrote after
/// it. An entry that is no address ends the walk: what stands before it was written by somebody untrusted.
pub(super) fn client_address<'a>(
    socket: IpAddr,
    trusted: &[IpAddr],
    forwarded: impl DoubleEndedIterator<Item = &'a [u8]>,
) -> IpAddr {
    let mut client = socket.to_canonical();
    let entries = forwarded.rev().flat_map(|value| value.rsplit(|byte| *byte == b','));
    for entry in entries {
        if !trusted.iter().any(|proxy| proxy.to_canonical() == client) {
            break;
        }
        match std::str::from_utf8(entry).ok().and_then(|entry| parse(entry.trim())) {
            Some(address) => client = address,
            None => break,
        }
    }
    client
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`.
fn parse(entry: &str) -> Option<IpAddr> {
    let address = match entry.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => match entry.split_once(':') {
            Some((v4, port)) if !port.contains(':') => v4,
            _ => entry,
        },
    };
    address.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(socket: &str, trusted: &[&str], forwarded: &[&str]) -> String {
        let trusted: Vec<IpAddr> = trusted.iter().map(|address| address.parse().unwrap()).collect();
        client_address(socket.parse().unwrap(), &trusted, forwarded.iter().map(|value| value.as_bytes()))
            .to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        assert_eq!(of("192.0.2.9", &[], &["10.0.0.1"]), "192.0.2.9");
        assert_eq!(of("192.0.2.9", &["192.0.2.1"], &["10.0.0.1"]), "192.0.2.9");
        assert_eq!(of("192.0.2.1", &["192.0.2.1"], &["10.0.0.1"]), "10.0.0.1");
        assert_eq!(of("::ffff:192.0.2.1", &["192.0.2.1"], &["10.0.0.1"]), "10.0.0.1");
        assert_eq!(of("192.0.2.1", &["::ffff:192.0.2.1"], &["10.0.0.1"]), "10.0.0.1");
    }

    #[test]
    fn bytes_that_are_no_text_hide_nothing_after_them() {
        let proxy: IpAddr = "192.0.2.1".parse().unwrap();
        for lines in [&[&b"6.6.6.6"[..], b"\xff, 7.7.7.7"][..], &[b"6.6.6.6, \xff, 7.7.7.7"]] {
            let client = client_address(proxy, &[proxy], lines.iter().copied());
            assert_eq!(client.to_string(), "7.7.7.7");
        }
    }

    #[test]
    fn what_a_client_wrote_itself_is_skipped() {
        assert_eq!(of("192.0.2.1", &["192.0.2.1"], &["6.6.6.6, 10.0.0.1"]), "10.0.0.1");
        assert_eq!(of("192.0.2.1", &["192.0.2.1"], &["6.6.6.6", "10.0.0.1"]), "10.0.0.1");
        let chain = ["192.0.2.1", "192.0.2.2"];
        assert_eq!(of("192.0.2.1", &chain, &["6.6.6.6, 10.0.0.1, 192.0.2.2"]), "10.0.0.1");
        assert_eq!(of("192.0.2.1", &chain, &["192.0.2.2"]), "192.0.2.2", "nobody is left");
    }

    #[test]
    fn entries_in_every_spelling_and_none() {
        for (entry, address) in [
            ("10.0.0.1:4711", "10.0.0.1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("unknown", "192.0.2.1"),
            ("", "192.0.2.1"),
            ("[", "192.0.2.1"),
        ] {
            assert_eq!(of("192.0.2.1", &["192.0.2.1"], &[entry]), address, "{entry}");
        }
    }
}
