//! The addresses that a request may go to.
//!
//! Requests go only to the public internet, unless the hook's author allows private addresses.
//! Otherwise a hook whose URL someone else chose could reach the machine's own services or the
//! metadata service of its cloud. IPv6 addresses that a translator maps to a private IPv4 address
//! count as private too. The same table is in `docs/reference/hooks.md`, and a test compares the
//! two.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One range of IPv4 addresses that are not public.
struct V4 {
    base: [u8; 4],
    bits: u32,
    name: &'static str,
}

/// One range of IPv6 addresses that are not public.
struct V6 {
    base: [u16; 8],
    bits: u32,
    name: &'static str,
}

const fn v4(base: [u8; 4], bits: u32, name: &'static str) -> V4 {
    V4 { base, bits, name }
}

const fn v6(base: [u16; 8], bits: u32, name: &'static str) -> V6 {
    V6 { base, bits, name }
}

/// The ranges of the IANA registry of special-purpose IPv4 addresses. The first range that contains
/// an address names it.
const RANGES_V4: &[V4] = &[
    v4([0, 0, 0, 0], 8, "an unspecified address"),
    v4([10, 0, 0, 0], 8, "a private address"),
    v4([100, 64, 0, 0], 10, "a carrier-grade NAT address"),
    v4([127, 0, 0, 0], 8, "a loopback address"),
    v4([168, 63, 129, 16], 32, "an address of a cloud host agent"),
    v4([169, 254, 0, 0], 16, "a link-local address"),
    v4([172, 16, 0, 0], 12, "a private address"),
    v4([192, 0, 0, 0], 24, "a reserved address"),
    v4([192, 0, 2, 0], 24, "a documentation address"),
    v4([192, 88, 99, 0], 24, "a 6to4 address"),
    v4([192, 168, 0, 0], 16, "a private address"),
    v4([198, 18, 0, 0], 15, "a benchmarking address"),
    v4([198, 51, 100, 0], 24, "a documentation address"),
    v4([203, 0, 113, 0], 24, "a documentation address"),
    v4([224, 0, 0, 0], 4, "a multicast address"),
    v4([240, 0, 0, 0], 4, "a reserved address"),
];

/// The ranges of the IANA registry of special-purpose IPv6 addresses. The first range that contains
/// an address names it. An address outside all of them is public only within `2000::/3`.
const RANGES_V6: &[V6] = &[
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, "an unspecified address"),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, "a loopback address"),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "a private address"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "a reserved address"),
    v6(
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0],
        32,
        "a documentation address",
    ),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "a 6to4 address"),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "a documentation address"),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "a private address"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "a link-local address"),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "a private address"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "a multicast address"),
];

/// IPv6 ranges whose last four bytes are an IPv4 address. The IPv4 address decides whether such an
/// address is public.
const EMBEDDED: &[V6] = &[
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, "an IPv4-mapped address"),
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "a translated address"),
];

/// The range from which public IPv6 addresses are assigned: `2000::/3`.
const GLOBAL_V6: V6 = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, "a public address");

impl V4 {
    fn contains(&self, address: Ipv4Addr) -> bool {
        (address.to_bits() ^ Ipv4Addr::from(self.base).to_bits()).leading_zeros() >= self.bits
    }
}

impl V6 {
    fn contains(&self, address: Ipv6Addr) -> bool {
        (address.to_bits() ^ Ipv6Addr::from(self.base).to_bits()).leading_zeros() >= self.bits
    }
}

/// Returns what kind of private address this is, such as `a loopback address`, or `None` if it is public.
pub(super) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    let range = RANGES_V4.iter().find(|range| range.contains(address));
    range.map(|range| range.name)
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    if EMBEDDED.iter().any(|range| range.contains(address)) {
        let [.., a, b, c, d] = address.octets();
        return not_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let range = RANGES_V6.iter().find(|range| range.contains(address));
    match range {
        Some(range) => Some(range.name),
        None if GLOBAL_V6.contains(address) => None,
        None => Some("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the table of the page: each range, what it is, and an example address.
    fn documented() -> Vec<(String, String, IpAddr)> {
        let page = include_str!("../../../../../docs/reference/hooks.md");
        let (_, table) = page.split_once("| range | is | for example |").unwrap();
        let rows = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        let cell = |text: &str| text.trim().trim_matches('`').to_owned();
        rows.map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
            (
                cell(cells[0]),
                cell(cells[1]),
                cell(cells[2]).parse().unwrap(),
            )
        })
        .collect()
    }

    /// Returns the first and the last address of a range.
    fn ends(range: &str) -> [IpAddr; 2] {
        let (base, bits) = range.split_once('/').unwrap();
        let bits: u32 = bits.parse().unwrap();
        match base.parse().unwrap() {
            IpAddr::V4(base) => {
                let rest = u32::MAX.checked_shr(bits).unwrap_or(0);
                [
                    base.into(),
                    Ipv4Addr::from_bits(base.to_bits() | rest).into(),
                ]
            }
            IpAddr::V6(base) => {
                let rest = u128::MAX.checked_shr(bits).unwrap_or(0);
                [
                    base.into(),
                    Ipv6Addr::from_bits(base.to_bits() | rest).into(),
                ]
            }
        }
    }

    #[test]
    fn every_range_of_the_page_is_refused_from_end_to_end() {
        let documented = documented();
        for (range, name, example) in &documented {
            for address in ends(range).into_iter().chain([*example]) {
                assert_eq!(not_public(address), Some(name.as_str()), "{address}");
            }
        }
        let ranges: Vec<String> = documented.into_iter().map(|(range, ..)| range).collect();
        let in_code: Vec<String> = RANGES_V4
            .iter()
            .map(|range| format!("{}/{}", Ipv4Addr::from(range.base), range.bits))
            .chain(
                RANGES_V6
                    .iter()
                    .map(|range| format!("{}/{}", Ipv6Addr::from(range.base), range.bits)),
            )
            .collect();
        assert_eq!(ranges, in_code);
    }

    #[test]
    fn an_ipv4_address_in_ipv6_form_is_judged_as_what_it_stands_for() {
        for (text, expected) in [
            ("::ffff:127.0.0.1", Some("a loopback address")),
            ("::ffff:169.254.169.254", Some("a link-local address")),
            ("::ffff:10.1.2.3", Some("a private address")),
            ("64:ff9b::10.1.2.3", Some("a private address")),
            ("64:ff9b::127.0.0.1", Some("a loopback address")),
            ("::ffff:1.1.1.1", None),
            ("64:ff9b::1.1.1.1", None),
            ("::127.0.0.1", Some("a reserved address")),
        ] {
            assert_eq!(not_public(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn public_addresses_are_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00::1",
        ] {
            assert_eq!(not_public(text.parse().unwrap()), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_handed_out_is_not_public() {
        for text in ["100::1", "5f00::1", "4000::1", "::2", "e000::"] {
            assert_eq!(
                not_public(text.parse().unwrap()),
                Some("a reserved address"),
                "{text}"
            );
        }
    }
}
