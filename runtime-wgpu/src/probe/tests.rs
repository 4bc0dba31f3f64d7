//! Tests of probes.

use super::*;
use crate::predict::Card;

fn probe() -> Option<Probe> {
    Gpu::of_tests(Options::default()).map(|gpu| Probe { gpu })
}

#[test]
fn arithmetic_is_described_completely() {
    let Some(probe) = probe() else { return };
    let found = probe.arithmetic().expect("executes");
    let shares = [found.fused, found.contracted, found.contracted_in_loop];
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{found:?}");
    // WGSL allows 2.5 units for division and 3 for roots on normal numbers.
    assert!(found.division_ulp <= 3 && found.root_ulp <= 3, "{found:?}");
    assert!(found.keeps_order && found.turns <= Arithmetics::TURNS, "{found:?}");
    assert!(found.special.len() >= 10 && found.special.iter().any(Special::holds), "{found:?}");
    assert_eq!(found.numbers_lanes, probe.gpu().facts().subgroups.map(|_| true), "{found:?}");
    assert_eq!(found.reconverges, found.numbers_lanes, "{found:?}");
}

#[test]
fn times_and_roofs_are_positive_and_make_a_card() {
    let Some(probe) = probe() else { return };
    let (latencies, roofs) = (probe.latencies().expect("executes"), probe.roofs().expect("executes"));
    assert!(latencies.submission > 0.0 && latencies.read_back > 0.0 && latencies.load > 0.0, "{latencies:?}");
    assert!(
        latencies.uploads.len() >= 3 && latencies.uploads.is_sorted_by_key(|upload| upload.0),
        "{latencies:?}"
    );
    assert!(roofs.multiply_adds > 1e6 && roofs.copy > 1e6 && roofs.groups >= 1.0, "{roofs:?}");
    let card = Card::measured(&latencies, &roofs, 0.5);
    assert_eq!(card.multiply_adds, roofs.multiply_adds * 0.5);
}

#[test]
fn a_ladder_ends_where_it_is_told_to() {
    let Some(probe) = probe() else { return };
    let ladder = probe.memory(64 << 20).expect("the device works");
    assert!(ladder.bytes <= 128 << 20 && !ladder.end.is_empty(), "{ladder:?}");
    assert!(ladder.bytes >= 64 << 20 || ladder.end.contains("bytes"), "{ladder:?}");
}
