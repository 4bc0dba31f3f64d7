//! [`Graph`]: the handle through which a model emits.
//!
//! A model sees `&Graph` and `Copy` values, so expressions nest, iterators adapt and futures hold
//! values across waits; the recording lies behind a `RefCell`. Faults are kept, not returned: see
//! [`EmitError`].

use crate::graph::args::Args;
use crate::graph::data::{GraphData, OutputKind};
use crate::graph::error::EmitError;
use crate::graph::op::Op;
use crate::graph::record::{Caller, Made, Raw, Recorder, Traced};
use crate::graph::value::{Value, ValueKey};
use crate::graph::wait::Waits;
use crate::id::{TypeId, ValueId};
use crate::module::{Cell, CellOfAny, Module, Param};
use crate::types::Type;
use std::borrow::Borrow;
use std::cell::{Ref, RefCell};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A number that no other graph of the process has, nor had before it was cleared.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A graph under construction.
///
/// Emitting never fails on the spot: the first fault is kept and whatever consumes the graph
/// returns it. Set `AUTOBATCH_STRICT=1` to panic at the faulty line instead, for a debugger.
#[derive(Debug)]
pub struct Graph {
    inner: RefCell<Recorder>,
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
        Self { inner: RefCell::new(Recorder::new(data, number, cell)), number, waits: RefCell::default() }
    }

    /// The graph's number in this process, as errors name it; [`clear`](Self::clear) gives it another.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Forgets all that was emitted, faults included, and keeps the memory. It is another graph from then on, with a number of
    /// its own: keys and results from before are of no value in it.
    pub fn clear(&mut self) {
        self.number = next_number();
        self.inner.get_mut().clear(self.number);
    }

    /// Says that so many instances were emitted into other graphs that this one is to be appended
    /// to: faults then name the instance by its number in the whole.
    pub fn set_instances_before(&mut self, instances: usize) {
        self.inner.get_mut().set_instances_before(instances);
    }

    /// Appends what another graph over the same module holds, its first fault included, as if it
    /// had been emitted here. Threads that emit contiguous stretches of the instances into graphs of
    /// their own make, appended in order, the very graph that one thread would have made.
    ///
    /// Gives by how much the numbers of the part's values grow; [`appended`](Self::appended) finds
    /// one. Nothing is appended, and the fault is kept, if the part is of another module.
    ///
    /// # Panics
    /// If a graph is appended to itself.
    #[track_caller]
    pub fn append(&self, part: &Self) -> Option<u32> {
        self.inner.borrow_mut().append_part(&part.inner.borrow(), Location::caller())
    }

    /// The key here of a value of a part that was appended with this shift.
    #[must_use]
    pub fn appended(&self, part: ValueKey, shift: u32) -> Option<ValueKey> {
        let id = ValueId::try_new(part.id.index().checked_add(shift as usize)?)?;
        (id.index() < self.inner.borrow().data().arena.values())
            .then_some(ValueKey { graph: self.number, id })
    }

    /// What was recorded so far.
    ///
    /// # Panics
    /// If anything is emitted while the returned guard lives.
    #[must_use]
    pub fn data(&self) -> Ref<'_, GraphData> {
        Ref::map(self.inner.borrow(), Recorder::data)
    }

    /// The first fault, if there was one.
    ///
    /// # Errors
    /// That fault.
    pub fn check(&self) -> Result<(), EmitError> {
        self.inner.borrow().check()
    }

    /// The recorded graph, taken out of its handle.
    ///
    /// # Errors
    /// The first fault of emitting.
    pub fn finish(self) -> Result<GraphData, EmitError> {
        self.inner.into_inner().finish()
    }

    /// Begins an instance. The key names the instance's noise and appears in messages; equal keys
    /// draw equal noise.
    #[track_caller]
    pub fn instance(&self, key: u64) {
        self.inner.borrow_mut().cut(Some(key), Location::caller());
    }

    /// Goes on with an instance that others interrupted, or begins it: noise drawn from here on differs
    /// from all that the instance drew before.
    #[track_caller]
    pub fn resume_instance(&self, key: u64) {
        self.inner.borrow_mut().resume_instance(key, Location::caller());
    }

    /// Ends the current instance: what follows is common to all.
    #[track_caller]
    pub fn common(&self) {
        self.inner.borrow_mut().cut(None, Location::caller());
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
        if !value.is_of(self) {
            return self.refuse_other_graph(value, caller);
        }
        if let Some(id) = value.id() {
            self.inner.borrow_mut().want(name, id, kind, caller);
        }
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
        let made = self.inner.borrow_mut().call(self, cell, &args, caller);
        self.made(made)
    }

    /// Applies a cell whose numbers of operands and results were known when it was traced only. Gives its results, or one
    /// value that stands for a fault.
    #[track_caller]
    #[must_use]
    pub fn call_of_any<'g>(
        &'g self,
        cell: CellOfAny,
        args: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Vec<Value<'g>> {
        let caller = Location::caller();
        let first = self.apply_many(args, caller, |recorder, args| recorder.call_of_any(cell, args, caller));
        let Some(first) = first.id().map(ValueId::index) else { return vec![first] };
        let count = self.inner.borrow().data().arena.values() - first;
        (0..count).map(|place| self.nth(first as u32, place)).collect()
    }

    /// The values that a node made; poison if it was refused.
    #[inline]
    fn made<const OUT: usize>(&self, made: Option<Made<OUT>>) -> [Value<'_>; OUT] {
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
        let made = self.inner.borrow_mut().apply_values(op, values, params, caller);
        self.made(made)
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
        Value::new(self, id, self.inner.borrow().data().arena.type_of(id))
    }

    /// Keeps a fault that is said of values, and gives the first fault.
    #[cold]
    pub(super) fn fault(
        &self,
        op: &str,
        message: &str,
        help: &str,
        of: Value<'_>,
        caller: Caller,
    ) -> EmitError {
        let mut inner = self.inner.borrow_mut();
        let operand = of.id().map(|id| Raw::Value(id, of.type_id()));
        inner.fail(op, message.to_owned(), Some(help.to_owned()), &[operand], caller);
        inner.check().expect_err("a fault was kept")
    }

    /// A list of any number of values of one type.
    #[track_caller]
    pub fn list<'g>(&'g self, items: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Value<'g> {
        let caller = Location::caller();
        self.apply_many(items, caller, |recorder, items| recorder.list(items, caller))
    }

    /// The list of no values.
    #[track_caller]
    pub fn empty_list(&self, element: Type) -> Value<'_> {
        let first = self.inner.borrow_mut().empty_list(element, Location::caller());
        first.map_or(Value::poison(self), |first| self.nth(first, 0))
    }

    /// What `apply` makes of any number of values, which are gathered in memory of the recorder.
    #[inline]
    pub(crate) fn apply_many<'g>(
        &'g self,
        values: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
        caller: Caller,
        apply: impl FnOnce(&mut Recorder, &[Option<Raw<'_>>]) -> Option<u32>,
    ) -> Value<'g> {
        let mut operands = self.inner.borrow_mut().lend_operands();
        // Whoever gives values may emit them only now, so nothing is borrowed meanwhile.
        operands.extend(values.into_iter().map(|value| value.borrow().raw(self, caller)));
        let mut recorder = self.inner.borrow_mut();
        let first = apply(&mut recorder, &operands);
        recorder.take_back(operands);
        let Some(id) = first.map(|first| ValueId::new(first as usize)) else { return Value::poison(self) };
        Value::new(self, id, recorder.data().arena.type_of(id))
    }

    /// The noise key for one use of noise, and the number that tells uses of one key apart.
    pub(crate) fn noise_key(&self, caller: Caller) -> (u32, [Raw<'static>; 2]) {
        self.inner.borrow_mut().noise_key(caller)
    }

    /// Keeps a fault found outside the op table, by a layer say, and returns the value that stands
    /// for it. A layer passes `Location::caller()`, so that the error names its user's line.
    #[track_caller]
    pub fn refuse(
        &self,
        op: &str,
        message: &str,
        help: &str,
        caller: &'static Location<'static>,
    ) -> Value<'_> {
        self.inner.borrow_mut().fail(op, message.to_owned(), Some(help.to_owned()), &[], caller);
        Value::poison(self)
    }

    pub(crate) fn refuse_other_graph(&self, value: Value<'_>, caller: Caller) {
        self.inner.borrow_mut().refuse_other_graph(value.graph().number, caller);
    }

    pub(crate) fn mark_shared(&self, value: ValueId, caller: Caller) {
        self.inner.borrow_mut().mark_shared(value, caller);
    }

    pub(crate) fn mark_alone(&self, value: ValueId, caller: Caller) {
        self.inner.borrow_mut().mark_alone(value, caller);
    }

    pub(crate) fn type_of(&self, ty: TypeId) -> Type {
        self.inner.borrow().data().types.get(ty)
    }

    /// The value behind a key of this graph, for programs that cannot hold a [`Value`].
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
        self.inner.into_inner().into_traced(results, caller)
    }
}
