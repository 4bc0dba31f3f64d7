//! Whether the device computes what the CPU computes.

use super::Examination;
use super::plans::{Planned, Sizes, alone, planned};
use crate::Mode;
use crate::error::BenchError;
use autobatch::runtime_wgpu::probe::Arithmetics;
use autobatch::runtime_wgpu::{self as gpu, relative_error};
use autobatch_ir::plan::{Plan, StoreId, StoreKind};
use autobatch_models::catalogue::ENTRIES;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// The largest error of a model on a healthy device, relative to the largest element of an output or gradient.
const MAX_ERROR: f32 = 1e-4;

/// Probes arithmetic.
pub(super) fn arithmetic(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    let found = examination.probe()?.arithmetic()?;
    if found.fused > 0.0 && found.fused < 1.0 {
        examination.find(format!(
            "fma rounds once in {:.0} % of the cases: results may depend on the batch; send this report",
            100.0 * found.fused
        ));
    }
    if !found.keeps_order {
        examination.find(
            "the driver reorders sums (fast math): results differ from the CPU's; send this report"
                .to_owned(),
        );
    }
    if found.reconverges == Some(false) || found.numbers_lanes == Some(false) {
        examination.find(
            "subgroup operations do not see all threads: execute on the cpu, or set Options::subgroups to false, and send this report"
                .to_owned(),
        );
    }
    let is_program = examination.is_software();
    if found.turns != Arithmetics::TURNS && !is_program {
        examination.find(format!(
            "a loop of {} turns ended after {}: long sums are wrong; update the driver",
            Arithmetics::TURNS,
            found.turns
        ));
    }
    let special = found.special.iter().map(|special| {
        json!({ "expression": special.expression, "found": special.found.to_string(), "holds": special.holds() })
    });
    Ok(json!({
        "fused": found.fused, "contracted": found.contracted, "contracted_in_loop": found.contracted_in_loop,
        "division_ulp": found.division_ulp, "root_ulp": found.root_ulp, "keeps_order": found.keeps_order,
        "keeps_denormals": found.keeps_denormals, "turns": found.turns, "expected_turns": Arithmetics::TURNS,
        "numbers_lanes": found.numbers_lanes, "reconverges": found.reconverges, "special": special.collect::<Vec<_>>(),
    }))
}

/// Executes the self-test in every variant of the modules.
pub(super) fn self_test(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    let plain = examination.gpu_options();
    let variants = [
        ("as usual", plain.clone()),
        ("without subgroups", gpu::Options { subgroups: false, ..plain.clone() }),
        ("without immediates", gpu::Options { immediates: false, ..plain.clone() }),
        ("with counted loops", gpu::Options { counted_loops: true, ..plain.clone() }),
        ("with one tile", gpu::Options { strict: true, ..plain }),
    ];
    let mut rows = Vec::new();
    for (variant, options) in variants {
        examination.beat(&format!("the self-test {variant}"));
        // The self-test opens the device itself.
        drop(examination.executor(options.clone())?);
        if examination.takes_device_away() {
            return Err(BenchError::Gpu("the device was lost: it was taken away".to_owned()));
        }
        let found = gpu::self_test(options)?;
        if !found.is_healthy() {
            examination.find(format!(
                "the self-test {variant} is wrong: {} has an error of {:.1e}; update the driver, use another adapter, or execute on the cpu",
                found.worst, found.max_error
            ));
        }
        rows.push(json!({
            "variant": variant, "compared": found.compared, "same_bits": found.same_bits,
            "max_error": found.max_error, "worst": found.worst, "same_when_repeated": found.same_when_repeated,
            "first_run": found.first_run.as_secs_f64(), "second_run": found.second_run.as_secs_f64(),
        }));
    }
    Ok(json!({ "variants": rows }))
}

