//! Rules P31 to P35: one failing test each, on a plan that updates a weight and a table.

use crate::plan::{
    Code, Instr, Kernel, KernelId, Reg, RegId, RegKind, Source, Stage, StoreId, Update, UpdatePlan,
    UpdateSource, View,
};
use crate::types::{DType, Type, f32};
use std::sync::Arc;

const TEXT: &str = "autobatch update 5 module \"m\"
store @w param f32[3]  store @t table f32[4,2]
store @w.m state @w f32[3]
store @w.grad grad @w f32[3]  store @t.grad grad @t f32[4,2]
bind floats 1
kernel k0 clip (%0: f32, %1: f32) { temp %2: f32 map 1 { t0 = sqrt %0  t1 = mul t0, %1 -> %2 } return %2 }
kernel k1 @momentum (%0: f32, %1: f32, %2: f32, %3: f32) {
  temp %4: f32, %5: f32
  map 1 { t0 = add %1, %2 -> %4  t1 = mul t0, %3  t2 = sub %0, t1 -> %5 }
  return %5, %4
}
kernel k2 @sgd (%0: f32, %1: f32, %2: f32) {
  temp %3: f32 map 1 { t0 = mul %1, %2  t1 = sub %0, t0 -> %3 } return %3
}
sumsq -> c0 <- @w.grad @t.grad
scalars k0 -> c1 <- c0 x[0]
update k1 -> @w @w.m <- @w @w.grad @w.m c1
update k2 sparse -> @t <- @t @t.grad c1";

fn good() -> UpdatePlan {
    UpdatePlan::from_text(TEXT).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn broken(change: impl FnOnce(&mut UpdatePlan)) -> Vec<String> {
    let mut plan = good();
    change(&mut plan);
    let errors = plan.verify().expect_err("the plan was broken");
    errors.findings().iter().map(ToString::to_string).collect()
}

fn kernel(plan: &mut UpdatePlan, number: usize) -> &mut Kernel {
    Arc::get_mut(&mut plan.kernels[number]).expect("the plan is its owner")
}

fn sources(plan: &mut UpdatePlan, number: usize) -> &mut Vec<UpdateSource> {
    match &mut plan.updates[number] {
        Update::Scalars { sources, .. } | Update::Apply { sources, .. } => sources,
        Update::Sumsq { .. } => panic!("it has stores"),
    }
}

fn targets(plan: &mut UpdatePlan, number: usize) -> &mut Vec<StoreId> {
    match &mut plan.updates[number] {
        Update::Apply { targets, .. } => targets,
        other => panic!("{other:?} has none"),
    }
}

#[test]
fn the_plan_of_these_tests_is_sound() {
    let plan = good().verify().unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(UpdatePlan::from_bytes(&plan.to_bytes()).unwrap_or_else(|error| panic!("{error}")), plan);
    assert_eq!(plan.given_stores(), 3);
}

#[test]
fn p31_an_update_plan_has_an_update() {
    assert_eq!(broken(|plan| plan.updates.clear()), ["P31 the plan: it must have an update"]);
}

#[test]
fn p32_kernels_of_updates_compute_on_one_element() {
    let wide = broken(|plan| kernel(plan, 1).regs[0].ty = f32(1));
    assert_eq!(wide, ["P32 update 2: kernel k1 (@momentum) must take single floats, port 0 takes f32[1]"]);
    let parameter = broken(|plan| kernel(plan, 2).params.push(f32(1)));
    let message = "P32 update 3: kernel k2 (@sgd) must have no parameter ports: stores are elements to it";
    assert_eq!(parameter, [message]);
    let row = broken(|plan| {
        let stage = Stage::Map {
            width: 2,
            code: vec![Instr {
                code: Code::Copy,
                dtype: DType::F32,
                sources: vec![Source::Const(0)],
                store: None,
            }],
        };
        kernel(plan, 2).stages.push(stage);
    });
    assert_eq!(row, ["P32 update 3: kernel k2 (@sgd) must be lines of one element, stage 1 is not"]);
    let word = broken(|plan| {
        let kernel = kernel(plan, 2);
        kernel.regs.push(Reg { kind: RegKind::Const(1), ty: Type::scalar(DType::U32) });
        kernel.results[0] = View { reg: RegId(4), start: 0, width: 1 };
    });
    assert_eq!(word, ["P32 update 3: kernel k2 (@sgd) must give single floats, result 0 is none"]);
    let arity = broken(|plan| targets(plan, 2).truncate(1));
    assert_eq!(
        arity,
        ["P32 update 2: kernel k1 (@momentum) takes 4 and gives 2, found 4 sources, 1 targets"]
    );
    let missing = broken(|plan| match &mut plan.updates[1] {
        Update::Scalars { kernel, .. } => *kernel = KernelId(9),
        other => panic!("{other:?}"),
    });
    assert_eq!(missing[0], "P2 update 1: there is no kernel k9, only 3 of them");
}

#[test]
fn p33_an_update_changes_what_belongs_to_one_parameter() {
    let other = broken(|plan| sources(plan, 2)[1] = UpdateSource::Store(StoreId(4)));
    assert_eq!(other, ["P33 update 2: it changes what belongs to store0, @t.grad belongs to another"]);
    let gradient = broken(|plan| targets(plan, 2)[1] = StoreId(3));
    assert_eq!(gradient, ["P33 update 2: a gradient is read, and only reductions write it"]);
    let twice = broken(|plan| targets(plan, 2)[1] = StoreId(0));
    assert_eq!(twice, ["P33 update 2: two results go to store0"]);
    let nothing = broken(|plan| plan.updates[0] = Update::Sumsq { stores: vec![] });
    assert_eq!(nothing, ["P33 update 0: it sums the squares of no store"]);
    let store = broken(|plan| sources(plan, 1)[0] = UpdateSource::Store(StoreId(0)));
    assert_eq!(store, ["P33 update 1: scalars are made of scalars and bound floats only"]);
    let missing = broken(|plan| targets(plan, 2)[1] = StoreId(77));
    assert_eq!(missing, ["P2 update 2: there is no store77, only 5 of them"]);
}

#[test]
fn p34_scalars_are_made_before_they_are_read() {
    let early = broken(|plan| plan.updates.swap(0, 1));
    assert_eq!(early, ["P34 update 0: it reads the scalar c0, updates before it make 0"]);
    let float = broken(|plan| sources(plan, 1)[1] = UpdateSource::Float(1));
    assert_eq!(float, ["P34 update 1: it reads float 1 of 1 that are bound"]);
}

#[test]
fn p35_sparse_rows_are_those_of_a_gradient_of_a_table() {
    let weight = broken(|plan| match &mut plan.updates[2] {
        Update::Apply { sparse, .. } => *sparse = true,
        other => panic!("{other:?}"),
    });
    assert_eq!(weight, ["P35 update 2: sparse rows are those of a table's gradient, store0 has none here"]);
    let rule = broken(|plan| sources(plan, 3)[1] = UpdateSource::Store(StoreId(1)));
    assert_eq!(rule, ["P35 update 3: sparse rows are those of a table's gradient, store1 has none here"]);
}
