//! The signature of an op and its operands: from the cache, or by type inference.

use super::{Caller, OP_CACHE_BITS, OP_CACHE_WAYS, Raw, Recorder};
use crate::graph::infer::{InferError, infer};
use crate::graph::op::Op;
use crate::graph::signature::{Callee, ParamArg, Signature};
use crate::id::{ParamId, SigId, TypeId, ValueId};
use crate::module::Param;
use crate::types::Type;

impl Recorder {
    /// The signature id of an op on these types, through the cache.
    pub(super) fn op_sig(
        &mut self,
        op: &Op,
        operands: &[TypeId],
        params: &[Param],
        raw: &[Option<Raw<'_>>],
        caller: Caller,
    ) -> Option<SigId> {
        let mut args = [ParamArg::Port(0); 2];
        for (arg, &param) in args.iter_mut().zip(params) {
            *arg = self.own_param_arg(op, param, caller)?;
        }
        let args = &args[..params.len()];
        match self.cached_sig(op, operands, args, caller) {
            Ok(sig) => Some(sig),
            Err(place) => self.infer_sig(op, operands, args, raw, place, caller),
        }
    }

    /// The signature from the cache; on a miss, the cache slot for it.
    ///
    /// A source line emits nearly always the same signature of an op, so line and op select the slot.
    /// Inlining lets the compiler compare arrays without loops.
    #[inline(always)]
    pub(super) fn cached_sig(
        &self,
        op: &Op,
        operands: &[TypeId],
        params: &[ParamArg],
        caller: Caller,
    ) -> Result<SigId, usize> {
        let line = std::ptr::from_ref(caller) as u64;
        let word = op.number().wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word;
        let place = (mixed >> (u64::BITS - OP_CACHE_BITS)) as usize;
        for place in OP_CACHE_WAYS.map(|way| place ^ way) {
            // Ways are filled in order.
            let Some(sig) = self.op_cache[place] else { return Err(place) };
            let known = self.data.sigs.get(sig);
            if *known.operands == *operands
                && *known.params == *params
                && matches!(&known.callee, Callee::Op(known) if known == op)
            {
                return Ok(sig);
            }
        }
        Err(place ^ OP_CACHE_WAYS[OP_CACHE_WAYS.len() - 1])
    }

    /// Infers the signature of an op on values after a cache miss.
    #[cold]
    #[inline(never)]
    pub(super) fn infer_values(
        &mut self,
        op: &Op,
        types: &[TypeId],
        params: &[ParamArg],
        values: &[Option<ValueId>],
        place: usize,
        caller: Caller,
    ) -> Option<SigId> {
        let raw = values.iter().zip(types).map(|(id, &ty)| id.map(|id| Raw::Value(id, ty)));
        self.infer_sig(op, types, params, &raw.collect::<Vec<_>>(), place, caller)
    }

    #[cold]
    fn infer_sig(
        &mut self,
        op: &Op,
        operands: &[TypeId],
        params: &[ParamArg],
        raw: &[Option<Raw<'_>>],
        place: usize,
        caller: Caller,
    ) -> Option<SigId> {
        let types: Vec<Type> = operands.iter().map(|&ty| self.data.types.get(ty)).collect();
        let param_types: Vec<Type> = params.iter().map(|&arg| self.param_type(arg)).collect();
        match infer(op, &types, &param_types) {
            Ok(results) => {
                let signature = Signature {
                    callee: Callee::Op(*op),
                    operands: operands.into(),
                    params: params.into(),
                    param_types: param_types.into_iter().map(|ty| self.data.types.intern(ty)).collect(),
                    results: results.into_iter().map(|ty| self.data.types.intern(ty)).collect(),
                };
                let sig = self.data.sigs.intern(signature, &self.data.types);
                self.op_cache[place] = Some(sig);
                Some(sig)
            }
            Err(InferError { message, help }) => {
                let notes: Vec<String> = help.into_iter().chain(self.param_help(params)).collect();
                let help = (!notes.is_empty()).then(|| notes.join("; "));
                self.fail(op.spelling(), message, help, raw, caller);
                None
            }
        }
    }

    /// Lists the parameters of a failed op with their types and declarations.
    pub(super) fn param_help(&self, params: &[ParamArg]) -> Option<String> {
        let named: Vec<String> = params
            .iter()
            .filter_map(|&arg| {
                let decl = self.data.module.param_decl(self.module_param(arg)?);
                let site = self.data.module.sites.get(decl.site);
                Some(format!("@{}: {} was declared at {site}", decl.name, decl.ty))
            })
            .collect();
        (!named.is_empty()).then(|| named.join("; "))
    }

    pub(super) fn module_param(&self, arg: ParamArg) -> Option<ParamId> {
        match (arg, &self.tracing) {
            (ParamArg::Module(id), _) => Some(id),
            (ParamArg::Port(port), Some(tracing)) => tracing.lifted.get(port as usize).copied(),
            (ParamArg::Port(_), None) => None,
        }
    }

    pub(super) fn param_type(&self, arg: ParamArg) -> Type {
        let id = self.module_param(arg).expect("parameter ports exist only while tracing");
        self.data.module.param_decl(id).ty
    }

    /// The parameter argument of an op, if the parameter belongs to this module.
    #[inline]
    pub(super) fn own_param_arg(&mut self, op: &Op, param: Param, caller: Caller) -> Option<ParamArg> {
        if param.module != self.data.module.tag {
            return self.refuse_other_module(op.spelling(), "parameter", caller);
        }
        Some(self.param_arg(param.id?))
    }

    /// A parameter as an argument. While a cell is traced, the parameter becomes a port.
    pub(super) fn param_arg(&mut self, id: ParamId) -> ParamArg {
        let Some(tracing) = &mut self.tracing else { return ParamArg::Module(id) };
        let port = tracing.lifted.iter().position(|&known| known == id).unwrap_or_else(|| {
            tracing.lifted.push(id);
            tracing.lifted.len() - 1
        });
        ParamArg::Port(port as u32)
    }

    /// The signature of a call inside a cell: the parameter arguments become ports.
    pub(super) fn lift_call(&mut self, sig: SigId) -> SigId {
        let mut signature = self.data.sigs.get(sig).clone();
        for arg in &mut signature.params {
            if let ParamArg::Module(id) = *arg {
                *arg = self.param_arg(id);
            }
        }
        self.data.sigs.intern(signature, &self.data.types)
    }
}
