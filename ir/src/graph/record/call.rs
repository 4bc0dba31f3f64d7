//! The hot path of emitting: calls of cells and ops on values.

use super::{Caller, Raw, Recorder, Results};
use crate::graph::arena::Operand;
use crate::graph::args::Arg;
use crate::graph::emit::Graph;
use crate::graph::op::Op;
use crate::graph::signature::ParamArg;
use crate::graph::value::Value;
use crate::id::{SigId, TypeId};
use crate::module::{Cell, CellOfAny, Module, Param};

impl Recorder {
    /// Applies a cell.
    #[inline]
    pub(crate) fn call<const IN: usize, const OUT: usize>(
        &mut self,
        graph: &Graph,
        cell: Cell<IN, OUT>,
        args: &[Arg<'_>; IN],
        caller: Caller,
    ) -> Option<Results<OUT>> {
        if cell.module != self.data.module.tag {
            return self.refuse_other_module("call", "cell", caller);
        }
        let mut sig = cell.sig?;
        if self.tracing.is_some() {
            sig = self.lift_call(sig);
        }
        let signature = self.data.sigs.get(sig);
        let ports: &[TypeId; IN] =
            signature.operands.first_chunk().expect("a handle has the operands of its signature");
        let noisy = signature.operands.len() != IN;
        let mut operands = [Operand::index(0); IN];
        let bound = self.data.bindings.words.len();
        for place in 0..IN {
            operands[place] = match args[place] {
                Arg::Value(value) if value.is_of(graph) && value.type_id() == ports[place] => {
                    match value.id() {
                        Some(id) => Operand::value(id),
                        None => return self.abandon(bound),
                    }
                }
                Arg::Index(index) if ports[place] == Module::index_type() && self.tracing.is_none() => {
                    let words = &mut self.data.bindings.words;
                    words.push(index);
                    Operand::index(words.len() as u32 - 1)
                }
                arg => return self.refuse_arg(graph, bound, place, arg, sig, caller),
            };
        }
        if noisy { self.append_noisy(sig, &operands, caller) } else { self.append(sig, &operands, caller) }
    }

    /// Applies a cell to any number of values and indices.
    pub(crate) fn call_any(
        &mut self,
        cell: CellOfAny,
        args: &[Option<Raw<'_>>],
        caller: Caller,
    ) -> Option<u32> {
        if cell.module != self.data.module.tag {
            return self.refuse_other_module("call", "cell", caller);
        }
        let mut sig = cell.sig?;
        if self.tracing.is_some() {
            sig = self.lift_call(sig);
        }
        let signature = self.data.sigs.get(sig);
        let noise = self.data.module.noise_ports(signature);
        let ports = &signature.operands[..signature.operands.len() - noise];
        if ports.len() != args.len() {
            let name = self.data.module.callee_name(signature.callee);
            let message = format!("{name} takes {} values, found {}", ports.len(), args.len());
            return self.refuse("call", message, caller);
        }
        for (place, (&port, arg)) in ports.iter().zip(args).enumerate() {
            let found = match (*arg)? {
                Raw::Value(_, found) => found,
                Raw::Index(_) if self.tracing.is_some() => return self.refuse_bound("call", caller),
                Raw::Index(_) => Module::index_type(),
                Raw::Words(..) | Raw::Floats(..) => unreachable!("calls collect values and indices only"),
            };
            if found != port {
                return self.refuse_type(place, found, sig, caller);
            }
        }
        if noise == 0 {
            return self.append_raw(sig, args, caller);
        }
        let mut operands = args.to_vec();
        operands.extend(self.call_noise_key(caller).map(Some));
        self.append_raw(sig, &operands, caller)
    }

    /// Appends a call of a cell that draws noise, with a noise key as its last two operands.
    #[cold]
    fn append_noisy<const OUT: usize>(
        &mut self,
        sig: SigId,
        operands: &[Operand],
        caller: Caller,
    ) -> Option<Results<OUT>> {
        let key = self.call_noise_key(caller).map(|word| self.data.bindings.bind(word));
        self.append(sig, &[operands, &key].concat(), caller)
    }

    /// Applies an op with parameters to values of this graph.
    pub(crate) fn apply_values<const IN: usize, const PARAMS: usize, const OUT: usize>(
        &mut self,
        op: &Op,
        values: &[Value<'_>; IN],
        params: &[Param; PARAMS],
        caller: Caller,
    ) -> Option<Results<OUT>> {
        let types = values.map(Value::type_id);
        let mut operands = [Operand::index(0); IN];
        for (slot, value) in operands.iter_mut().zip(values) {
            *slot = Operand::value(value.id()?);
        }
        let mut args = [ParamArg::Port(0); PARAMS];
        for (arg, &param) in args.iter_mut().zip(params) {
            *arg = self.own_param_arg(op, param, caller)?;
        }
        let sig = match self.cached_sig(op, &types, &args, caller) {
            Ok(sig) => sig,
            Err(slot) => self.infer_values(op, &types, &args, &values.map(Value::id), slot, caller)?,
        };
        self.append(sig, &operands, caller)
    }
}
