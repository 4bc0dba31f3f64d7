//! [`Graph`]: the handle through which a model emits.
//!
//! A model sees `&Graph` and `Copy` values, so expressions nest, iterators adapt and futures hold
//! values across waits; the recording lies behind a `RefCell`. Each emitting call checks that the
//! values are this graph's, checks their types against the signature, and appends.
//! The checks of a cell call compare words: its signature was fixed when it was traced.

use crate::graph::arena::Operand;
use crate::graph::args::{Arg, Args};
use crate::graph::data::{Cut, GraphData, Output, OutputKind, hash_app, hash_cut};
use crate::graph::error::{EmitError, Fault};
use crate::graph::infer::{InferError, infer};
use crate::graph::signature::{Callee, ParamArg, Signature, Signatures};
use crate::graph::value::{Value, ValueKey};
use crate::graph::{Arena, Bindings, Op, Site, Sites};
use crate::hash::noise_key;
use crate::id::{MAX_INDEX, ParamId, SigId, TypeId, ValueId};
use crate::module::{Cell, Module, Param};
use crate::types::{DType, INDEX, Type, Types};
use std::borrow::Borrow;
use std::cell::{Ref, RefCell};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) type Caller = &'static Location<'static>;

/// A graph under construction.
///
/// Emitting never fails on the spot: the first fault is kept and whatever consumes the graph
/// returns it. Set `AUTOBATCH_STRICT=1` to panic at the faulty line instead, for a debugger.
#[derive(Debug)]
pub struct Graph {
    inner: RefCell<Inner>,
    number: u32,
}

#[derive(Debug)]
struct Inner {
    data: GraphData,
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

impl Graph {
    /// An empty graph over a module.
    #[must_use]
    pub fn new(module: &Arc<Module>) -> Self {
        Self::with(GraphData::new(Arc::clone(module)), None)
    }

    pub(crate) fn tracing(module: Arc<Module>, cell: &str) -> Self {
        let tracing = Tracing { cell: cell.to_owned(), lifted: Vec::new(), noise: None };
        Self::with(GraphData::new(module), Some(tracing))
    }

