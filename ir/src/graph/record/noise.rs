//! Noise keys: bound words in a graph, noise ports and their forks in a cell body.

use super::{COMMON_KEY, Caller, Raw, Recorder};
use crate::graph::op::Op;
use crate::hash::noise_key;
use crate::id::ValueId;
use crate::module::Module;
use crate::types::INDEX;

impl Recorder {
    /// A noise key for one use, and the ordinal that distinguishes uses of one key.
    ///
    /// While a cell is traced, the key is its noise ports, which the first use declares. In a graph,
    /// the key is two bound words, derived from the key of the instance and the ordinal of the use.
    pub(crate) fn noise_key(&mut self, caller: Caller) -> (u32, [Raw<'static>; 2]) {
        let ordinal = self.noise_ordinal;
        self.noise_ordinal += 1;
        let Some(tracing) = &self.tracing else {
            let key = self.instance.unwrap_or(COMMON_KEY);
            let words = noise_key([key as u32, (key >> 32) as u32], ordinal);
            return (0, words.map(Raw::Index));
        };
        let ports = tracing.noise.unwrap_or_else(|| {
            let ports = [(); 2].map(|()| {
                let port = self.apply(Op::Port(INDEX), &[], &[], caller);
                ValueId::new(port.expect("a port has no operands that could be wrong") as usize)
            });
            if let Some(tracing) = &mut self.tracing {
                tracing.noise = Some(ports);
            }
            ports
        });
        (ordinal, ports.map(|port| Raw::Value(port, Module::index_type())))
    }

    /// The noise key for a call. Inside a cell it is a fork of the key of the cell.
    pub(super) fn call_noise_key(&mut self, caller: Caller) -> [Raw<'static>; 2] {
        let (ordinal, key) = self.noise_key(caller);
        if self.tracing.is_none() {
            return key;
        }
        let fork = self.apply(Op::ForkNoise { ordinal }, &key.map(Some), &[], caller);
        let fork = fork.expect("a fork of a noise key is valid") as usize;
        [fork, fork + 1].map(|id| Raw::Value(ValueId::new(id), Module::index_type()))
    }
}
