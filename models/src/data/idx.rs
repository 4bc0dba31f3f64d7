//! Images and labels in the IDX format of the handwritten digits.
//!
//! Big-endian 32-bit header fields precede the bytes. Images: magic 2051, count, rows, columns, then
//! pixels 0..255 row by row. Labels: magic 2049, count, then one byte each. The sizes in the
//! header must match the file's length exactly, so a header cannot claim more memory than the file has.

use std::path::Path;

use super::error::{DataError, Place};
use super::text::read_with;

const IMAGES_MAGIC: u32 = 2051;
const LABELS_MAGIC: u32 = 2049;

/// Images of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// Pixels from top to bottom.
    pub rows: usize,
    /// Pixels from left to right.
    pub columns: usize,
    /// The number of images.
    pub count: usize,
    /// All pixels, image by image and row by row; 0 is background. The length is `count · rows · columns`.
    pub pixels: Vec<u8>,
}

impl Images {
    /// Returns the pixels of an image if the position is valid.
    pub fn image(&self, index: usize) -> Option<&[u8]> {
        (index < self.count).then(|| {
            let size = self.rows * self.columns;
            &self.pixels[index * size..(index + 1) * size]
        })
    }

    /// Returns the pixels of an image, scaled to 0..1.
    pub fn floats(&self, index: usize) -> Option<Vec<f32>> {
        let image = self.image(index)?;
        Some(image.iter().map(|&pixel| f32::from(pixel) / 255.0).collect())
    }
}

/// Images with one label each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// The images.
    pub images: Images,
    /// The labels, one per image.
    pub labels: Vec<u8>,
}

/// Reads the header fields of a file. Returns them with the body.
fn header<'a, const N: usize>(
    bytes: &'a [u8],
    file: &str,
    magic: u32,
) -> Result<([u32; N], &'a [u8]), DataError> {
    let length = 4 * (N + 1);
    if bytes.len() < length {
        let expected = format!("a header of {length} bytes");
        return Err(DataError::in_file(file, expected, format!("{} bytes", bytes.len())));
    }
    let (head, body) = bytes.split_at(length);
    let field = |index: usize| {
        u32::from_be_bytes([head[4 * index], head[4 * index + 1], head[4 * index + 2], head[4 * index + 3]])
    };
    if field(0) != magic {
        return Err(DataError::at(
            file,
            Place::Byte(0),
            format!("magic number {magic}"),
            field(0).to_string(),
        ));
    }
    Ok((std::array::from_fn(|index| field(index + 1)), body))
}

/// Checks that the product of `sizes` is the length of the body.
fn check_length(sizes: &[u32], body: &[u8], file: &str, start: usize) -> Result<(), DataError> {
    let product = sizes.iter().try_fold(1_u64, |product, &size| product.checked_mul(u64::from(size)));
    if product == Some(body.len() as u64) {
        return Ok(());
    }
    let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
    let expected = format!("{} bytes of data", sizes.join(" × "));
    Err(DataError::at(file, Place::Byte(start), expected, format!("{} bytes", body.len())))
}

/// Reads the images of a file's content.
pub fn parse_images(content: impl AsRef<[u8]>, file: &str) -> Result<Images, DataError> {
    let (sizes @ [count, rows, columns], body) = header::<3>(content.as_ref(), file, IMAGES_MAGIC)?;
    check_length(&sizes, body, file, 16)?;
    // An empty body does not bound the count: 0 rows allow any number of images.
    if body.is_empty() && count != 0 {
        let expected = "at least one pixel per image";
        return Err(DataError::at(file, Place::Byte(4), expected, format!("{count} × {rows} × {columns}")));
    }
    Ok(Images {
        rows: rows as usize,
        columns: columns as usize,
        count: count as usize,
        pixels: body.to_vec(),
    })
}

