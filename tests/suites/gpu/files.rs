//! The corpus of texts: every row of its plans, every value of its graphs.

use crate::agreement::agrees;
use crate::common::{Within, exact, executor, noise};
use autobatch_ir::GraphData;
use autobatch_ir::plan::{FieldId, Plan, StoreId};
use autobatch_ir::types::DType;
use autobatch_oracle::naive;
use autobatch_runtime_wgpu::{Inputs, Stores};

/// Rows are of order one. Losses are small differences of such numbers.
const WITHIN: Within = Within { row: 1e-5, least: 5e-6 };

struct Drawn(Vec<Vec<f32>>);

impl Stores for Drawn {
    fn values(&self, store: StoreId) -> &[f32] {
        &self.0[store.index()]
    }
    fn version(&self, store: StoreId) -> u64 {
        // Drawn again for every plan, so they never equal those of the plan before.
        self.0[store.index()].as_ptr() as u64 | 1
    }
}

#[test]
fn corpus_plans_agree_with_the_naive_executor() {
    let Some(_) = executor(exact()) else { return };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("files/plans");
    let mut executed = 0;
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("there").map(|file| file.expect("read").path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "plan")) {
        let source = std::fs::read_to_string(path).expect("read");
        let plan = Plan::from_text(&source).expect("parses").verify().expect("verifies");
        let draw = |store: usize, at: usize| ((store * 7919 + at * 31) as f32 * 0.013).sin() * 0.5;
        let stores: Vec<Vec<f32>> = plan.stores[..plan.given_stores()]
            .iter()
            .enumerate()
            .map(|(number, store)| (0..store.ty.shape.elements()).map(|at| draw(number, at)).collect())
            .collect();
        let words: Vec<u32> = (0..plan.words).map(|at| at % 2).collect();
        let floats: Vec<f32> = (0..plan.all_floats()).map(|at| draw(3, at as usize)).collect();
        let noise = noise(true);
        let naive = naive::execute(&plan, &stores, &words, &floats, noise).expect("executes");
        // Each plan gets an executor of its own: rows that a plan does not write are then zero, as they are here.
        let mut executor = executor(exact()).expect("as before");
        let bound = Inputs { words: &words, floats: &floats, noise };
        executor.execute(&plan, &Drawn(stores), bound).expect("executes");
        for (number, field) in plan.fields.iter().enumerate() {
            for row in 0..plan.slabs[field.slab.index()].rows {
                let id = FieldId(number as u32);
                let found = executor.row(&plan, id, row).expect("read").expect("a row");
                let expected = naive.row(id, row).expect("a row");
                let floats =
                    |words: &[u32]| -> Vec<f32> { words.iter().map(|&w| f32::from_bits(w)).collect() };
                let same = match field.ty.dtype {
                    DType::F32 => WITHIN.holds(&floats(&found), &floats(expected)),
                    _ => found == expected,
                };
                assert!(
                    same,
                    "{}: row {row} of {}: {found:?}, expected {expected:?}",
                    path.display(),
                    field.name
                );
            }
        }
        executed += 1;
    }
    assert!(executed >= 10, "the corpus is there");
}

#[test]
fn corpus_graphs_agree_with_the_reference() {
    let Some(mut executor) = executor(exact()) else { return };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("files/graphs");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("there").map(|file| file.expect("read").path()).collect();
    files.sort();
    let mut executed = 0;
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "graph")) {
        let source = std::fs::read_to_string(path).expect("read");
        let graph = GraphData::from_text(&source).expect("parses");
        if let Err(error) = agrees(&graph, true, &mut executor, WITHIN) {
            panic!("{}: {error}", path.display());
        }
        executed += 1;
    }
    assert!(executed >= 10, "the corpus is there");
}
