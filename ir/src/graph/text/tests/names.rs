//! Tests of the name tables.

use super::*;

fn table(text: &str) -> (Names, Vec<bool>) {
    let mut names = Names::default();
    let places = text.match_indices('%').map(|(place, _)| place as u32);
    let fresh = places.enumerate().map(|(id, place)| names.declare(text.as_bytes(), place, id as u32));
    let fresh = fresh.collect();
    (names, fresh)
}

#[test]
fn numbers_in_order_take_no_memory() {
    let text = "%0 %1 %2 ";
    let (names, fresh) = table(text);
    assert_eq!(fresh, [true; 3]);
    assert!(names.entries.is_empty());
    assert_eq!(names.find(text.as_bytes(), b"2"), Some(2));
    assert_eq!(names.find(text.as_bytes(), b"3"), None);
    assert_eq!(names.find(text.as_bytes(), b"02"), None);
}

#[test]
fn names_are_found_and_declared_once() {
    let text = "%0 %x %1 %x %0 %00 %x.1";
    let (names, fresh) = table(text);
    assert_eq!(fresh, [true, true, true, false, false, true, true]);
    let found = ["0", "x", "1", "00", "x.1", "y"].map(|name| names.find(text.as_bytes(), name.as_bytes()));
    assert_eq!(found, [Some(0), Some(1), Some(2), Some(5), Some(6), None]);
}

#[test]
fn thousands_of_names_are_distinct() {
    let text: String = (0..3000).map(|n| format!("%v{n} ")).collect();
    let (names, fresh) = table(&text);
    assert!(fresh.iter().all(|&fresh| fresh));
    for n in 0..3000 {
        assert_eq!(names.find(text.as_bytes(), format!("v{n}").as_bytes()), Some(n));
    }
}