/// Reads the labels of a file's content.
pub fn parse_labels(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<u8>, DataError> {
    let ([count], body) = header::<1>(content.as_ref(), file, LABELS_MAGIC)?;
    check_length(&[count], body, file, 8)?;
    Ok(body.to_vec())
}

/// Reads a file of images.
pub fn read_images(path: impl AsRef<Path>) -> Result<Images, DataError> {
    read_with(path.as_ref(), |bytes, file| parse_images(bytes, file))
}

/// Reads a file of labels.
pub fn read_labels(path: impl AsRef<Path>) -> Result<Vec<u8>, DataError> {
    read_with(path.as_ref(), |bytes, file| parse_labels(bytes, file))
}

/// Reads `images-idx3-ubyte` and `labels-idx1-ubyte` of a folder. Every image must have a digit 0..9 as its
/// label.
pub fn read(folder: impl AsRef<Path>) -> Result<Labelled, DataError> {
    let folder = folder.as_ref();
    let images = read_images(folder.join("images-idx3-ubyte"))?;
    let path = folder.join("labels-idx1-ubyte");
    let labels = read_labels(&path)?;
    pair(images, labels, &path.display().to_string())
}

/// Combines images and labels; `file` names the labels in messages.
pub fn pair(images: Images, labels: Vec<u8>, file: &str) -> Result<Labelled, DataError> {
    if labels.len() != images.count {
        let expected = format!("{} labels, one per image", images.count);
        return Err(DataError::in_file(file, expected, labels.len().to_string()));
    }
    if let Some(at) = labels.iter().position(|&label| label > 9) {
        let found = labels[at].to_string();
        return Err(DataError::at(file, Place::Byte(8 + at), "a digit 0..9", found));
    }
    Ok(Labelled { images, labels })
}

/// Returns the content of a file with these images.
pub fn write_images(images: &Images) -> Vec<u8> {
    let sizes = [images.count, images.rows, images.columns].map(|size| size as u32);
    let mut bytes = IMAGES_MAGIC.to_be_bytes().to_vec();
    bytes.extend(sizes.into_iter().flat_map(u32::to_be_bytes));
    bytes.extend(&images.pixels);
    bytes
}

/// Returns the content of a file with these labels.
pub fn write_labels(labels: &[u8]) -> Vec<u8> {
    let mut bytes = LABELS_MAGIC.to_be_bytes().to_vec();
    bytes.extend((labels.len() as u32).to_be_bytes());
    bytes.extend(labels);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mutation::survives;

    fn sample() -> Images {
        Images { rows: 2, columns: 3, count: 2, pixels: (0..12).map(|x| x * 23).collect() }
    }

    #[test]
    fn images_and_labels_are_read_and_written_back() {
        let images = sample();
        assert_eq!(parse_images(write_images(&images), "f").unwrap(), images);
        assert_eq!(images.image(1).unwrap(), [138, 161, 184, 207, 230, 253]);
        assert_eq!((images.image(2), images.floats(0).unwrap()[0]), (None, 0.0));
        let labels = vec![3, 9];
        assert_eq!(parse_labels(write_labels(&labels), "f").unwrap(), labels);
        assert_eq!(pair(images, labels, "f").unwrap().labels, [3, 9]);
    }

    #[test]
    fn errors_name_the_place_of_the_mistake() {
        let good = write_images(&sample());
        let patched = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        let huge = [&IMAGES_MAGIC.to_be_bytes()[..], &[0xff; 12]].concat();
        let no_pixels = [&IMAGES_MAGIC.to_be_bytes()[..], &[0xff; 4], &[0; 8]].concat();
        let bad = [good[..10].to_vec(), patched(3, 0), patched(7, 3), good[..20].to_vec(), huge, no_pixels];
        let mut errors: Vec<_> =
            bad.iter().map(|bytes| parse_images(bytes, "f").unwrap_err().to_string()).collect();
        errors.push(parse_labels([0, 0, 8, 1, 0, 0, 0, 9, 1], "l").unwrap_err().to_string());
        errors.push(pair(sample(), vec![1], "l").unwrap_err().to_string());
        errors.push(pair(sample(), vec![1, 10], "l").unwrap_err().to_string());
        insta::assert_snapshot!(errors.join("\n"), @"
        f: expected a header of 16 bytes, found 10 bytes
        f: byte 0: expected magic number 2051, found 2048
        f: byte 16: expected 3 × 2 × 3 bytes of data, found 12 bytes
        f: byte 16: expected 2 × 2 × 3 bytes of data, found 4 bytes
        f: byte 16: expected 4294967295 × 4294967295 × 4294967295 bytes of data, found 0 bytes
        f: byte 4: expected at least one pixel per image, found 4294967295 × 0 × 0
        l: byte 8: expected 9 bytes of data, found 1 bytes
        l: expected 2 labels, one per image, found 1
        l: byte 9: expected a digit 0..9, found 10
        ");
    }

    #[test]
    fn damaged_content_never_panics() {
        survives(&write_images(&sample()), |bytes| {
            if let Ok(images) = parse_images(bytes, "f") {
                assert_eq!(write_images(&images), bytes);
                assert!(images.count <= bytes.len());
            }
        });
        survives(&write_labels(&[1, 2, 3]), |bytes| {
            if let Ok(labels) = parse_labels(bytes, "f") {
                assert_eq!(write_labels(&labels), bytes);
            }
        });
    }
}
