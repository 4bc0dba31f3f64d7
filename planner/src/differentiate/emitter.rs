//! The inputs of the steps of the reverse.

use super::input::Input;
use super::kernel::Derivative;
use super::reverse_steps::{ReverseStep, ReverseSteps};
use super::signatures::Signatures;
use std::sync::Arc;

/// The inputs of the steps of the reverse.
#[derive(Clone, Copy)]
pub(super) struct Emitter<'a> {
    pub(super) input: &'a Input<'a>,
    /// Per value whether it needs a gradient.
    pub(super) needs: &'a [bool],
    pub(super) sigs: &'a Signatures,
    pub(super) reverse_steps: &'a ReverseSteps,
}

impl Emitter<'_> {
    pub(super) fn derivative(&self, back: &ReverseStep) -> &Arc<Derivative> {
        self.sigs[back.sig].derivative().expect("steps that have a reverse have a derivative")
    }
}