/// The errors of the gradients of the last run, relative to the largest element of each. A gradient that is zero but for
/// rounding, such as that of a bias of keys, counts as a thousandth of the largest one.
fn gradient_errors(
    executor: &mut gpu::Executor,
    cpu: &autobatch_runtime_cpu::Executor,
    plan: &Plan,
) -> Result<BTreeMap<String, f32>, BenchError> {
    let size = |values: &[f32]| values.iter().fold(0f32, |most, x| most.max(x.abs()));
    let stores = || (0..).map(StoreId).zip(&plan.stores);
    let largest = stores().filter_map(|(store, _)| cpu.gradient(store)).map(size).fold(0f32, f32::max);
    let mut errors = BTreeMap::new();
    for (store, kind) in stores().map(|(store, own)| (store, own.kind)) {
        let StoreKind::Grad(of) = kind else { continue };
        let expected = cpu.gradient(store).unwrap_or_default();
        let found = executor.gradient(store)?.unwrap_or_default();
        let scale = (size(expected) / (1e-3 * largest).max(f32::MIN_POSITIVE)).min(1.0);
        errors.insert(plan.stores[of.index()].name.clone(), scale * relative_error(&found, expected));
    }
    Ok(errors)
}

/// Executes every model of the catalogue forward and in training, and compares it with the CPU.
pub(super) fn models(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    let mut executor = examination.executor(examination.gpu_options())?;
    let mut cpu = autobatch_runtime_cpu::Executor::new(autobatch_runtime_cpu::resolve_threads(0))?;
    let sizes = if examination.is_software() { Sizes::SMALL } else { Sizes::MEDIUM };
    let repetitions = if examination.is_software() { 2 } else { 20 };
    let mut rows = Vec::new();
    for entry in &ENTRIES {
        let name = entry.name;
        examination.beat(&format!("the model {name}"));
        let Planned { graph, plan, weights } = planned(name, &sizes, Mode::Train)?;
        let inputs = super::plans::inputs(&graph);
        executor.execute(&plan, &weights, inputs)?;
        cpu.execute(&plan, &weights, inputs)?;
        let outputs: Vec<Vec<f32>> =
            (0..plan.outputs.len()).map(|number| executor.output(number).to_vec()).collect();
        let (mut error, mut worst, mut same_bits) = (0f32, String::new(), true);
        for (number, found) in outputs.iter().enumerate() {
            let expected = cpu.output(&plan, number);
            same_bits &= found.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits()));
            let own = relative_error(found, expected);
            if own > error {
                (error, worst) = (own, format!("output {number}"));
            }
        }
        let gradients = gradient_errors(&mut executor, &cpu, &plan)?;
        let gradient_error = gradients.values().copied().fold(0f32, f32::max);
        let mut repeats = true;
        for _ in 1..repetitions {
            executor.execute(&plan, &weights, inputs)?;
            let is_same = |(number, found): (usize, &Vec<f32>)| {
                let again = executor.output(number).iter().map(|x| x.to_bits());
                again.eq(found.iter().map(|x| x.to_bits()))
            };
            repeats &= outputs.iter().enumerate().all(is_same);
        }
        let same_alone = alone(name, &sizes, &mut executor)?;
        if error > MAX_ERROR || gradient_error > MAX_ERROR {
            examination.find(format!(
                "{name} is wrong: errors of {error:.1e} in outputs ({worst}) and {gradient_error:.1e} in gradients; execute it on the cpu, and send this report"
            ));
        }
        if !repeats {
            examination.find(format!(
                "{name} has other results when it is repeated; execute it on the cpu, and send this report"
            ));
        }
        if !same_alone {
            examination.find(format!(
                "the bits of {name} depend on the batch; set Options::strict if you need equal bits, and send this report"
            ));
        }
        rows.push(json!({
            "model": name, "outputs": outputs.len(), "max_error": error, "worst": worst, "same_bits": same_bits,
            "max_gradient_error": gradient_error, "gradients": gradients, "repeats": repeats, "same_alone": same_alone,
        }));
    }
    Ok(json!({ "models": rows, "repetitions": repetitions }))
}
