//! Storage: which field of which slab holds the results of each signature.
//!
//! *Needs* the clusters of a graph. *Ensures* that all values which can arrive at one operand place
//! of one signature live in one field, so that a step names one field an operand, whatever made the
//! rows: results that meet at an operand are united. Results that always come together (the `h` and
//! `c` of a cell) become fields of one slab and share a row number.
//!
//! Constants unite nothing. The zeros from which a recurrence starts meet both `h` and `c`; were they
//! in one field, `h` and `c` would be too, with rows of their own in turns, and whoever reads all `h`
//! would read every other row. So a constant has a *home* in every field that it is read in: it is
//! brought in once more, and costs a row instead of a layout.
//!
//! *Cost.* One bit set an operand, and one union-find operation for each pair of a place and a result
//! that met there; beyond the first 64 results of all signatures, one such operation an operand.

use crate::classes::{Alike, ClassFields};
use crate::cluster::Clusters;
use crate::lower::numbered;
use autobatch_ir::Type;
use autobatch_ir::graph::{Callee, GraphData, Op};
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{Field, FieldId, Slab, SlabId, SlabKind};

const NONE: u32 = u32::MAX;

/// A block of rows that each step of a signature writes: one row a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) slab: SlabId,
    /// Tells several results of one signature in one field apart.
    pub(crate) turn: u32,
}

/// Where the results of a signature go. Its memory is kept when the signature is another.
#[derive(Debug, Default)]
pub(crate) struct SigStorage {
    /// The blocks that a step writes.
    pub(crate) blocks: Vec<Block>,
    /// Per result its field and its block.
    pub(crate) results: Vec<(FieldId, u32)>,
    /// Where else a constant is brought in, a slab at a time: more fields of its first block, then
    /// those of its others.
    pub(crate) homes: Vec<(FieldId, u32)>,
}

impl SigStorage {
    fn clear(&mut self) {
        self.blocks.clear();
        self.results.clear();
        self.homes.clear();
    }

    /// How many batches bring a source in: one for each of its blocks. Jobs have one batch for all.
    pub(crate) fn source_batches(&self) -> u32 {
        if self.homes.is_empty() { 1 } else { self.blocks.len() as u32 }
    }

    /// The blocks that a batch writes: all, or one of a constant with several homes.
    pub(crate) fn blocks_of(&self, home: u32) -> &[Block] {
        if self.homes.is_empty() { &self.blocks } else { &self.blocks[home as usize..=home as usize] }
    }

    /// The fields of one of the blocks of a constant with several homes.
    pub(crate) fn fields_of(&self, home: u32) -> impl Iterator<Item = FieldId> {
        let all = self.results.iter().chain(&self.homes);
        all.filter(move |&&(_, block)| block == home).map(|&(field, _)| field)
    }
}

/// Slabs and fields for a graph.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    pub(crate) slabs: Vec<Slab>,
    /// Without names: those of a slab are called in the order in which they come.
    pub(crate) fields: Vec<Field>,
    /// Per signature id, and more where an earlier graph had more.
    pub(crate) sigs: Vec<SigStorage>,
    classes: Vec<u32>,
    result_base: Vec<u32>,
    /// Per operand place of all signatures, which of the first 64 results met there.
    met: Vec<u64>,
    /// Per operand place the first of the other results that met there.
    first_seen: Vec<u32>,
    /// Per result whether it is a constant that may have several homes; of the first 64 as bits.
    constant: Vec<bool>,
    constants: u64,
    /// Places and the constants that met there, of those beyond the first 64 results.
    visits: Vec<(u32, u32)>,
    place_base: Vec<u32>,
    place_fields: Vec<FieldId>,
    /// Homes of constants as results and classes.
    homes: Vec<(u32, u32)>,
    /// Constants that have a class.
    housed: Vec<u32>,
    /// The signatures of jobs and sources, ascending.
    used: Vec<SigId>,
    class_fields: ClassFields,
    /// The classes that become one slab.
    bundle: Vec<usize>,
    /// Which classes may become one slab.
    alike: Alike,
}

impl Storage {
    /// Begins anew; memory is kept. [`meet`](Self::meet) follows.
    ///
    /// `split` says whether constants may have several homes. Whoever wants the gradient of a constant
    /// wants it in one.
    pub(crate) fn begin(&mut self, graph: &GraphData, split: bool) {
        let (mut results, mut operands) = (0, 0);
        self.result_base.clear();
        self.place_base.clear();
        self.constant.clear();
        for signature in graph.sigs.items() {
            self.result_base.push(results);
            self.place_base.push(operands as u32);
            results += signature.results.len() as u32;
            operands += signature.operands.len();
            let constant = split && matches!(signature.callee, Callee::Op(Op::Fill { .. }));
            self.constant.resize(results as usize, constant);
        }
        let first = self.constant.iter().take(64).enumerate();
        self.constants = first.fold(0, |bits, (result, &constant)| bits | u64::from(constant) << result);
        self.visits.clear();
        self.classes.clear();
        self.classes.extend(0..results);
        self.met.clear();
        self.met.resize(operands, 0);
        self.first_seen.clear();
        self.first_seen.resize(operands, NONE);
    }

