//! Tests of the scan over bound words.

use crate::executor::bound_words::any_reaches;

#[test]
fn a_word_at_the_limit_is_found_at_every_position() {
    for len in 0..70 {
        let mut words = vec![6; len];
        assert!(!any_reaches(&words, 7) && (len == 0 || any_reaches(&words, 6)));
        for at in 0..len {
            words[at] = 7 + at as u32;
            assert!(any_reaches(&words, 7), "word {at} of {len}");
            words[at] = 6;
        }
    }
}
