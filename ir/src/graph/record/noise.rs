//! Noise keys: bound words in a graph, ports and forks in the body of a cell.

use super::{COMMON_KEY, Caller, Raw, Recorder};
use crate::graph::op::Op;
use crate::hash::noise_key;
use crate::id::ValueId;
use crate::module::Module;
use crate::types::INDEX;

impl Recorder {
    /// The noise key for one use, with the number that tells uses of one key apart. While tracing,
    /// the key is the cell's noise ports, declared at the first use; else it is two bound words
    /// made from the instance's key and the use's number in the instance.
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
                ValueId::new(port.expect("a port has no operands to refuse") as usize)
            });
            if let Some(tracing) = &mut self.tracing {
                tracing.noise = Some(ports);
            }
            ports
        });
        (ordinal, ports.map(|port| Raw::Value(port, Module::index_type())))
    }

    /// The noise key for a call: inside a cell, a key forked from the cell's own.
    pub(super) fn call_noise_key(&mut self, caller: Caller) -> [Raw<'static>; 2] {
        let (ordinal, key) = self.noise_key(caller);
        if self.tracing.is_none() {
            return key;
        }
        let fork = self.apply(Op::ForkNoise { ordinal }, &key.map(Some), &[], caller);
        let fork = fork.expect("a key forks into a key") as usize;
        [fork, fork + 1].map(|id| Raw::Value(ValueId::new(id), Module::index_type()))
    }
}