    /// Which of the first 64 results are known to arrive at so many operand places from `first` on.
    #[inline]
    pub(crate) fn known(&self, first: usize, places: usize) -> &[u64] {
        &self.met[first..first + places]
    }

    /// A result, numbered among those of all signatures, arrives at an operand place, numbered alike.
    #[inline]
    pub(crate) fn meet(&mut self, place: usize, result: u32) {
        // Nearly all meetings are known already, so the bit is looked at before it is set.
        if result >= 64 || self.met[place] >> result & 1 == 0 {
            self.meet_anew(place, result);
        }
    }

    #[inline(never)]
    fn meet_anew(&mut self, place: usize, result: u32) {
        match result {
            0..64 => self.met[place] |= 1 << result,
            _ if self.constant[result as usize] => self.visit(place as u32, result),
            _ => self.meet_one(place, result),
        }
    }

    fn visit(&mut self, place: u32, constant: u32) {
        if self.visits.last() != Some(&(place, constant)) {
            self.visits.push((place, constant));
        }
    }

    /// Decides, after all meetings.
    pub(crate) fn finish(&mut self, graph: &GraphData, clusters: &Clusters) {
        for place in 0..self.met.len() {
            let mut met = self.met[place];
            while met != 0 {
                let result = met.trailing_zeros();
                match self.constants >> result & 1 {
                    0 => self.meet_one(place, result),
                    _ => self.visit(place as u32, result),
                }
                met &= met - 1;
            }
        }
        self.house_constants();
        self.note_used(clusters);
        self.find_classes(graph);
        self.group(graph);
        self.note_place_fields();
    }

    /// Decides for plans that grow: a field for each type, those that are there first.
    ///
    /// What meets later is not known yet, and rows do not move; but an operand has one type, so
    /// whatever meets there will be in one field.
    pub(crate) fn finish_by_type(
        &mut self,
        graph: &GraphData,
        clusters: &Clusters,
        known: (&[Slab], &[Field]),
    ) {
        self.slabs.clear();
        self.slabs.extend_from_slice(known.0);
        self.fields.clear();
        self.fields.extend(known.1.iter().map(|field| nameless(field.slab, field.ty)));
        self.clear_sigs(graph);
        self.note_used(clusters);
        for number in 0..self.used.len() {
            let sig = self.used[number];
            for &ty in &graph.sigs.get(sig).results {
                let field = self.field_of_type(graph.ty(ty));
                let slab = self.fields[field.index()].slab;
                let storage = &mut self.sigs[sig.index()];
                let turn = storage.blocks.iter().filter(|block| block.slab == slab).count() as u32;
                storage.results.push((field, storage.blocks.len() as u32));
                storage.blocks.push(Block { slab, turn });
            }
        }
        self.place_fields.clear();
        for signature in graph.sigs.items() {
            for &ty in &signature.operands {
                let ty = Type { is_list: false, ..graph.ty(ty) };
                let known = self.fields.iter().position(|field| field.ty == ty);
                self.place_fields.push(known.map_or(FieldId(NONE), |field| FieldId(field as u32)));
            }
        }
    }

    fn field_of_type(&mut self, ty: Type) -> FieldId {
        let known = self.fields.iter().position(|field| field.ty == ty);
        let number = known.unwrap_or_else(|| {
            let (slab, field) = (SlabId(self.slabs.len() as u32), self.fields.len() as u32);
            self.fields.push(nameless(slab, ty));
            self.slabs.push(Slab { kind: SlabKind::Value, rows: 0, fields: field..field + 1 });
            field as usize
        });
        FieldId(number as u32)
    }

    /// The field that an operand place reads, if any value arrives there.
    pub(crate) fn place_field(&self, sig: SigId, place: usize) -> FieldId {
        self.place_fields[self.place_base[sig.index()] as usize + place]
    }

    /// Gives every constant a class: that of the first place where it meets others, or the one it
    /// shares with the constants that it meets alone; and homes in the classes of all other places.
    fn house_constants(&mut self) {
        self.visits.sort_unstable();
        self.visits.dedup();
        let mut visits = std::mem::take(&mut self.visits);
        let mut housed = std::mem::take(&mut self.housed);
        housed.clear();
        visits.retain(|&(place, constant)| {
            let first = self.first_seen[place as usize];
            // Where only constants meet, the first that comes stands for the others.
            let mixed = first != NONE && !self.constant[first as usize];
            if !mixed || !housed.contains(&constant) {
                housed.extend(mixed.then_some(constant));
                self.meet_one(place as usize, constant);
            }
            mixed
        });
        self.homes.clear();
        for &(place, constant) in &visits {
            let class = self.find(self.first_seen[place as usize]);
            if class != self.find(constant) && !self.homes.contains(&(constant, class)) {
                self.homes.push((constant, class));
            }
        }
        visits.clear();
        (self.visits, self.housed) = (visits, housed);
    }

