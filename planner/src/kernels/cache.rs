//! The cache of compiled kernels and derivatives, by the content of their signature.

use super::content;
use super::{CompileOptions, Tables};
use autobatch_ir::graph::Callee;
use autobatch_ir::hash::BuildMix;
use autobatch_ir::id::{SigId, TypeId};
use autobatch_ir::types::Type;
use std::collections::HashMap;

/// Products of signatures, by a hash of what they depend on. `V` tells variants of one signature's product apart.
#[derive(Debug)]
pub(crate) struct KernelCache<V, T> {
    entries: HashMap<u64, Vec<Entry<V, T>>, BuildMix>,
}

/// A product with everything that it depends on. Types are compared in full. Passes create and drop modules, so a cell is compared
/// by its content.
#[derive(Debug)]
struct Entry<V, T> {
    /// The content of the signature, of 128 bits like a graph's structure.
    content: u128,
    callee: Callee,
    /// The types of operands, parameters and results.
    types: [Vec<Type>; 3],
    options: CompileOptions,
    variant: V,
    product: T,
}

/// The key of an entry.
struct Key<'a, V> {
    tables: Tables<'a>,
    sig: SigId,
    content: u128,
    options: CompileOptions,
    variant: &'a V,
}

impl<V, T> Default for KernelCache<V, T> {
    fn default() -> Self {
        Self { entries: HashMap::default() }
    }
}

impl<V: Clone + Eq, T: Clone> KernelCache<V, T> {
    /// The product of a signature, made if it is new.
    pub(crate) fn get_or_make<E>(
        &mut self,
        tables: Tables<'_>,
        sig: SigId,
        options: CompileOptions,
        variant: &V,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let key = Key { tables, sig, content: content::of_kernel(tables, sig), options, variant };
        let entries = self.entries.entry(key.content as u64).or_default();
        if let Some(entry) = entries.iter().find(|entry| key.matches(entry)) {
            return Ok(entry.product.clone());
        }
        let product = make()?;
        entries.push(key.entry(product.clone()));
        Ok(product)
    }
}

impl<V: Clone + Eq> Key<'_, V> {
    fn matches<T>(&self, entry: &Entry<V, T>) -> bool {
        let signature = self.tables.sigs.get(self.sig);
        let same = |ids: &[TypeId], types: &[Type]| {
            ids.iter().map(|&id| self.tables.types.get(id)).eq(types.iter().copied())
        };
        let [operands, params, results] = &entry.types;
        let same_callee = match (entry.callee, signature.callee) {
            (Callee::Op(own), Callee::Op(op)) => own == op,
            (Callee::Cell(_), Callee::Cell(_)) => true,
            _ => false,
        };
        // Parameters arrive through ports, so which ones a signature names does not matter.
        entry.content == self.content
            && entry.options == self.options
            && same_callee
            && entry.variant == *self.variant
            && same(&signature.operands, operands)
            && same(&signature.param_types, params)
            && same(&signature.results, results)
    }

    fn entry<T>(&self, product: T) -> Entry<V, T> {
        let signature = self.tables.sigs.get(self.sig);
        let types = [&signature.operands, &signature.param_types, &signature.results]
            .map(|ids| ids.iter().map(|&id| self.tables.types.get(id)).collect());
        let Self { content, options, variant, .. } = *self;
        Entry { content, callee: signature.callee, types, options, variant: variant.clone(), product }
    }
}
