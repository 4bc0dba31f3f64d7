//! Plans that pause compute the gradients of the same losses with the same bits.
//!
//! The factors of some losses or of all losses arrive at the pause instead of being constants of the plan. Another plan is
//! executed during the pause, because the rows of a pause belong to the caller.

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_oracle::check::{Wanted, check_losses};
use autobatch_oracle::naive;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, Planner, Request, RowOrder};
use autobatch_runtime_cpu::{Executor, Inputs};
use std::collections::BTreeSet;

/// A plan whose losses have constant factors, and what it was made of.
pub(super) struct Case<'a> {
    pub(super) graph: &'a GraphData,
    pub(super) weights: &'a Weights,
    pub(super) inputs: Inputs<'a>,
    pub(super) policy: &'a str,
    pub(super) rows: RowOrder,
    pub(super) losses: &'a [(ValueId, f32)],
    pub(super) values: &'a [ValueId],
    pub(super) plan: &'a Verified<Plan>,
}

/// The results of a run, bit by bit: outputs, then gradients of values, then gradients of parameters.
#[derive(PartialEq)]
struct Bits(Vec<Vec<u32>>);

impl Bits {
    fn of(executor: &Executor, plan: &Plan) -> Self {
        // Equality ignores the bits of a NaN.
        let bit = |x: &f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
        let outputs = (0..plan.outputs.len()).map(|number| executor.output(plan, number));
        let stores = (0..plan.stores.len() as u32).map(autobatch_ir::plan::StoreId);
        let gradients = stores.filter_map(|store| executor.gradient(store));
        Self(outputs.chain(gradients).map(|row| row.iter().map(bit).collect()).collect())
    }
}

impl Case<'_> {
    /// Compares the plan with plans that pause.
    pub(super) fn agrees(&self, executors: &mut [Executor]) -> Result<(), String> {
        let mut known = BTreeSet::new();
        // Two seeds of one value are added in another order if one of them arrives.
        if !self.losses.iter().all(|loss| known.insert(loss.0)) {
            return Ok(());
        }
        for count in BTreeSet::from([self.losses.len(), self.losses.len().div_ceil(2)]) {
            let plan = self.plan(count)?;
            self.executes(&plan, count, executors)?;
        }
        Ok(())
    }

    /// A plan at whose pause the factors of the first `count` losses arrive.
    fn plan(&self, count: usize) -> Result<Verified<Plan>, String> {
        let policy: Policy = self.policy.parse().expect("a policy");
        let mut planner = Planner::new(policy.load().expect("no file"));
        let arriving: Vec<ValueId> = self.losses[..count].iter().map(|loss| loss.0).collect();
        let losses = &self.losses[count..];
        let request = Request {
            wanted: &[],
            mode: Mode::Train,
            training: true,
            rows: self.rows,
            gradients: Some(Gradients { losses, params: None, values: self.values }),
            arriving: &arriving,
            shards: &[],
        };
        let plan = planner.plan(self.graph, &request).map_err(|error| error.to_string())?;
        let text = Plan::from_text(plan.to_text()).map_err(|error| format!("from text: {error}"))?;
        let bytes = Plan::from_bytes(&plan.to_bytes()).map_err(|error| format!("from bytes: {error}"))?;
        let json = serde_json::to_string(&plan).expect("plans are JSON");
        let json: Plan = serde_json::from_str(&json).expect("it was written as JSON");
        if text != plan || *bytes != plan || json != plan {
            return Err("a plan with a pause is read otherwise than it was written".to_owned());
        }
        let plan = plan.verify().map_err(|errors| errors.to_string())?;
        match check_losses(&plan, self.graph, Wanted { values: &[], training: true }, losses) {
            Ok(proof) if proof.arriving != arriving => {
                Err("the proof covers other arriving gradients".to_owned())
            }
            Ok(_) => Ok(plan),
            // The comparison with the plan without a pause reports such graphs, where they are not tolerated.
            Err(report) if report.to_string().contains("is no gradient of the signature") => Ok(plan),
            Err(report) => Err(report.to_string()),
        }
    }

    fn executes(
        &self,
        plan: &Verified<Plan>,
        count: usize,
        executors: &mut [Executor],
    ) -> Result<(), String> {
        let mut floats = self.inputs.floats.to_vec();
        for &(value, factor) in &self.losses[..count] {
            floats.extend(vec![factor; self.graph.type_of(value).shape.elements()]);
        }
        let all = Inputs { floats: &floats, ..self.inputs };
        let stores: Vec<Vec<f32>> = self.weights.iter().map(|param| param.values().to_vec()).collect();
        let naive = naive::execute(plan, &stores, all.words, all.floats, all.noise);
        let naive = naive.map_err(|error| error.to_string())?;
        for executor in executors {
            let paused =
                executor.start(plan, self.weights, self.inputs).map_err(|error| error.to_string())?;
            let outputs = plan.outputs.len() - self.values.len();
            let at_pause: Vec<Vec<u32>> = (0..outputs)
                .map(|number| paused.output(plan, number).iter().map(|x| x.to_bits()).collect())
                .collect();
            executor.execute(self.plan, self.weights, self.inputs).map_err(|error| error.to_string())?;
            let expected = Bits::of(executor, self.plan);
            executor.proceed(plan, paused, self.weights, all).map_err(|error| error.to_string())?;
            if Bits::of(executor, plan) != expected {
                return Err(format!("{executor:?}: a pause changes the bits"));
            }
            for (number, at_pause) in at_pause.iter().enumerate() {
                let after: Vec<u32> = executor.output(plan, number).iter().map(|x| x.to_bits()).collect();
                let of_naive = naive.output(number).unwrap_or(&[]);
                let same = |(a, b): (&u32, &u32)| same_bits(f32::from_bits(*a), f32::from_bits(*b));
                if *at_pause != after || !of_naive.iter().zip(&after).all(same) {
                    return Err(format!("{executor:?}: output {number} differs at the pause"));
                }
            }
            executor.execute(plan, self.weights, all).map_err(|error| error.to_string())?;
            if Bits::of(executor, plan) != expected {
                return Err(format!("{executor:?}: execution without the pause has other bits"));
            }
        }
        Ok(())
    }
}
