//! The recorder behind a [`Graph`](crate::graph::Graph): it checks emitted nodes and appends them.
//!
//! Each emitting call checks that its values belong to this graph and have the right types, interns
//! the signature, and appends a node. A call of a cell only compares words, because tracing fixes the
//! signature of the cell. Tracing turns parameters into ports and takes noise from noise ports.
//!
//! Cell calls and ops on values are the hot path. Their numbers of operands and results are compile
//! time constants, so the compiler compares and copies arrays without loops.

mod append;
mod call;
mod faults;
mod noise;
mod parts;
mod repeat;
mod signatures;

use self::repeat::Repeated;
use crate::graph::data::{Cut, GraphData, Output, OutputKind, hash_cut};
use crate::graph::error::EmitError;
use crate::graph::lists::ListLengths;
use crate::graph::signature::{Callee, Signatures};
use crate::graph::{Arena, Op, Site, Sites};
use crate::id::{ParamId, SigId, SiteId, TypeId, ValueId};
use crate::module::{Module, Param};
use crate::types::{DType, Type, Types};
use std::collections::{BTreeSet, HashMap};
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
    /// A buffer for collecting operands.
    operands: Vec<Option<Raw<'static>>>,
    /// The key of the current instance, and the ordinal of its next noise key.
    instance: Option<u64>,
    noise_ordinal: u32,
    /// The next noise ordinal of each interrupted instance that has drawn noise.
    interrupted: HashMap<u64, u32>,
    /// The number of instances in the graphs that this one will be appended to, for messages.
    instances_before: usize,
    strict: bool,
    list_lengths: ListLengths,
    /// The templates that the graph repeats, by their numbers.
    templates: HashMap<u64, Repeated>,
}

/// The state of tracing a cell.
#[derive(Debug)]
struct Tracing {
    cell: String,
    lifted: Vec<ParamId>,
    noise: Option<[ValueId; 2]>,
}

/// The result of tracing a cell, for the module.
pub(crate) struct Traced {
    pub(crate) types: Types,
    pub(crate) sigs: Signatures,
    pub(crate) sites: Sites,
    pub(crate) arena: Arena,
    pub(crate) results: Vec<ValueId>,
    pub(crate) lifted: Vec<ParamId>,
    pub(crate) noise: bool,
}

