//! [`Graph`]: the handle through which a model emits.
//!
//! A model sees `&Graph` and `Copy` values. Expressions nest, iterators compose, and futures hold values across waits. A
//! `RefCell` holds the recorder. The graph stores faults instead of returning them: see [`EmitError`].

use crate::getters::getters;
use crate::graph::args::{Arg, Args};
use crate::graph::data::GraphData;
use crate::graph::error::{EmitError, Fault};
use crate::graph::op::Op;
use crate::graph::record::{Caller, Raw, Recorder, Results, Traced};
use crate::graph::site::Site;
use crate::graph::value::{Value, ValueKey};
use crate::graph::wait::Waits;
use crate::id::{TypeId, ValueId};
use crate::module::{Cell, CellOfAny, Module, Param};
use crate::types::Type;
use std::borrow::Borrow;
use std::cell::{OnceCell, Ref, RefCell, RefMut};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A number that this process gives to one graph only; clearing a graph takes a new one.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A graph under construction.
///
/// Emitting functions return no errors. The graph stores the first fault, and functions that consume
/// the graph return it. Set `AUTOBATCH_STRICT=1` to panic at the faulty line instead.
#[derive(Debug)]
pub struct Graph {
    pub(super) inner: RefCell<Recorder>,
    /// The fault of a call that emitted while a guard of [`data`](Self::data) lived.
    locked: OnceCell<EmitError>,
    number: u32,
    pub(super) waits: RefCell<Waits>,
}

impl Graph {
    /// An empty graph over a module.
    #[must_use]
    pub fn new(module: &Arc<Module>) -> Self {
        Self::with(GraphData::new(Arc::clone(module)), None)
    }

    pub(crate) fn tracing(module: Arc<Module>, cell: &str) -> Self {
        Self::with(GraphData::new(module), Some(cell))
    }

    fn with(data: GraphData, cell: Option<&str>) -> Self {
        let number = next_number();
        let inner = RefCell::new(Recorder::new(data, number, cell));
        Self { inner, locked: OnceCell::new(), number, waits: RefCell::default() }
    }

    getters! {
        /// The number of the graph in this process, as errors name it. [`clear`](Self::clear) changes it.
        number(self) -> u32 = self.number;
        /// The recorded graph so far. Emitting is a fault while the returned guard lives.
        ///
        /// ```
        /// # use autobatch_ir::{Graph, ModuleBuilder};
        /// # let g = Graph::new(&ModuleBuilder::new("m").build().expect("an empty module"));
        /// let guard = g.data();
        /// let _ = g.constant(1.0);
        /// drop(guard);
        /// let error = g.check().expect_err("the guard lived").to_string();
        /// assert!(error.contains("while the guard that Graph::data() returned lives"), "{error}");
        /// ```
        data(self) -> Ref<'_, GraphData> = Ref::map(self.inner.borrow(), Recorder::data);
    }

    /// Removes all nodes and faults and keeps the allocations. The graph gets a new number, so keys and
    /// results from before are invalid.
    pub fn clear(&mut self) {
        self.number = next_number();
        self.locked.take();
        self.inner.get_mut().clear(self.number);
    }

    /// Replaces the numbers of a float input. The structure stays, so plans of the graph stay valid. Returns whether the value
    /// is an input of this graph with as many elements.
    #[track_caller]
    pub fn rebind(&self, input: Value<'_>, elements: &[f32]) -> bool {
        let Some(id) = input.id().filter(|_| input.is_of(self)) else { return false };
        let Ok(mut recorder) = self.inner.try_borrow_mut() else { return false };
        recorder.rebind(id, elements)
    }

    /// Sets the number of instances in the graphs that this one will be appended to. Faults then name
    /// an instance by its number in the combined graph.
    pub fn set_instances_before(&mut self, instances: usize) {
        self.inner.get_mut().set_instances_before(instances);
    }

