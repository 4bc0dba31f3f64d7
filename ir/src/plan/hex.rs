//! A hash in JSON: a text of hexadecimal digits, because most readers of JSON round large numbers.

use serde::{Deserialize, Deserializer, Serializer};
use std::borrow::Cow;

pub(super) fn serialize<S: Serializer>(hash: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{hash:#034x}"))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
    let hash = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
    hash.ok_or_else(|| serde::de::Error::custom("a structure is 0x and at most 32 hexadecimal digits"))
}