/// An operand before it enters the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Raw<'a> {
    Value(ValueId, TypeId),
    Index(u32),
    Words(&'a [u32], Type),
    Floats(&'a [f32], Type),
}

/// The index of the first result of a node, and the types of all results.
pub(crate) type Results<const OUT: usize> = (u32, [TypeId; OUT]);

/// The size of the signature cache in front of the interner.
const OP_CACHE_BITS: u32 = 9;
const OP_CACHE: usize = 1 << OP_CACHE_BITS;
/// The places of a signature, relative to its first. With two of them, one program of a hundred had three lines in one set: the
/// order of addresses differs from run to run.
const OP_CACHE_WAYS: [usize; 4] = [0, 1, 2, 3];
/// The noise key of nodes that are common to all instances.
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
            operands: Vec::new(),
            instance: None,
            noise_ordinal: 0,
            interrupted: HashMap::new(),
            instances_before: 0,
            list_lengths: ListLengths::default(),
            templates: HashMap::new(),
            strict: std::env::var_os("AUTOBATCH_STRICT").is_some_and(|word| !word.is_empty() && word != "0"),
        }
    }

    pub(crate) fn clear(&mut self, number: u32) {
        self.number = number;
        self.data.clear();
        self.output_names.clear();
        self.error = None;
        self.instance = None;
        self.noise_ordinal = 0;
        self.interrupted.clear();
        self.op_cache.fill(None);
        self.list_lengths.clear();
        self.templates.clear();
    }

    /// Sets the number of instances in the graphs that this one will be appended to.
    pub(crate) fn set_instances_before(&mut self, instances: usize) {
        self.instances_before = instances;
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

    pub(crate) fn take_fault(&mut self) -> Option<EmitError> {
        self.error.take()
    }

    pub(crate) fn declare_site(&mut self, site: Site) -> SiteId {
        self.data.sites.intern(site)
    }

    /// Sets a line of this program, unless a frontend set one. Returns whether it did.
    pub(crate) fn set_default_site(&mut self, line: &'static Location<'static>) -> bool {
        let sites = &mut self.data.sites;
        let is_free = sites.current().is_none();
        if is_free {
            let line = sites.of(line);
            sites.set_current(Some(line));
        }
        is_free
    }

    pub(crate) fn set_site(&mut self, site: Option<SiteId>) {
        self.data.sites.set_current(site);
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
            (None, ..) => unreachable!("a poison result implies an error"),
        }
    }

    pub(crate) fn cut(&mut self, key: Option<u64>, caller: Caller) {
        if self.refuse_in_cell("instance", caller) {
            return;
        }
        let cut = Cut { first: self.data.arena.len() as u32, key };
        hash_cut(&mut self.data.hash, cut);
        self.data.cuts.push(cut);
        self.interrupt();
        self.instance = key;
        self.noise_ordinal = 0;
    }

    /// Resumes an interrupted instance, or begins it.
    pub(crate) fn resume_instance(&mut self, key: u64, caller: Caller) {
        if self.refuse_in_cell("resume_instance", caller) || self.instance == Some(key) {
            return;
        }
        self.cut(Some(key), caller);
        self.noise_ordinal = self.interrupted.get(&key).copied().unwrap_or(0);
    }

    /// Stores the noise ordinal of the current instance, in case it is resumed.
    pub(super) fn interrupt(&mut self) {
        if let Some(key) = self.instance.filter(|_| self.noise_ordinal > 0) {
            self.interrupted.insert(key, self.noise_ordinal);
        }
    }

    pub(crate) fn add_output(&mut self, name: &str, value: ValueId, kind: OutputKind, caller: Caller) {
        if self.refuse_in_cell("output", caller) {
            return;
        }
        let ty = self.data.type_of(value);
        if ty.is_list {
            return self.fail("output", format!("an output cannot be a list, found {ty}"), None, &[], caller);
        }
        if kind == OutputKind::Loss && ty != Type::scalar(DType::F32) {
            return self.fail("loss", format!("a loss is a scalar f32, found {ty}"), None, &[], caller);
        }
        if !self.output_names.insert(name.to_owned()) {
            let help = "name each output of a graph differently, for example with the number of its item";
            let message = format!("the name {name:?} is taken");
            return self.fail("output", message, Some(help.to_owned()), &[], caller);
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

    /// Applies an op to operands of any kind.
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
        let sig = self.op_sig(&op, slots, params, operands, caller)?;
        self.append_raw(sig, operands, caller)
    }

    /// Takes the buffer for operands. A nested collection gets a new buffer.
    pub(crate) fn take_operand_buffer(&mut self) -> Vec<Option<Raw<'static>>> {
        std::mem::take(&mut self.operands)
    }

    pub(crate) fn return_operand_buffer(&mut self, mut operands: Vec<Option<Raw<'static>>>) {
        operands.clear();
        self.operands = operands;
    }

    /// Applies `list` to at least one value, all of one type.
    pub(crate) fn list(&mut self, items: &[Option<Raw<'_>>], caller: Caller) -> Option<u32> {
        let Some(first) = items.first() else {
            let message = "the element type of an empty list is unknown".to_owned();
            self.fail("list", message, Some("use g.empty_list(type)".to_owned()), &[], caller);
            return None;
        };
        let Raw::Value(_, element) = (*first)? else { unreachable!("lists collect values only") };
        for (place, item) in items.iter().enumerate() {
            if let Raw::Value(_, ty) = (*item)?
                && ty != element
            {
                let (expected, found) = (self.data.ty(element), self.data.ty(ty));
                let message = format!("element {place} must be {expected} like the first, found {found}");
                self.fail("list", message, None, items, caller);
                return None;
            }
        }
        let sig = self.op_sig(&Op::List, &[element], &[], items, caller)?;
        self.append_raw(sig, items, caller)
    }

    /// Applies `append` to a list and an item. A cell, where only the graph knows what a list port holds, gets a whole list.
    pub(crate) fn append_item(&mut self, operands: &[Option<Raw<'_>>], caller: Caller) -> Option<u32> {
        if self.tracing.is_none() {
            return self.apply(Op::Append, operands, &[], caller);
        }
        let (Raw::Value(list, _), Raw::Value(..)) = (operands[0]?, operands[1]?) else { return None };
        let node = self.data.arena.producer(list);
        if self.data.signature(node).callee != Callee::Op(Op::List) {
            let message = format!("a cell appends only to its own lists, found {}", self.data.type_of(list));
            let help = "append in the graph, where it calls the cell";
            self.fail("append", message, Some(help.to_owned()), operands, caller);
            return None;
        }
        let items = self.data.arena.operands(node).iter().filter_map(|item| item.as_value());
        let items = items.map(|item| Some(Raw::Value(item, self.data.arena.type_of(item))));
        let items: Vec<_> = items.chain([operands[1]]).collect();
        self.list_of(self.data.type_of(list).element(), &items, caller)
    }

    /// The number of items of a list. While a cell is traced, the length of a list port is unknown.
    pub(crate) fn list_len(&mut self, list: ValueId) -> Option<u32> {
        self.list_lengths.of(&self.data.arena, self.data.sigs.items(), list)
    }

    /// Applies `list` to any number of values of the given type.
    pub(crate) fn list_of(
        &mut self,
        element: Type,
        items: &[Option<Raw<'_>>],
        caller: Caller,
    ) -> Option<u32> {
        let Some(first) = items.first() else { return self.empty_list(element, caller) };
        if let Raw::Value(_, ty) = (*first)?
            && self.data.ty(ty) != element
        {
            let message = format!("the items must be {element}, found {}", self.data.ty(ty));
            self.fail("list", message, Some("name the type of the items".to_owned()), items, caller);
            return None;
        }
        self.list(items, caller)
    }

    /// Applies `list` to no value.
    pub(crate) fn empty_list(&mut self, element: Type, caller: Caller) -> Option<u32> {
        let element = self.data.types.intern(element);
        let sig = self.op_sig(&Op::List, &[element], &[], &[], caller)?;
        self.append_raw(sig, &[], caller)
    }
}