    fn note_place_fields(&mut self) {
        self.place_fields.clear();
        self.place_fields.resize(self.met.len(), FieldId(NONE));
        for place in 0..self.met.len() {
            if self.first_seen[place] != NONE {
                let root = self.find(self.first_seen[place]);
                let class = self.class_fields.of_root(root);
                self.place_fields[place] = class.map_or(FieldId(NONE), |class| class.field);
            }
        }
    }

    fn meet_one(&mut self, at: usize, element: u32) {
        let first = self.first_seen[at];
        if first == NONE {
            self.first_seen[at] = element;
        } else if first != element {
            let (a, b) = (self.find(first), self.find(element));
            let (low, high) = (a.min(b), a.max(b));
            self.classes[high as usize] = low;
        }
    }

    fn find(&mut self, mut element: u32) -> u32 {
        while self.classes[element as usize] != element {
            let up = self.classes[self.classes[element as usize] as usize];
            self.classes[element as usize] = up;
            element = up;
        }
        element
    }

    fn clear_sigs(&mut self, graph: &GraphData) {
        let sigs = graph.sigs.items().len();
        if self.sigs.len() < sigs {
            self.sigs.resize_with(sigs, SigStorage::default);
        }
        self.sigs.iter_mut().for_each(SigStorage::clear);
    }

    fn note_used(&mut self, clusters: &Clusters) {
        self.used.clear();
        self.used.extend_from_slice(clusters.types());
        self.used.extend(clusters.sources().map(|(sig, _)| sig));
        self.used.sort_unstable();
        self.used.dedup();
    }

    /// Per used class: the signatures that make it, each as often as it does.
    fn find_classes(&mut self, graph: &GraphData) {
        let mut classes = std::mem::take(&mut self.class_fields);
        let homes = std::mem::take(&mut self.homes);
        classes.clear(self.classes.len());
        for number in 0..self.used.len() {
            let sig = self.used[number];
            for (place, &ty) in graph.sigs.get(sig).results.iter().enumerate() {
                let result = self.result_base[sig.index()] + place as u32;
                let root = self.find(result);
                let others = homes.iter().filter(|home| home.0 == result).map(|home| home.1);
                for root in std::iter::once(root).chain(others) {
                    classes.of_root_or_new(root, graph.ty(ty)).makers.push((sig, place as u32));
                }
            }
        }
        (self.class_fields, self.homes) = (classes, homes);
    }

    /// Classes with the same makers, one result each, become one slab.
    fn group(&mut self, graph: &GraphData) {
        self.slabs.clear();
        self.fields.clear();
        self.clear_sigs(graph);
        for &sig in &self.used {
            let results = graph.sigs.get(sig).results.len();
            self.sigs[sig.index()].results.resize(results, (FieldId(NONE), NONE));
        }
        let mut bundle = std::mem::take(&mut self.bundle);
        let mut alike = std::mem::take(&mut self.alike);
        self.class_fields.alike(&mut alike);
        for number in 0..self.class_fields.all().len() {
            let classes = self.class_fields.all();
            let class = &classes[number];
            if class.is_placed() {
                continue;
            }
            bundle.clear();
            bundle.push(number);
            if class.once_each() {
                let joins = |&other: &usize| {
                    let other = &classes[other];
                    !other.is_placed() && other.once_each() && other.same_makers(class)
                };
                bundle.extend(alike.after(number).filter(joins));
            }
            self.add_slab(&bundle);
        }
        (self.bundle, self.alike) = (bundle, alike);
    }

    fn add_slab(&mut self, bundle: &[usize]) {
        let Self { slabs, fields, sigs, class_fields, .. } = self;
        let slab = SlabId(slabs.len() as u32);
        let first = fields.len() as u32;
        for &member in bundle {
            let class = class_fields.nth(member);
            let field = FieldId(fields.len() as u32);
            fields.push(nameless(slab, class.ty));
            class.field = field;
            let mut previous = None;
            let mut turn = 0;
            for &(sig, place) in &class.makers {
                turn = if previous == Some(sig) { turn + 1 } else { 0 };
                previous = Some(sig);
                let storage = &mut sigs[sig.index()];
                let block = Block { slab, turn };
                // Members of a bundle that are not alone meet a signature once each, so a known block is the last.
                if storage.blocks.last() != Some(&block) {
                    storage.blocks.push(block);
                }
                let number = storage.blocks.len() - 1;
                let result = &mut storage.results[place as usize];
                match result.0 {
                    FieldId(NONE) => *result = (field, number as u32),
                    _ => storage.homes.push((field, number as u32)),
                }
            }
        }
        slabs.push(Slab { kind: SlabKind::Value, rows: 0, fields: first..fields.len() as u32 });
    }
}

fn nameless(slab: SlabId, ty: Type) -> Field {
    Field { slab, name: String::new(), ty }
}

/// What the fields of a slab are called in their order: `a`, `b`, .., `z`, `f26`, ..
pub(crate) fn field_name(number: usize) -> String {
    match u8::try_from(number) {
        Ok(letter @ 0..26) => char::from(b'a' + letter).to_string(),
        _ => numbered(b'f', number as u32),
    }
}
