//! Predicts the device time of models on cards, without a GPU.

use crate::error::BenchError;
use crate::step::Runner;
use crate::{Mode, Options};
use autobatch::Device;
use autobatch::runtime_wgpu::compile::{Target, compile};
use autobatch::runtime_wgpu::predict::Card;
use autobatch_models::catalogue::{self, ENTRIES};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Predicts the time that cards take for the first graph of models, or of all models, in both modes.
///
/// # Errors
/// If a model is unknown, an option does not fit, or a plan does not fit a device with small limits.
pub fn predict(names: &[&str], options: &Options) -> Result<Predictions, BenchError> {
    let names =
        if names.is_empty() { ENTRIES.iter().map(|entry| entry.name).collect() } else { names.to_vec() };
    let mut rows = Vec::new();
    for name in names {
        let opened = catalogue::open(name, &options.sizes)?;
        if opened.workload.instances() == 0 {
            return Err(BenchError::NoInstances);
        }
        for mode in [Mode::Infer, Mode::Train] {
            let options = Options { mode, device: Device::Cpu, ..options.clone() };
            let plan = Runner::new(&opened, &options.policy, &options)?.first_plan()?;
            let compiled = compile(&plan, Target::MINIMUM)?;
            rows.push(Prediction {
                model: name.to_owned(),
                mode,
                dispatches: compiled.dispatches.len(),
                seconds: Card::ALL.map(|card| (card.name, card.time_of_plan(&compiled).as_secs_f64())).into(),
            });
        }
    }
    Ok(Predictions { rows })
}

/// The predicted time of the first graph of a model.
#[derive(Clone, Debug, Serialize)]
struct Prediction {
    model: String,
    mode: Mode,
    dispatches: usize,
    /// By card.
    seconds: BTreeMap<&'static str, f64>,
}

/// Predictions for some models.
#[derive(Clone, Debug, Serialize)]
pub struct Predictions {
    rows: Vec<Prediction>,
}

impl Predictions {
    /// One line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and names serialize")
    }
}

impl fmt::Display for Predictions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<14}{:<8}{:>10}", "model", "mode", "dispatches")?;
        Card::ALL.iter().try_for_each(|card| write!(f, "{:>14}", card.name))?;
        for Prediction { model, mode, dispatches, seconds } in &self.rows {
            write!(f, "\n{model:<14}{mode:<8}{dispatches:>10}")?;
            Card::ALL.iter().try_for_each(|card| write!(f, "{:>11.2} ms", seconds[card.name] * 1e3))?;
        }
        Ok(())
    }
}
