//! Rules P24 to P27: definition before use, hazards, the certificate.

use super::refused;
use crate::plan::verify::Rule;
use crate::plan::{FieldId, Place};

shows! {
    rows_are_written_before_they_are_read: refused(Rule::Definition, |plan| {
        plan.waves = vec![1, 2, 3];
        plan.places[0] = Place::Rows { field: FieldId(0), start: 1 };
        plan.places[1] = Place::Rows { field: FieldId(0), start: 1 };
    }) => @r#"
    the plan breaks its rules in 3 places
       1. P24 step f2 (k2 @node): operand 0 reads row 0 of field0, which no earlier wave wrote
       2. P24 step f2 (k2 @node): operand 1 reads row 0 of field0, which no earlier wave wrote
       3. P6 slab s0: it declares 3 rows, steps write 2 of them
    "#;
    results_of_a_wave_are_distinct:
        refused(Rule::Distinct, |plan| plan.places[1] = Place::Rows { field: FieldId(0), start: 1 }) => @r#"
    the plan breaks its rules in 4 places
       1. P25 step f1 (k1 input): result 0 writes row 1 of field0, which its wave writes already
       2. P24 step f2 (k2 @node): operand 1 reads row 2 of field0, which no earlier wave wrote
       3. P24 step f2 (k2 @node): operand 2 reads row 2 of field0, which no earlier wave wrote
       4. P6 slab s0: it declares 3 rows, steps write 2 of them
    "#;
    no_wave_reads_what_it_writes: refused(Rule::Hazards, |plan| {
        plan.waves = vec![1, 3];
        plan.places[1] = Place::Rows { field: FieldId(0), start: 1 };
        plan.slabs[0].rows = 2;
        plan.tables = vec![0, 1, 3, 0, 0, 1, 1, 1, 1];
    }) => @r#"
    the plan breaks its rules in 3 places
       1. P26 step f2 (k2 @node): operand 0 reads row 1 of field0, which its own wave writes
       2. P26 step f2 (k2 @node): operand 1 reads row 1 of field0, which its own wave writes
       3. P26 step f2 (k2 @node): operand 2 reads row 1 of field0, which its own wave writes
    "#;
    the_certificate_is_counted_anew: refused(Rule::Certificate, |plan| plan.certificate.gathered = 5) => @r#"
    the plan breaks its rules in 1 place
       1. P27 the certificate: gathered must be 6, found 5
    "#;
    no_bound_is_above_the_batches: refused(Rule::Certificate, |plan| plan.certificate.bound = 3) => @r#"
    the plan breaks its rules in 1 place
       1. P27 the certificate: no plan can have fewer batches than the bound, found 2 and 3
    "#;
}
