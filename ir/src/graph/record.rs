//! The recorder behind a graph: checks what is emitted and appends it.
//!
//! Each emitting call checks that values are this graph's and that types fit, interns the signature
//! and appends. The checks of a cell call compare words: its signature was fixed when the cell was
//! traced. While a cell is traced, parameters become ports and noise comes from noise ports.

use crate::graph::arena::Operand;
use crate::graph::args::Arg;
use crate::graph::data::{Cut, GraphData, Output, OutputKind, hash_app, hash_cut};
use crate::graph::error::{EmitError, Fault};
use crate::graph::infer::{InferError, infer};
use crate::graph::signature::{Callee, ParamArg, Signature, Signatures};
use crate::graph::{Arena, Bindings, Op, Site, Sites};
use crate::hash::noise_key;
use crate::id::{MAX_INDEX, ParamId, SigId, TypeId, ValueId};
use crate::module::{Module, Param};
use crate::types::{DType, INDEX, Type, Types};
use std::collections::BTreeSet;
use std::panic::Location;

pub(crate) type Caller = &'static Location<'static>;

#[derive(Debug)]
pub(crate) struct Recorder {
    data: GraphData,
    /// The graph's number in this process.
    number: u32,
    output_names: BTreeSet<String>,
    error: Option<EmitError>,
    tracing: Option<Tracing>,
    op_cache: [Option<SigId>; OP_CACHE],
    /// The key of the instance being emitted and the number of its next noise key.
    instance: Option<u64>,
    noise_ordinal: u32,
    strict: bool,
}

/// What only the tracing of a cell needs.
#[derive(Debug)]
struct Tracing {
    cell: String,
    lifted: Vec<ParamId>,
    noise: Option<[ValueId; 2]>,
}

/// What tracing leaves behind for the module.
pub(crate) struct Traced {
    pub(crate) types: Types,
    pub(crate) sigs: Signatures,
    pub(crate) sites: Sites,
    pub(crate) arena: Arena,
    pub(crate) results: Vec<ValueId>,
    pub(crate) lifted: Vec<ParamId>,
    pub(crate) noise: bool,
}

