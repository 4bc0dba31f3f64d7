//! The report of a rank: the losses of its shards, or the reason of a failure. All ranks read all reports before they change
//! anything.

use super::message::{Message, Unread};
use crate::error::Result;
use crate::train::error::TrainError;
use crate::train::report::Step;
use autobatch_distributed::{Group, GroupError};
use autobatch_ir::id::ParamId;

/// Writes the report of a rank that executed its shards; a rank without shards has no step.
fn of_step(step: Option<&Step>, signal: u8) -> Message {
    let nothing = Step::default();
    let step = step.unwrap_or(&nothing);
    let mut message = Message::default();
    message.text("");
    message.number(signal.into());
    message.words(&step.losses);
    message.number(step.weight.to_bits());
    message.number(step.batches.into());
    message.number(step.bound.into());
    message.words(&step.used.iter().map(|param| param.index() as u32).collect::<Vec<_>>());
    message.number(step.outputs.len() as u64);
    for (name, values) in &step.outputs {
        message.text(name);
        message.words(values);
    }
    message
}

/// Writes the report of a rank that failed.
pub(super) fn of_error(error: &str) -> Message {
    let mut message = Message::default();
    message.text(error);
    message
}

/// Appends the report of some shards to the step of the minibatch.
fn add(bytes: &[u8], rank: usize, step: &mut Step) -> Result<()> {
    let mut unread = Unread::new(bytes, rank);
    let message = unread.text()?;
    if !message.is_empty() {
        return Err(TrainError::OtherRank { rank, message }.into());
    }
    let small = |number: u64| u32::try_from(number).map_err(|_| GroupError::Malformed { rank });
    step.signal = step.signal.max(small(unread.number()?)?.min(u8::MAX.into()) as u8);
    step.losses.extend(unread.words::<f32>()?);
    step.weight += f64::from_bits(unread.number()?);
    step.batches += small(unread.number()?)?;
    step.bound += small(unread.number()?)?;
    step.use_params(unread.words::<u32>()?.into_iter().map(|param| ParamId::new(param as usize)).collect());
    step.outputs.extend(unread.several(|unread| Ok((unread.text()?, unread.words()?)))?);
    Ok(unread.end()?)
}

/// Exchanges the reports of all ranks. Returns the step of the whole minibatch with the times of this rank, or the first error of
/// a rank.
pub(super) fn exchange(
    group: &mut dyn Group,
    computed: Result<Option<&Step>, &crate::Error>,
    signal: u8,
) -> Result<Step> {
    let own = match computed {
        Ok(step) => of_step(step, signal),
        Err(error) => of_error(&error.to_string()),
    };
    let all = group.all_gather(own.bytes())?;
    let mut step = computed.ok().flatten().map(Step::times_only).unwrap_or_default();
    all.iter().enumerate().try_for_each(|(rank, bytes)| add(bytes, rank, &mut step))?;
    Ok(step)
}