    /// Appends another graph over the same module, including its first fault, as if this graph had
    /// emitted it. If threads emit consecutive ranges of the instances into graphs of their own,
    /// appending these in order gives the graph that a single thread would have emitted.
    ///
    /// Returns the offset that the value ids of the part get; [`appended`](Self::appended) applies it.
    /// If the part belongs to another module, the graph stores a fault and stays unchanged.
    ///
    /// # Panics
    /// If a graph is appended to itself.
    #[track_caller]
    pub fn append(&self, part: &Self) -> Option<u32> {
        if let Some(fault) = part.locked.get() {
            let _ = self.locked.set(fault.clone());
        }
        let caller = Location::caller();
        self.recorder(caller)?.append_part(&part.inner.borrow(), caller)
    }

    /// The key in this graph of a value of a part that was appended at this offset.
    #[must_use]
    pub fn appended(&self, part: ValueKey, offset: u32) -> Option<ValueKey> {
        let id = ValueId::try_new(part.id.index().checked_add(offset as usize)?)?;
        (id.index() < self.inner.borrow().data().arena.values())
            .then_some(ValueKey { graph: self.number, id })
    }

    /// The recorder, to emit; `None` while a guard of [`data`](Self::data) lives, which is a fault.
    #[inline]
    pub(super) fn recorder(&self, caller: Caller) -> Option<RefMut<'_, Recorder>> {
        match self.inner.try_borrow_mut() {
            Ok(recorder) => Some(recorder),
            Err(_) => self.refuse_locked(caller),
        }
    }

    /// Calls the recorder, unless a guard of [`data`](Self::data) lives.
    pub(crate) fn record(&self, caller: Caller, call: impl FnOnce(&mut Recorder)) {
        if let Some(mut recorder) = self.recorder(caller) {
            call(&mut recorder);
        }
    }

    /// Stores the fault of emitting while a guard lives. The recorder cannot store it.
    #[cold]
    #[inline(never)]
    fn refuse_locked<T>(&self, caller: Caller) -> Option<T> {
        let fault = Fault {
            op: "emit".to_owned(),
            message: "the graph cannot grow while the guard that Graph::data() returned lives".to_owned(),
            site: Site::from(caller),
            operands: Vec::new(),
            help: Some("drop the guard first, for example with drop(data) or a block".to_owned()),
            context: format!("in graph {}", self.number),
        };
        let _ = self.locked.set(fault.into());
        None
    }

    /// Checks that there was no fault.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), EmitError> {
        self.inner.borrow().check()?;
        self.locked.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    /// Consumes the handle and returns the recorded graph.
    ///
    /// # Errors
    /// The first fault of emitting.
    pub fn finish(self) -> Result<GraphData, EmitError> {
        self.check()?;
        self.inner.into_inner().finish()
    }

    /// Begins an instance. The key selects the noise of the instance and appears in messages. Equal keys draw equal noise.
    #[track_caller]
    pub fn instance(&self, key: u64) {
        let caller = Location::caller();
        self.record(caller, |recorder| recorder.cut(Some(key), caller));
    }

    /// Resumes an interrupted instance, or begins it. Its further noise differs from all noise that it drew before.
    #[track_caller]
    pub fn resume_instance(&self, key: u64) {
        let caller = Location::caller();
        self.record(caller, |recorder| recorder.resume_instance(key, caller));
    }

    /// Ends the current instance. The following nodes are common to all instances.
    #[track_caller]
    pub fn common(&self) {
        let caller = Location::caller();
        self.record(caller, |recorder| recorder.cut(None, caller));
    }

    /// Applies a cell.
    ///
    /// Indices are bindings, not structure: graphs that differ only in them share a plan.
    #[track_caller]
    #[inline]
    pub fn call<'g, const IN: usize, const OUT: usize>(
        &'g self,
        cell: Cell<IN, OUT>,
        args: impl Args<'g, IN>,
    ) -> [Value<'g>; OUT] {
        let caller = Location::caller();
        let args = args.into_args();
        let made = self.recorder(caller).and_then(|mut recorder| recorder.call(self, cell, &args, caller));
        self.results(made)
    }

    /// Applies a cell whose numbers of ports and results are known at run time only. Arguments are values or
    /// `u32` indices. Returns its results, or a single poison value after a fault.
    #[track_caller]
    #[must_use]
    pub fn call_any<'g>(
        &'g self,
        cell: CellOfAny,
        args: impl IntoIterator<Item = impl Into<Arg<'g>>>,
    ) -> Vec<Value<'g>> {
        let caller = Location::caller();
        let args = args.into_iter().map(Into::into);
        let first = self.apply_args(args, caller, |recorder, args| recorder.call_any(cell, args, caller));
        let Some(first) = first.id().map(ValueId::index) else { return vec![first] };
        let count = self.inner.borrow().data().arena.values() - first;
        (0..count).map(|place| self.nth(first as u32, place)).collect()
    }

    /// The results of a node as values; poison after a fault.
    #[inline]
    fn results<const OUT: usize>(&self, made: Option<Results<OUT>>) -> [Value<'_>; OUT] {
        let Some((first, types)) = made else { return [Value::poison(self); OUT] };
        std::array::from_fn(|place| Value::new(self, ValueId::new(first as usize + place), types[place]))
    }

    /// Applies an op to values, with parameters.
    #[inline]
    pub(crate) fn apply_values<const IN: usize, const PARAMS: usize, const OUT: usize>(
        &self,
        op: &Op,
        values: &[Value<'_>; IN],
        params: &[Param; PARAMS],
        caller: Caller,
    ) -> [Value<'_>; OUT] {
        if let Some(&foreign) = values.iter().find(|value| !value.is_of(self)) {
            self.refuse_other_graph(foreign, caller);
            return [Value::poison(self); OUT];
        }
        let made =
            self.recorder(caller).and_then(|mut recorder| recorder.apply_values(op, values, params, caller));
        self.results(made)
    }

    /// Applies an op and returns the index of its first result; `None` after a fault.
    #[inline]
    pub(crate) fn apply(
        &self,
        op: Op,
        operands: &[Option<Raw<'_>>],
        params: &[Param],
        caller: Caller,
    ) -> Option<u32> {
        self.recorder(caller)?.apply(op, operands, params, caller)
    }

    /// Applies an op and returns its first result as a value.
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

    /// The value `place` places after `first`.
    #[inline]
    pub(crate) fn nth(&self, first: u32, place: usize) -> Value<'_> {
        let id = ValueId::new(first as usize + place);
        Value::new(self, id, self.inner.borrow().data().arena.type_of(id))
    }

    /// Stores a fault about a value and returns the first fault.
    #[cold]
    pub(super) fn fault(
        &self,
        op: &str,
        message: &str,
        help: &str,
        of: Value<'_>,
        caller: Caller,
    ) -> EmitError {
        let operand = of.id().map(|id| Raw::Value(id, of.type_id()));
        let (message, help) = (message.to_owned(), Some(help.to_owned()));
        self.record(caller, |recorder| recorder.fail(op, message, help, &[operand], caller));
        self.check().expect_err("the graph stores a fault")
    }

    /// A list of any number of values of one type.
    #[track_caller]
    pub fn list<'g>(&'g self, items: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Value<'g> {
        let caller = Location::caller();
        self.apply_many(items, caller, |recorder, items| recorder.list(items, caller))
    }

    /// The list of no values. [`list_of`](Self::list_of) makes a list of any number of values.
    #[track_caller]
    pub fn empty_list(&self, element: Type) -> Value<'_> {
        let caller = Location::caller();
        let first = self.recorder(caller).and_then(|mut recorder| recorder.empty_list(element, caller));
        first.map_or(Value::poison(self), |first| self.nth(first, 0))
    }

    /// A list of any number of values of the given type; it may be empty.
    ///
    /// ```
    /// # use autobatch_ir::{EmitError, Graph, ModuleBuilder, Value, f32};
    /// # fn main() -> Result<(), EmitError> {
    /// # let g = Graph::new(&ModuleBuilder::new("m").build()?);
    /// let sum = |children: &[Value<'_>]| g.list_of(f32([2]), children).sum().shape();
    /// assert_eq!(sum(&[]).dims(), [2]);
    /// assert_eq!(sum(&[g.input(&[1.0, 2.0])]).dims(), [2]);
    /// # g.check()
    /// # }
    /// ```
    #[track_caller]
    pub fn list_of<'g>(
        &'g self,
        element: Type,
        items: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Value<'g> {
        let caller = Location::caller();
        self.apply_many(items, caller, |recorder, items| recorder.list_of(element, items, caller))
    }

    /// Collects any number of values in a buffer of the recorder and passes them to `apply`.
    #[inline]
    pub(crate) fn apply_many<'g>(
        &'g self,
        values: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
        caller: Caller,
        apply: impl FnOnce(&mut Recorder, &[Option<Raw<'_>>]) -> Option<u32>,
    ) -> Value<'g> {
        self.apply_args(values.into_iter().map(|value| Arg::Value(*value.borrow())), caller, apply)
    }

    /// [`apply_many`](Self::apply_many) with indices among the arguments.
    #[inline]
    fn apply_args<'g>(
        &'g self,
        args: impl Iterator<Item = Arg<'g>>,
        caller: Caller,
        apply: impl FnOnce(&mut Recorder, &[Option<Raw<'_>>]) -> Option<u32>,
    ) -> Value<'g> {
        let Some(mut recorder) = self.recorder(caller) else { return Value::poison(self) };
        let mut operands = recorder.take_operand_buffer();
        // The iterator may emit its values lazily, so the recorder must not be borrowed here.
        drop(recorder);
        operands.extend(args.map(|arg| arg.raw(self, caller)));
        let Some(mut recorder) = self.recorder(caller) else { return Value::poison(self) };
        let first = apply(&mut recorder, &operands);
        recorder.return_operand_buffer(operands);
        let Some(id) = first.map(|first| ValueId::new(first as usize)) else { return Value::poison(self) };
        Value::new(self, id, recorder.data().arena.type_of(id))
    }

    /// A noise key for one use of noise, and the ordinal that distinguishes uses of one key.
    pub(crate) fn noise_key(&self, caller: Caller) -> (u32, [Raw<'static>; 2]) {
        let unused = (0, [Raw::Index(0); 2]);
        self.recorder(caller).map_or(unused, |mut recorder| recorder.noise_key(caller))
    }

    /// Stores a fault that a layer found and returns a poison value. The layer passes its own
    /// `Location::caller()`, so that the error names the line that called the layer.
    #[track_caller]
    pub fn refuse(
        &self,
        op: &str,
        message: &str,
        help: &str,
        caller: &'static Location<'static>,
    ) -> Value<'_> {
        let (message, help) = (message.to_owned(), Some(help.to_owned()));
        self.record(caller, |recorder| recorder.fail(op, message, help, &[], caller));
        Value::poison(self)
    }

    pub(crate) fn refuse_other_graph(&self, value: Value<'_>, caller: Caller) {
        self.record(caller, |recorder| recorder.refuse_other_graph("operand", value, caller));
    }

    pub(crate) fn type_of(&self, ty: TypeId) -> Type {
        self.inner.borrow().data().types.get(ty)
    }

    /// The value with this key, for programs that cannot hold a [`Value`]; `None` for keys of other graphs.
    #[must_use]
    pub fn value(&self, key: ValueKey) -> Option<Value<'_>> {
        let inner = self.inner.borrow();
        let known = key.graph == self.number && key.id.index() < inner.data().arena.values();
        known.then(|| Value::new(self, key.id, inner.data().arena.type_of(key.id)))
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
        if let Some(fault) = self.locked.get() {
            return Err(fault.clone());
        }
        self.inner.into_inner().into_traced(results, caller)
    }
}