/// An operand on its way into the arena.
#[derive(Clone, Copy)]
pub(crate) enum Raw<'a> {
    Value(ValueId, TypeId),
    Index(u32),
    Words(&'a [u32], Type),
    Floats(&'a [f32], Type),
}

/// A two-way cache of signatures in front of the interner.
const OP_CACHE_BITS: u32 = 9;
const OP_CACHE: usize = 1 << OP_CACHE_BITS;
/// The key that noise of the common prefix has.
const COMMON_KEY: u64 = u64::MAX;

impl Recorder {
    pub(crate) fn new(data: GraphData, number: u32, cell: Option<&str>) -> Self {
        let tracing = cell.map(|cell| Tracing { cell: cell.to_owned(), lifted: Vec::new(), noise: None });
        Self {
            data,
            number,
            output_names: BTreeSet::new(),
            error: None,
            tracing,
            op_cache: [None; OP_CACHE],
            instance: None,
            noise_ordinal: 0,
            strict: std::env::var_os("AUTOBATCH_STRICT").is_some_and(|word| word == "1"),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.data.clear();
        self.output_names.clear();
        self.error = None;
        self.instance = None;
        self.noise_ordinal = 0;
        self.op_cache.fill(None);
    }

    pub(crate) const fn data(&self) -> &GraphData {
        &self.data
    }

    pub(crate) fn check(&self) -> Result<(), EmitError> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    pub(crate) fn finish(self) -> Result<GraphData, EmitError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.data),
        }
    }

    pub(crate) fn into_traced(
        mut self,
        results: &[Option<ValueId>],
        caller: Caller,
    ) -> Result<Traced, EmitError> {
        let results: Option<Vec<ValueId>> = results.iter().copied().collect();
        if let Some(results) = &results
            && let Some(&list) = results.iter().find(|&&value| self.data.type_of(value).is_list)
        {
            let message = format!("a cell returns values, found {}", self.data.type_of(list));
            self.fail("cell", message, None, &[], caller);
        }
        match (self.error, results, self.tracing) {
            (None, Some(results), Some(Tracing { lifted, noise, .. })) => {
                let GraphData { types, sigs, sites, arena, .. } = self.data;
                Ok(Traced { types, sigs, sites, arena, results, lifted, noise: noise.is_some() })
            }
            (Some(error), ..) => Err(error),
            (None, ..) => unreachable!("poison results come with an error"),
        }
    }

    pub(crate) fn cut(&mut self, key: Option<u64>, caller: Caller) {
        if self.refuse_in_cell("instance", caller) {
            return;
        }
        let cut = Cut { first: self.data.arena.len() as u32, key };
        hash_cut(&mut self.data.hash, cut);
        self.data.cuts.push(cut);
        self.instance = key;
        self.noise_ordinal = 0;
    }

    pub(crate) fn want(&mut self, name: &str, value: ValueId, kind: OutputKind, caller: Caller) {
        if self.refuse_in_cell("output", caller) {
            return;
        }
        let ty = self.data.type_of(value);
        if ty.is_list {
            return self.fail("output", format!("a list is no output, found {ty}"), None, &[], caller);
        }
        if kind == OutputKind::Loss && ty != Type::scalar(DType::F32) {
            return self.fail("loss", format!("a loss is a scalar f32, found {ty}"), None, &[], caller);
        }
        if !self.output_names.insert(name.to_owned()) {
            return self.fail("output", format!("the name {name:?} is taken"), None, &[], caller);
        }
        self.data.outputs.push(Output { name: name.to_owned(), value, kind });
    }

    pub(crate) fn mark_shared(&mut self, value: ValueId, caller: Caller) {
        if !self.refuse_in_cell("shared", caller) {
            self.data.shared.push(value);
        }
    }

    pub(crate) fn mark_alone(&mut self, value: ValueId, caller: Caller) {
        if !self.refuse_in_cell("alone", caller) {
            self.data.alone.push(self.data.arena.producer(value));
        }
    }

    /// Instances, outputs and marks are a graph's; the body of a cell has none.
    fn refuse_in_cell(&mut self, what: &str, caller: Caller) -> bool {
        if self.tracing.is_some() {
            let help = "say it where the cell is called";
            let message = format!("{what} has no meaning inside a cell");
            self.fail(what, message, Some(help.to_owned()), &[], caller);
        }
        self.tracing.is_some()
    }

    #[cold]
    pub(crate) fn refuse_other_graph(&mut self, other: u32, caller: Caller) {
        let message = self.other_graph(other);
        self.fail("operand", message, None, &[], caller);
    }

    #[cold]
    fn other_graph(&self, other: u32) -> String {
        format!("the value belongs to graph {other}, it is used in graph {}", self.number)
    }

    #[inline]
    pub(crate) fn call(
        &mut self,
        sig: Option<SigId>,
        module: u32,
        args: &[Arg<'_>],
        caller: Caller,
    ) -> Option<u32> {
        if module != self.data.module.tag {
            return self.refuse("call", "the cell belongs to another module".to_owned(), caller);
        }
        let module_sig = sig?;
        let sig = if self.tracing.is_some() { self.lift_call(module_sig) } else { module_sig };
        let noisy = self.data.sigs.get(sig).operands.len() != args.len();
        let noise = noisy.then(|| self.call_noise_key(caller));
        let Recorder { data, .. } = self;
        let mark = data.arena.operand_mark();
        if mark as usize + args.len() + 2 > MAX_INDEX || data.arena.values() > MAX_INDEX - (1 << 16) {
            return self.refuse("call", "the graph is full: it holds 2^30 operands".to_owned(), caller);
        }
        let signature = data.sigs.get(sig);
        for (place, arg) in args.iter().enumerate() {
            let wanted = signature.operands[place];
            let operand = match arg {
                Arg::Value(value) if value.graph().number() != self.number => {
                    let message = self.other_graph(value.graph().number());
                    return self.abandon(mark, message, caller);
                }
                Arg::Value(value) => {
                    let Some(id) = value.id() else {
                        data.arena.truncate_operands(mark);
                        return None;
                    };
                    if value.type_id() != wanted {
                        return self.mismatch(mark, place, value.type_id(), wanted, sig, caller);
                    }
                    Operand::value(id)
                }
                Arg::Index(_) if self.tracing.is_some() => {
                    self.data.arena.truncate_operands(mark);
                    return self.refuse_bound("call", caller);
                }
                Arg::Index(index) => {
                    if wanted != Module::index_type() {
                        return self.mismatch(mark, place, Module::index_type(), wanted, sig, caller);
                    }
                    data.bindings.words.push(*index);
                    Operand::index(data.bindings.words.len() as u32 - 1)
                }
            };
            data.arena.push_operand(operand);
        }
        for word in noise.into_iter().flatten() {
            self.push_raw(word);
        }
        Some(self.push(sig, mark, caller))
    }

    /// Appends the application whose operands were pushed since `mark`.
    #[inline]
    fn push(&mut self, sig: SigId, mark: u32, caller: Caller) -> u32 {
        let Recorder { data, .. } = self;
        let site = data.sites.of(caller);
        let words = data.arena.operand_pool()[mark as usize..].iter().map(|operand| operand.word());
        hash_app(&mut data.hash, data.sigs.hash(sig), words);
        data.arena.push(sig, mark, &data.sigs.get(sig).results, site)
    }

    pub(crate) fn apply(
        &mut self,
        op: Op,
        operands: &[Option<Raw<'_>>],
        params: &[Param],
        caller: Caller,
    ) -> Option<u32> {
        let mut types = [Module::index_type(); 8];
        let mut many = Vec::new();
        let slots = if operands.len() <= 8 {
            &mut types[..operands.len()]
        } else {
            many.resize(operands.len(), Module::index_type());
            &mut many
        };
        for (slot, operand) in slots.iter_mut().zip(operands) {
            *slot = match (*operand)? {
                Raw::Value(_, ty) => ty,
                Raw::Index(_) => Module::index_type(),
                Raw::Words(_, ty) | Raw::Floats(_, ty) => self.data.types.intern(ty),
            };
        }
        if self.tracing.is_some() && operands.iter().flatten().any(|raw| !matches!(raw, Raw::Value(..))) {
            return self.refuse_bound(op.spelling(), caller);
        }
        let sig = self.op_sig(op, slots, params, operands, caller)?;
        let mark = self.data.arena.operand_mark();
        if mark as usize + operands.len() > MAX_INDEX || self.data.arena.values() > MAX_INDEX - (1 << 16) {
            return self.refuse(
                op.spelling(),
                "the graph is full: it holds 2^30 operands".to_owned(),
                caller,
            );
        }
        for operand in operands.iter().flatten() {
            self.push_raw(*operand);
        }
        Some(self.push(sig, mark, caller))
    }

    fn push_raw(&mut self, operand: Raw<'_>) {
        let Bindings { words, floats } = &mut self.data.bindings;
        let operand = match operand {
            Raw::Value(id, _) => Operand::value(id),
            Raw::Index(index) => {
                words.push(index);
                Operand::index(words.len() as u32 - 1)
            }
            Raw::Words(run, _) => {
                words.extend_from_slice(run);
                Operand::index((words.len() - run.len()) as u32)
            }
            Raw::Floats(run, _) => {
                floats.extend_from_slice(run);
                Operand::data((floats.len() - run.len()) as u32)
            }
        };
        self.data.arena.push_operand(operand);
    }

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
    fn call_noise_key(&mut self, caller: Caller) -> [Raw<'static>; 2] {
        let (ordinal, key) = self.noise_key(caller);
        if self.tracing.is_none() {
            return key;
        }
        let fork = self.apply(Op::ForkNoise { ordinal }, &key.map(Some), &[], caller);
        let fork = fork.expect("a key forks into a key") as usize;
        [fork, fork + 1].map(|id| Raw::Value(ValueId::new(id), Module::index_type()))
    }

    /// The signature id of an op on these types, through the cache.
    fn op_sig(
        &mut self,
        op: Op,
        operands: &[TypeId],
        params: &[Param],
        raw: &[Option<Raw<'_>>],
        caller: Caller,
    ) -> Option<SigId> {
        let mut args = [ParamArg::Port(0); 2];
        for (arg, param) in args.iter_mut().zip(params) {
            if param.module != self.data.module.tag {
                let message = "the parameter belongs to another module".to_owned();
                self.refuse(op.spelling(), message, caller);
                return None;
            }
            *arg = self.param_arg(param.id?);
        }
        let args = &args[..params.len()];
        // One place of a model nearly always emits one signature of an op, so they find the candidate.
        let line = std::ptr::from_ref(caller) as u64;
        let word = op.spelling().as_ptr() as u64;
        let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let place = (mixed >> (u64::BITS - OP_CACHE_BITS)) as usize;
        for place in [place, place ^ 1] {
            let Some(sig) = self.op_cache[place] else { continue };
            let known = self.data.sigs.get(sig);
            if known.callee == Callee::Op(op) && *known.operands == *operands && *known.params == *args {
                return Some(sig);
            }
        }
        let sig = self.infer_sig(op, operands, args, raw, caller)?;
        let home = if self.op_cache[place].is_none() { place } else { place ^ 1 };
        self.op_cache[home] = Some(sig);
        Some(sig)
    }

    #[cold]
    fn infer_sig(
        &mut self,
        op: Op,
        operands: &[TypeId],
        params: &[ParamArg],
        raw: &[Option<Raw<'_>>],
        caller: Caller,
    ) -> Option<SigId> {
        let types: Vec<Type> = operands.iter().map(|&ty| self.data.types.get(ty)).collect();
        let param_types: Vec<Type> = params.iter().map(|&arg| self.param_type(arg)).collect();
        match infer(&op, &types, &param_types) {
            Ok(results) => {
                let signature = Signature {
                    callee: Callee::Op(op),
                    operands: operands.into(),
                    params: params.into(),
                    param_types: param_types.into_iter().map(|ty| self.data.types.intern(ty)).collect(),
                    results: results.into_iter().map(|ty| self.data.types.intern(ty)).collect(),
                };
                Some(self.data.sigs.intern(signature, &self.data.types))
            }
            Err(InferError { message, help }) => {
                let notes: Vec<String> = help.into_iter().chain(self.param_help(params)).collect();
                let help = (!notes.is_empty()).then(|| notes.join("; "));
                self.fail(op.spelling(), message, help, raw, caller);
                None
            }
        }
    }

    /// Names the parameters of a refused op and where they were declared.
    fn param_help(&self, params: &[ParamArg]) -> Option<String> {
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

    fn module_param(&self, arg: ParamArg) -> Option<ParamId> {
        match (arg, &self.tracing) {
            (ParamArg::Module(id), _) => Some(id),
            (ParamArg::Port(port), Some(tracing)) => tracing.lifted.get(port as usize).copied(),
            (ParamArg::Port(_), None) => None,
        }
    }

    fn param_type(&self, arg: ParamArg) -> Type {
        let id = self.module_param(arg).expect("parameter ports exist while tracing only");
        self.data.module.param_decl(id).ty
    }

    /// A parameter as an argument: in a cell's body it becomes a port.
    fn param_arg(&mut self, id: ParamId) -> ParamArg {
        let Some(tracing) = &mut self.tracing else { return ParamArg::Module(id) };
        let port = tracing.lifted.iter().position(|&known| known == id).unwrap_or_else(|| {
            tracing.lifted.push(id);
            tracing.lifted.len() - 1
        });
        ParamArg::Port(port as u32)
    }

    /// The signature of a cell called inside a cell: its parameter arguments become ports.
    fn lift_call(&mut self, sig: SigId) -> SigId {
        let mut signature = self.data.sigs.get(sig).clone();
        for arg in &mut signature.params {
            if let ParamArg::Module(id) = *arg {
                *arg = self.param_arg(id);
            }
        }
        self.data.sigs.intern(signature, &self.data.types)
    }

    pub(crate) fn list(&mut self, element: Type, items: &[Option<Raw<'_>>], caller: Caller) -> Option<u32> {
        let element = self.data.types.intern(element);
        for (place, item) in items.iter().enumerate() {
            if let Raw::Value(_, ty) = (*item)?
                && ty != element
            {
                let (wanted, found) = (self.data.ty(element), self.data.ty(ty));
                let message = format!("element {place} must be {wanted} like the first, found {found}");
                self.fail("list", message, None, items, caller);
                return None;
            }
        }
        let sig = self.op_sig(Op::List, &[element], &[], items, caller)?;
        let mark = self.data.arena.operand_mark();
        if mark as usize + items.len() > MAX_INDEX {
            return self.refuse("list", "the graph is full: it holds 2^30 operands".to_owned(), caller);
        }
        for item in items.iter().flatten() {
            self.push_raw(*item);
        }
        Some(self.push(sig, mark, caller))
    }

    #[cold]
    fn abandon(&mut self, mark: u32, message: String, caller: Caller) -> Option<u32> {
        self.data.arena.truncate_operands(mark);
        self.refuse("call", message, caller)
    }

    #[cold]
    fn mismatch(
        &mut self,
        mark: u32,
        place: usize,
        found: TypeId,
        wanted: TypeId,
        sig: SigId,
        caller: Caller,
    ) -> Option<u32> {
        let name = self.data.module.callee_name(self.data.sigs.get(sig).callee);
        let (wanted, found) = (self.data.ty(wanted), self.data.ty(found));
        let message = format!("port {place} of {name} takes {wanted}, found {found}");
        self.abandon(mark, message, caller)
    }

    /// A cell is traced once, so a number bound while tracing would be the same for all calls.
    #[cold]
    fn refuse_bound(&mut self, op: &str, caller: Caller) -> Option<u32> {
        let help = "give the cell a port for it, or write a constant with g.fill(shape, number)";
        let message = "numbers cannot be bound inside a cell".to_owned();
        self.fail(op, message, Some(help.to_owned()), &[], caller);
        None
    }

    #[cold]
    fn refuse(&mut self, op: &str, message: String, caller: Caller) -> Option<u32> {
        self.fail(op, message, None, &[], caller);
        None
    }

    #[cold]
    pub(crate) fn fail(
        &mut self,
        op: &str,
        message: String,
        help: Option<String>,
        operands: &[Option<Raw<'_>>],
        caller: Caller,
    ) {
        if self.error.is_some() {
            return;
        }
        let context = match (&self.tracing, self.instance) {
            (Some(tracing), _) => {
                format!("in cell @{}, while tracing, before any instance was emitted", tracing.cell)
            }
            (None, Some(key)) => {
                format!("in instance {} (key {key})", self.data.instances().saturating_sub(1))
            }
            (None, None) => "in the common prefix".to_owned(),
        };
        let operands = operands.iter().flatten().map(|operand| self.describe(*operand)).collect();
        let fault = Fault { op: op.to_owned(), message, site: Site::from(caller), operands, help, context };
        assert!(!self.strict, "{fault}");
        self.error = Some(fault.into());
    }

    fn describe(&self, operand: Raw<'_>) -> String {
        match operand {
            Raw::Value(id, ty) => format!("{id}: {}", self.data.ty(ty)),
            Raw::Index(index) => format!("#{index}"),
            Raw::Words(_, ty) | Raw::Floats(_, ty) => format!("bound {ty}"),
        }
    }
}
