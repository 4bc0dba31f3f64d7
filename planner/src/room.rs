//! Lists that are written by number: longer than what is in them, so that their writer need not look for room at every step.

/// Makes the list at least so long: as long as its memory reaches, or twice as long as it was.
#[inline]
pub(crate) fn make_room<T: Copy + Default>(items: &mut Vec<T>, least: usize) {
    if items.len() < least {
        lengthen(items, least);
    }
}

#[cold]
fn lengthen<T: Copy + Default>(items: &mut Vec<T>, least: usize) {
    let room = items.capacity();
    let longer = if room >= least { room } else { least.max(2 * items.len()) };
    items.resize(longer, T::default());
}
