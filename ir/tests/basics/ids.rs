//! Ids.

use autobatch_ir::ValueId;
use autobatch_ir::id::MAX_INDEX;

#[test]
fn an_optional_id_is_as_small_as_an_id() {
    assert_eq!(size_of::<Option<ValueId>>(), 4);
}

#[test]
fn an_id_spells_its_index() {
    assert_eq!(ValueId::new(12).to_string(), "%12");
    assert_eq!(ValueId::new(12).index(), 12);
}

#[test]
fn numbers_beyond_thirty_bits_are_not_ids() {
    assert!(ValueId::try_new(MAX_INDEX).is_some());
    assert!(ValueId::try_new(MAX_INDEX + 1).is_none());
    assert!(serde_json::from_str::<ValueId>("4294967295").is_err());
}
