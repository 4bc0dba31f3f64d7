//! Incremental verification of grown plans gives the same verdict as verification of the whole plan.

use crate::agreement::{planner, verified};
use crate::graphs::Random;
use crate::growing::begins_with;
use crate::mutations::mutants;
use autobatch_ir::ValueId;
use autobatch_ir::graph::Graph;
use autobatch_ir::plan::{Examined, Plan, Verified};
use autobatch_planner::{Grown, Request, RowOrder};
use autobatch_testing::growing::{Known, model};
use autobatch_testing::trials::trials;

/// Calls `round` with the plans before and after each round of growth, and the record of the earlier verification.
fn rounds(trials: u64, mut round: impl FnMut(&str, Verified<Plan>, &Plan, &Examined)) {
    let (module, model) = model();
    for seed in 0..trials {
        let mut random = Random(seed);
        let g = Graph::new(&module);
        let mut known = Known::default();
        let mut planner = planner(["auto", "depth", "none"][random.below(3)]);
        let rows = [RowOrder::Batch, RowOrder::Propagated][random.below(2)];
        let mut examined = Examined::default();
        let mut kept: Option<(Grown, Verified<Plan>)> = None;
        for number in 0..2 + random.below(5) {
            (0..1 + random.below(12))
                .for_each(|_| model.act(&g, &mut known, &mut |limit| random.below(limit)));
            let wanted: Vec<ValueId> =
                (0..1 + random.below(3)).filter_map(|_| known[random.below(known.len())].id()).collect();
            let request = Request { wanted: &wanted, rows, ..Request::default() };
            let what = format!("seed {seed} round {number} {rows:?}");
            kept = Some(match kept.take() {
                None => {
                    let grown = planner.begin(&g.data(), &request).expect("the request has values");
                    let plan = grown.plan().clone().verify_to_grow(&mut examined).expect("valid");
                    (grown, plan)
                }
                Some((mut grown, plan)) => {
                    planner.grow(&g.data(), &request, &mut grown).expect("the request has values");
                    round(&what, plan.clone(), grown.plan(), &examined);
                    let plan = plan.grow(grown.plan(), &mut examined).expect("valid");
                    (grown, plan)
                }
            });
        }
    }
}

#[test]
fn a_plan_grown_in_rounds_equals_the_whole_and_names_its_predecessor() {
    rounds(trials(150, 5_000), |what, plan, longer, examined| {
        let before = plan.identity();
        let grown = plan.clone().grow(longer, &mut examined.clone()).expect("valid");
        assert_eq!(grown, verified(longer.clone(), what), "{what}");
        assert!(grown.grew_from(before) && grown.identity() != before && !plan.grew_from(before), "{what}");
        // The verdict is the same without the record.
        let anew = plan.grow(longer, &mut Examined::default()).expect("valid");
        assert!(anew == grown && !anew.grew_from(before), "{what}");
    });
}

#[test]
fn an_extension_is_rejected_exactly_if_the_whole_plan_is() {
    let (mut refused, mut taken, mut kept) = (0, 0, 0);
    rounds(trials(25, 1_000), |what, plan, longer, examined| {
        let mut random = Random(longer.steps.len() as u64);
        mutants(longer, 6, &mut random, |_, mutant, change| {
            let Some(mutant) = mutant else { return };
            let whole = mutant.clone().verify();
            let grown = plan.clone().grow(&mutant, &mut examined.clone());
            match &grown {
                // An accepted plan follows every rule, also if the mutation changed an earlier part.
                Ok(grown) => {
                    verified((**grown).clone(), &format!("{what}: {}", change()));
                    assert!(begins_with(grown, &plan) || **grown == mutant, "{what}: {}", change());
                }
                Err(_) => assert!(whole.is_err(), "{what}: {} is sound as a whole", change()),
            }
            if begins_with(&mutant, &plan) {
                assert_eq!(grown.is_ok(), whole.is_ok(), "{what}: {}", change());
            }
            refused += u32::from(grown.is_err());
            taken += u32::from(grown.is_ok() && whole.is_ok());
            kept += u32::from(grown.is_ok() && whole.is_err());
        });
    });
    assert!(refused > 500 && taken > 50 && kept > 50, "{refused} refused, {taken} taken, {kept} kept");
}
