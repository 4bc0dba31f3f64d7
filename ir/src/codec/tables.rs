//! The binary format of types, signatures and sites: the tables that modules start and graphs extend.

use super::{Blob, FORMAT, LoadError, Text, Words};
use crate::graph::{Callee, ParamArg, Signature, Signatures, Site, Sites};
use crate::id::{MAX_INDEX, ParamId, TypeId};
use crate::types::{DType, Shape, Type, Types};
use serde::{Deserialize, Serialize};

/// Entries that extend a table.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct RawTables<'a> {
    /// File names of sites, concatenated.
    #[serde(borrow)]
    text: Blob<'a>,
    /// Five words each: element type, rank and list flag in one; then the extents, or 0.
    types: Blob<'a>,
    /// Three words each: length of the file name, line, column.
    sites: Blob<'a>,
    /// Callees with attributes, encoded in sequence.
    callees: Blob<'a>,
    /// For each signature four counts, then operands, parameter arguments, their types, results.
    signatures: Blob<'a>,
}

/// A flag in the word of a parameter argument: the argument is a port.
const PORT: u32 = 1 << 31;

impl RawTables<'static> {
    /// Encodes the given entries of the tables.
    pub(super) fn of(types: &[Type], sigs: &[Signature], sites: &[Site]) -> Self {
        let (mut text, mut lines) = (String::new(), Vec::new());
        for Site { file, line, column } in sites {
            text.push_str(file);
            lines.extend([file.len() as u32, *line, *column]);
        }
        let (mut callees, mut words) = (Vec::new(), Vec::new());
        for Signature { callee, operands, params, param_types, results } in sigs {
            bincode::serde::encode_into_std_write(callee, &mut callees, FORMAT)
                .expect("callees are plain and a vector takes all of them");
            words.extend([operands, param_types, results].map(|ids| ids.len() as u32));
            words.push(params.len() as u32);
            let ids = operands.iter().chain(param_types).chain(results);
            words.extend(ids.map(|id| id.index() as u32));
            words.extend(params.iter().map(|arg| match arg {
                ParamArg::Module(id) => id.index() as u32,
                ParamArg::Port(port) => PORT | port,
            }));
        }
        let types: Vec<u32> = types.iter().flat_map(|ty| type_words(*ty)).collect();
        let own = |bytes: Vec<u8>| Blob(bytes.into());
        Self {
            text: own(text.into_bytes()),
            types: Blob::words(&types),
            sites: Blob::words(&lines),
            callees: own(callees),
            signatures: Blob::words(&words),
        }
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
        self.append_types(types)?;
        self.append_sites(sites)?;
        self.append_signatures(types, sigs)
    }

    fn append_types(&self, types: &mut Types) -> Result<(), LoadError> {
        let mut words = self.types.reader("types")?;
        let count = words.records(5)?;
        check_room(types.items().len(), count)?;
        types.reserve(count);
        for _ in 0..count {
            let ty = read_type(words.array()?)?;
            let next = types.items().len();
            if types.intern(ty).index() != next {
                return Err(LoadError::malformed(format!("the type {ty} appears twice")));
            }
        }
        Ok(())
    }

    fn append_sites(&self, sites: &mut Sites) -> Result<(), LoadError> {
        let (mut words, mut text) = (self.sites.reader("sites")?, Text::new(&self.text)?);
        let count = words.records(3)?;
        check_room(sites.items().len(), count)?;
        let mut read = Vec::with_capacity(count);
        for _ in 0..count {
            let [file, line, column] = words.array()?;
            read.push(Site { file: text.take(file)?, line, column });
        }
        sites.extend_exact(read);
        text.end()
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
                callee: read_callee(&mut callees)?,
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

fn read_callee(callees: &mut &[u8]) -> Result<Callee, LoadError> {
    // A callee takes a few dozen bytes; a forged one must not take more.
    let format = FORMAT.with_limit::<256>();
    let (callee, used) = bincode::serde::borrow_decode_from_slice(callees, format)
        .map_err(|error| LoadError::malformed(format!("callee: {error}")))?;
    *callees = &callees[used..];
    Ok(callee)
}

fn param_arg(word: u32) -> Option<ParamArg> {
    if word & PORT != 0 {
        return Some(ParamArg::Port(word & !PORT));
    }
    ParamId::try_new(word as usize).map(ParamArg::Module)
}

pub(super) fn type_words(ty: Type) -> [u32; 5] {
    let head = ty.dtype as u32 | (ty.shape.rank() as u32) << 8 | u32::from(ty.is_list) << 16;
    let mut words = [head, 0, 0, 0, 0];
    words[1..][..ty.shape.rank()].copy_from_slice(ty.shape.dims());
    words
}

pub(super) fn read_type(words: [u32; 5]) -> Result<Type, LoadError> {
    let head = words[0];
    let (rank, is_list) = (((head >> 8) & 0xff) as usize, head >> 16 == 1);
    let dims = words[1..].get(..rank);
    let (Some(&dtype), Some(dims)) = (DType::ALL.get((head & 0xff) as usize), dims) else {
        return Err(LoadError::malformed(format!("{head:#x} is not a type")));
    };
    let shape = Shape::new(dims).map_err(|error| LoadError::malformed(error.to_string()))?;
    let ty = Type { dtype, shape, is_list };
    // Reject stray bits: each type has exactly one encoding.
    if type_words(ty) != words {
        return Err(LoadError::malformed(format!("{head:#x} is not a type")));
    }
    Ok(ty)
}

fn check_room(known: usize, more: usize) -> Result<(), LoadError> {
    if known + more > MAX_INDEX { Err(LoadError::malformed("a table has too many entries")) } else { Ok(()) }
}