    fn with(data: GraphData, tracing: Option<Tracing>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let strict = std::env::var_os("AUTOBATCH_STRICT").is_some_and(|word| word == "1");
        let inner = Inner {
            data,
            error: None,
            tracing,
            op_cache: [None; OP_CACHE],
            instance: None,
            noise_ordinal: 0,
            strict,
        };
        Self { inner: RefCell::new(inner), number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// The graph's number in this process, as errors name it.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Forgets all that was emitted, faults included, and keeps the memory.
    pub fn clear(&mut self) {
        let inner = self.inner.get_mut();
        inner.data.clear();
        inner.error = None;
        inner.instance = None;
        inner.noise_ordinal = 0;
        inner.op_cache.fill(None);
    }

    /// What was recorded so far.
    ///
    /// # Panics
    /// If anything is emitted while the returned guard lives.
    #[must_use]
    pub fn data(&self) -> Ref<'_, GraphData> {
        Ref::map(self.inner.borrow(), |inner| &inner.data)
    }

    /// The first fault, if there was one.
    ///
    /// # Errors
    /// That fault.
    pub fn check(&self) -> Result<(), EmitError> {
        match &self.inner.borrow().error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// The recorded graph, taken out of its handle.
    ///
    /// # Errors
    /// The first fault of emitting.
    pub fn finish(self) -> Result<GraphData, EmitError> {
        let inner = self.inner.into_inner();
        match inner.error {
            Some(error) => Err(error),
            None => Ok(inner.data),
        }
    }

    /// Begins an instance. The key names the instance's noise and appears in messages; equal keys
    /// draw equal noise.
    pub fn instance(&self, key: u64) {
        self.cut(Some(key));
    }

    /// Ends the current instance: what follows is common to all.
    pub fn common(&self) {
        self.cut(None);
    }

    fn cut(&self, key: Option<u64>) {
        let mut inner = self.inner.borrow_mut();
        let cut = Cut { first: inner.data.arena.len() as u32, key };
        hash_cut(&mut inner.data.hash, cut);
        inner.data.cuts.push(cut);
        inner.instance = key;
        inner.noise_ordinal = 0;
    }

    /// Asks for a value under a name. The value may be read after the run.
    #[track_caller]
    pub fn output(&self, name: &str, value: Value<'_>) {
        self.want(name, value, OutputKind::Value, Location::caller());
    }

    /// Asks for a scalar under a name and for its derivatives.
    #[track_caller]
    pub fn loss(&self, name: &str, value: Value<'_>) {
        self.want(name, value, OutputKind::Loss, Location::caller());
    }

    fn want(&self, name: &str, value: Value<'_>, kind: OutputKind, caller: Caller) {
        let mut inner = self.inner.borrow_mut();
        if !value.is_of(self) {
            return inner.fail("output", other_graph(self, value), None, &[], caller);
        }
        let Some(id) = value.id() else { return };
        let ty = inner.data.type_of(id);
        if ty.is_list {
            return inner.fail("output", format!("a list is no output, found {ty}"), None, &[], caller);
        }
        if kind == OutputKind::Loss && ty != Type::scalar(DType::F32) {
            return inner.fail("loss", format!("a loss is a scalar f32, found {ty}"), None, &[], caller);
        }
        if inner.data.outputs.iter().any(|output| output.name == name) {
            return inner.fail("output", format!("the name {name:?} is taken"), None, &[], caller);
        }
        inner.data.outputs.push(Output { name: name.to_owned(), value: id, kind });
    }

    /// Applies a cell.
    ///
    /// Indices are bound, not structure: graphs that differ in them share a plan.
    #[track_caller]
    #[inline]
    pub fn call<'g, const IN: usize, const OUT: usize>(
        &'g self,
        cell: Cell<IN, OUT>,
        args: impl Args<'g, IN>,
    ) -> [Value<'g>; OUT] {
        let caller = Location::caller();
        let args = args.into_args();
        let mut inner = self.inner.borrow_mut();
        let first = inner.call(self, cell.sig, cell.module, &args, caller);
        let Some(first) = first else { return [Value::poison(self); OUT] };
        let types = inner.data.arena.value_types();
        std::array::from_fn(|place| {
            let id = first as usize + place;
            Value::new(self, ValueId::new(id), types[id])
        })
    }

    /// Applies an op; the number of its first result, or nothing if there was a fault.
    #[inline]
    pub(crate) fn apply(
        &self,
        op: Op,
        operands: &[Option<Raw<'_>>],
        params: &[Param],
        caller: Caller,
    ) -> Option<u32> {
        self.inner.borrow_mut().apply(op, operands, params, caller)
    }

    /// The first result of an op, as a value.
    #[inline]
    pub(crate) fn apply_one(
        &self,
        op: Op,
        operands: &[Option<Raw<'_>>],
        params: &[Param],
        caller: Caller,
    ) -> Value<'_> {
        self.apply(op, operands, params, caller).map_or(Value::poison(self), |first| self.nth(first, 0))
    }

    /// The value `place` after `first`.
    #[inline]
    pub(crate) fn nth(&self, first: u32, place: usize) -> Value<'_> {
        let id = ValueId::new(first as usize + place);
        Value::new(self, id, self.inner.borrow().data.arena.type_of(id))
    }

    /// A list of any number of values of one type.
    #[track_caller]
    pub fn list<'g>(&'g self, items: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Value<'g> {
        let caller = Location::caller();
        let items: Vec<Value<'g>> = items.into_iter().map(|item| *item.borrow()).collect();
        match items.first() {
            Some(first) => self.list_of(first.ty(), &items, caller),
            None => self.refuse(
                "list",
                "the element type of an empty list is unknown",
                "use g.empty_list(type)",
                caller,
            ),
        }
    }

    /// The list of no values.
    #[track_caller]
    pub fn empty_list(&self, element: Type) -> Value<'_> {
        self.list_of(element, &[], Location::caller())
    }

