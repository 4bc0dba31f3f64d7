//! The binary format of types, signatures and sites: the tables that modules start and graphs extend.

use super::record::{coded, read_all, read_op, write_all, write_op};
use super::{Blob, LoadError, Text, Words};
use crate::graph::{ParamArg, Signature, Signatures, Site, Sites};
use crate::id::{MAX_INDEX, ParamId, TypeId};
use crate::types::{Type, Types};
use serde::{Deserialize, Serialize};

/// Entries that extend a table.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct RawTables<'a> {
    /// File names of sites, concatenated.
    #[serde(borrow)]
    text: Blob<'a>,
    types: Blob<'a>,
    sites: Blob<'a>,
    /// Callees with attributes, encoded in sequence.
    callees: Blob<'a>,
    /// For each signature four counts, then operands, parameter arguments, their types, results.
    signatures: Blob<'a>,
}

/// A flag in the word of a parameter argument: the argument is a port.
const PORT: u32 = 1 << 31;

coded! { struct Site, 3 words: file, line, column }

impl RawTables<'static> {
    /// Encodes the given entries of the tables.
    pub(super) fn of(types: &[Type], sigs: &[Signature], sites: &[Site]) -> Self {
        let mut text = String::new();
        let (mut callees, mut words) = (Vec::new(), Vec::new());
        for Signature { callee, operands, params, param_types, results } in sigs {
            write_op(callee, &mut callees);
            words.extend([operands, param_types, results].map(|ids| ids.len() as u32));
            words.push(params.len() as u32);
            let ids = operands.iter().chain(param_types).chain(results);
            words.extend(ids.map(|id| id.index() as u32));
            words.extend(params.iter().map(|arg| match arg {
                ParamArg::Module(id) => id.index() as u32,
                ParamArg::Port(port) => PORT | port,
            }));
        }
        let (callees, signatures) = (Blob::bytes(callees), Blob::words(&words));
        let (types, sites) = (write_all(types, &mut text), write_all(sites, &mut text));
        Self { text: Blob::bytes(text.into_bytes()), types, sites, callees, signatures }
    }
}

impl RawTables<'_> {
    /// Appends the entries to tables.
    ///
    /// # Errors
    /// If an entry is malformed, appears twice, or names a missing entry.
    pub(super) fn append(
        &self,
        types: &mut Types,
        sigs: &mut Signatures,
        sites: &mut Sites,
    ) -> Result<(), LoadError> {
        let mut text = Text::new(&self.text)?;
        let more: Vec<Type> = read_all(&self.types, "types", &mut text)?;
        check_room(types.items().len(), more.len())?;
        types.reserve(more.len());
        for ty in more {
            let next = types.items().len();
            if types.intern(ty).index() != next {
                return Err(LoadError::malformed(format!("the type {ty} appears twice")));
            }
        }
        let more = read_all(&self.sites, "sites", &mut text)?;
        check_room(sites.items().len(), more.len())?;
        sites.extend_exact(more);
        text.end()?;
        self.append_signatures(types, sigs)
    }

    fn append_signatures(&self, types: &Types, sigs: &mut Signatures) -> Result<(), LoadError> {
        let mut words = self.signatures.reader("signatures")?;
        let count = count_signatures(words)?;
        check_room(sigs.items().len(), count)?;
        sigs.reserve(count);
        let mut callees: &[u8] = &self.callees.0;
        let type_id =
            |word: u32| TypeId::try_new(word as usize).filter(|id| id.index() < types.items().len());
        for _ in 0..count {
            let [operands, param_types, results, params] = words.array()?;
            let mut ids = |count| words.take(count)?.members(type_id).map(Vec::into_boxed_slice);
            let signature = Signature {
                callee: read_op(&mut callees)?,
                operands: ids(operands)?,
                param_types: ids(param_types)?,
                results: ids(results)?,
                params: words.take(params)?.members(param_arg)?.into_boxed_slice(),
            };
            let next = sigs.items().len();
            if sigs.intern(signature, types).index() != next {
                return Err(LoadError::malformed(format!("signature {next} appears twice")));
            }
        }
        if callees.is_empty() { Ok(()) } else { Err(LoadError::malformed("some callees are unused")) }
    }
}

/// The number of signatures in the blob, counted before memory is allocated for them.
fn count_signatures(mut words: Words<'_>) -> Result<usize, LoadError> {
    let mut count = 0;
    while words.len() > 0 {
        let lengths: [u32; 4] = words.array()?;
        for length in lengths {
            words.take(length)?;
        }
        count += 1;
    }
    Ok(count)
}

fn param_arg(word: u32) -> Option<ParamArg> {
    if word & PORT != 0 {
        return Some(ParamArg::Port(word & !PORT));
    }
    ParamId::try_new(word as usize).map(ParamArg::Module)
}

fn check_room(known: usize, more: usize) -> Result<(), LoadError> {
    if known + more > MAX_INDEX { Err(LoadError::malformed("a table has too many entries")) } else { Ok(()) }
}
