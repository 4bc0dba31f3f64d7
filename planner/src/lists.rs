//! Lists that are written by index: their length is a capacity, and the writer keeps the end.

/// Makes the list at least `least` long. The list fills its capacity, or doubles.
#[inline]
pub(crate) fn ensure_len<T: Copy + Default>(items: &mut Vec<T>, least: usize) {
    if items.len() < least {
        lengthen(items, least);
    }
}

#[cold]
fn lengthen<T: Copy + Default>(items: &mut Vec<T>, least: usize) {
    let length = if items.capacity() >= least { items.capacity() } else { least.max(2 * items.len()) };
    items.resize(length, T::default());
}