    fn list_of<'g>(&'g self, element: Type, items: &[Value<'g>], caller: Caller) -> Value<'g> {
        let raw: Vec<Option<Raw<'_>>> = items.iter().map(|&item| item.raw(self, caller)).collect();
        let first = self.inner.borrow_mut().list(element, &raw, caller);
        first.map_or(Value::poison(self), |first| self.nth(first, 0))
    }

    /// The noise key for one use of noise, and the number that tells uses of one key apart.
    pub(crate) fn noise_key(&self, caller: Caller) -> (u32, [Raw<'static>; 2]) {
        self.inner.borrow_mut().noise_key(caller)
    }

    /// Keeps a fault found outside the op table and returns poison.
    pub(crate) fn refuse(&self, op: &str, message: &str, help: &str, caller: Caller) -> Value<'_> {
        self.inner.borrow_mut().fail(op, message.to_owned(), Some(help.to_owned()), &[], caller);
        Value::poison(self)
    }

    pub(crate) fn refuse_other_graph(&self, value: Value<'_>, caller: Caller) {
        let message = other_graph(self, value);
        self.inner.borrow_mut().fail("operand", message, None, &[], caller);
    }

    pub(crate) fn mark_shared(&self, value: ValueId) {
        self.inner.borrow_mut().data.shared.push(value);
    }

    pub(crate) fn mark_alone(&self, value: ValueId) {
        let mut inner = self.inner.borrow_mut();
        let app = inner.data.arena.producer(value);
        inner.data.alone.push(app);
    }

    pub(crate) fn type_of(&self, ty: TypeId) -> Type {
        self.inner.borrow().data.types.get(ty)
    }

    /// The value behind a key of this graph, for programs that cannot hold a [`Value`].
    #[must_use]
    pub fn value(&self, key: ValueKey) -> Option<Value<'_>> {
        let inner = self.inner.borrow();
        let known = key.graph == self.number && key.id.index() < inner.data.arena.values();
        known.then(|| Value::new(self, key.id, inner.data.arena.type_of(key.id)))
    }

    /// Declares a port of the cell being traced.
    pub(crate) fn port(&self, ty: Type, caller: Caller) -> Value<'_> {
        self.apply_one(Op::Port(ty), &[], &[], caller)
    }

    pub(crate) fn into_traced(
        self,
        results: &[Option<ValueId>],
        caller: Caller,
    ) -> Result<Traced, EmitError> {
        let mut inner = self.inner.into_inner();
        let results: Option<Vec<ValueId>> = results.iter().copied().collect();
        if let Some(results) = &results
            && let Some(&list) = results.iter().find(|&&value| inner.data.type_of(value).is_list)
        {
            let message = format!("a cell returns values, found {}", inner.data.type_of(list));
            inner.fail("cell", message, None, &[], caller);
        }
        match (inner.error, results, inner.tracing) {
            (None, Some(results), Some(Tracing { lifted, noise, .. })) => {
                let GraphData { types, sigs, sites, arena, .. } = inner.data;
                Ok(Traced { types, sigs, sites, arena, results, lifted, noise: noise.is_some() })
            }
            (Some(error), ..) => Err(error),
            (None, ..) => unreachable!("poison results come with an error"),
        }
    }
}

#[cold]
fn other_graph(graph: &Graph, value: Value<'_>) -> String {
    format!("the value belongs to graph {}, it is used in graph {}", value.graph().number, graph.number)
}

impl Inner {
    #[inline]
    fn call(
        &mut self,
        graph: &Graph,
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
        let Inner { data, .. } = self;
        let mark = data.arena.operand_mark();
        if mark as usize + args.len() + 2 > MAX_INDEX || data.arena.values() > MAX_INDEX - (1 << 16) {
            return self.refuse("call", "the graph is full: it holds 2^30 operands".to_owned(), caller);
        }
        let signature = data.sigs.get(sig);
        for (place, arg) in args.iter().enumerate() {
            let wanted = signature.operands[place];
            let operand = match arg {
                Arg::Value(value) if !value.is_of(graph) => {
                    let message = other_graph(graph, *value);
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
        let Inner { data, .. } = self;
        let site = data.sites.of(caller);
        let words = data.arena.operand_pool()[mark as usize..].iter().map(|operand| operand.word());
        hash_app(&mut data.hash, data.sigs.hash(sig), words);
        data.arena.push(sig, mark, &data.sigs.get(sig).results, site)
    }

    fn apply(
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
    fn noise_key(&mut self, caller: Caller) -> (u32, [Raw<'static>; 2]) {
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

    fn list(&mut self, element: Type, items: &[Option<Raw<'_>>], caller: Caller) -> Option<u32> {
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
    fn fail(
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
