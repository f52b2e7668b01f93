//! Codecs: there and back, names, and what is refused.

use serde::{Deserialize, Serialize};

use crate::codec::Codec;
use crate::{Json, Postcard, Verdict};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Point {
    x: i32,
    label: String,
}

fn bytes<C: Codec>(value: &C::View) -> Vec<u8> {
    let mut bytes = vec![];
    C::encode(value, &mut bytes).unwrap();
    bytes
}

#[test]
fn values_come_back() {
    let point = Point { x: -3, label: "p".to_owned() };
    assert_eq!(Json::<Point>::decode(&bytes::<Json<Point>>(&point)).unwrap(), point);
    assert_eq!(Postcard::<Point>::decode(&bytes::<Postcard<Point>>(&point)).unwrap(), point);
    assert_eq!(Vec::<u8>::decode(&bytes::<Vec<u8>>(&[0, 255])).unwrap(), [0, 255]);
    assert_eq!(String::decode(&bytes::<String>("ü")).unwrap(), "ü");
    assert_eq!(i16::decode(&bytes::<i16>(&-2)).unwrap(), -2);
}

#[test]
fn formats_are_what_the_declaration_says() {
    assert_eq!(bytes::<u64>(&258), [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(bytes::<Json<Point>>(&Point { x: 1, label: String::new() }), br#"{"x":1,"label":""}"#);
    assert_eq!(bytes::<Postcard<Point>>(&Point { x: 1, label: "a".to_owned() }), [2, 1, b'a']);
    assert_eq!((u64::NAME, String::NAME, <Vec<u8>>::NAME), ("u64", "utf-8", "bytes"));
}

#[test]
fn what_cannot_be_read_stops_the_stream() {
    let errors = [
        u64::decode(b"1234567").map(drop).unwrap_err(),
        String::decode(b"\xff").map(drop).unwrap_err(),
        Json::<Point>::decode(b"{").map(drop).unwrap_err(),
        Postcard::<Point>::decode(b"").map(drop).unwrap_err(),
    ];
    assert!(errors.iter().all(|error| error.verdict() == Verdict::Stop && error.code() == "state-codec"));
}
