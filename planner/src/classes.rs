//! Classes of results: what [`storage`](crate::storage) puts into one field.

use autobatch_ir::Type;
use autobatch_ir::hash::split_mix;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::FieldId;

const NONE: u32 = u32::MAX;

/// A class of results that live in one field.
#[derive(Debug)]
pub(crate) struct ClassField {
    pub(crate) ty: Type,
    /// Its field, once it has one.
    pub(crate) field: FieldId,
    /// Signatures and places of their results, ascending.
    pub(crate) makers: Vec<(SigId, u32)>,
}

impl ClassField {
    /// Whether it has a field.
    pub(crate) fn is_placed(&self) -> bool {
        self.field != FieldId(NONE)
    }

    /// Whether no signature makes it twice.
    pub(crate) fn once_each(&self) -> bool {
        self.makers.windows(2).all(|pair| pair[0].0 != pair[1].0)
    }

    /// Whether the same signatures make both.
    pub(crate) fn same_makers(&self, other: &Self) -> bool {
        self.makers.iter().map(|maker| maker.0).eq(other.makers.iter().map(|maker| maker.0))
    }

    /// Equal where the makers are the same.
    fn makers_hash(&self) -> u64 {
        let mut state = 0;
        self.makers.iter().fold(0, |hash, maker| {
            state = hash ^ maker.0.index() as u64;
            split_mix(&mut state)
        })
    }
}

/// Chains of classes that may have the same makers, so that nobody compares each with each. Memory is kept.
#[derive(Debug, Default)]
pub(crate) struct Alike {
    sorted: Vec<(u64, u32)>,
    /// Per class the next one alike, or [`NONE`].
    next: Vec<u32>,
}

impl Alike {
    /// The classes behind one that may have its makers, ascending.
    pub(crate) fn after(&self, number: usize) -> impl Iterator<Item = usize> {
        let next =
            |&number: &usize| Some(self.next[number]).filter(|&next| next != NONE).map(|next| next as usize);
        std::iter::successors(next(&number), next)
    }
}

/// The classes of a graph. Memory is kept from one graph to the next.
#[derive(Debug, Default)]
pub(crate) struct ClassFields {
    /// Those of this graph, then memory of more.
    items: Vec<ClassField>,
    count: usize,
    /// Per result the class that it stands for, or [`NONE`].
    of_root: Vec<u32>,
}

impl ClassFields {
    /// No class; so many results may come to stand for one.
    pub(crate) fn clear(&mut self, results: usize) {
        self.count = 0;
        self.of_root.clear();
        self.of_root.resize(results, NONE);
    }

    /// The classes by number, in the order in which they were made.
    pub(crate) fn all(&self) -> &[ClassField] {
        &self.items[..self.count]
    }

    /// Finds which classes may have the same makers.
    pub(crate) fn alike(&self, alike: &mut Alike) {
        let Alike { sorted, next } = alike;
        sorted.clear();
        sorted.extend(self.all().iter().zip(0..).map(|(class, number)| (class.makers_hash(), number)));
        sorted.sort_unstable();
        next.clear();
        next.resize(sorted.len(), NONE);
        for pair in sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            next[pair[0].1 as usize] = pair[1].1;
        }
    }

    /// A class by its number.
    pub(crate) fn nth(&mut self, number: usize) -> &mut ClassField {
        &mut self.items[number]
    }

    /// The class that a result stands for.
    pub(crate) fn of_root(&self, root: u32) -> Option<&ClassField> {
        self.items.get(self.of_root[root as usize] as usize)
    }

    /// The same; a class without makers if it stood for none.
    pub(crate) fn of_root_or_new(&mut self, root: u32, ty: Type) -> &mut ClassField {
        let number = &mut self.of_root[root as usize];
        if *number == NONE {
            *number = self.count as u32;
            self.count += 1;
            let field = FieldId(NONE);
            match self.items.get_mut(*number as usize) {
                Some(spare) => {
                    spare.makers.clear();
                    (spare.ty, spare.field) = (ty, field);
                }
                None => self.items.push(ClassField { ty, field, makers: Vec::new() }),
            }
        }
        &mut self.items[*number as usize]
    }
}
