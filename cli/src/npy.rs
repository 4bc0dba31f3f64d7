//! Writer for NumPy's `.npy` format, version 1.

use autobatch_ir::types::DType;

/// Magic bytes and version of the format.
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// Alignment of the data, in bytes.
const ALIGNMENT: usize = 64;

/// Encodes an array. `words` holds one word per element: the bits of a float, an integer, or 0 or 1
/// for a bool.
pub(crate) fn file(dtype: DType, extents: &[usize], words: impl Iterator<Item = u32>) -> Vec<u8> {
    let (code, bool) = match dtype {
        DType::I32 => ("<i4", false),
        DType::U32 => ("<u4", false),
        DType::Bool => ("|b1", true),
        DType::F32 | DType::F16 | DType::BF16 => ("<f4", false),
    };
    let shape: String = extents.iter().map(|extent| format!("{extent}, ")).collect();
    let mut header =
        format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
    let whole = (MAGIC.len() + 2 + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.push_str(&" ".repeat(whole - MAGIC.len() - 2 - header.len() - 1));
    header.push('\n');
    let length = u16::try_from(header.len()).expect("an array has at most five extents");
    let mut bytes = [MAGIC, &length.to_le_bytes(), header.as_bytes()].concat();
    match bool {
        true => bytes.extend(words.map(|word| u8::from(word != 0))),
        false => words.for_each(|word| bytes.extend(word.to_le_bytes())),
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_holds_type_and_extents_and_aligns_the_data() {
        let bytes = file(DType::F32, &[2, 3], (0..6).map(|x| (x as f32).to_bits()));
        assert_eq!(bytes.len(), 128 + 24);
        let header = std::str::from_utf8(&bytes[10..128]).expect("the header is ASCII");
        assert!(
            header.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }"),
            "{header}"
        );
        assert!(header.ends_with(" \n"));
        assert_eq!(bytes[128 + 20..], 5f32.to_le_bytes());
        assert_eq!(file(DType::Bool, &[2], [1, 0].into_iter())[128..], [1, 0]);
    }
}
