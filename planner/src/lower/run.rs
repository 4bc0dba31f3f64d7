//! Runs of rows: steady progressions and tables.

/// The rows of an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// Lane `i` has `start + i * stride`.
    Steady { start: u32, stride: u32 },
    /// The rows stand in the plan's tables from here on.
    Table(u32),
}

/// Recognises `start + lane * stride`. Other rows are appended to the tables. A single lane is a range.
pub(crate) fn progression(tables: &mut Vec<u32>, rows: impl Iterator<Item = u32> + Clone) -> Run {
    steady(rows.clone()).unwrap_or_else(|| {
        let at = tables.len() as u32;
        tables.extend(rows);
        Run::Table(at)
    })
}

/// The run of the rows at the end of the tables. A steady run leaves the tables.
pub(crate) fn run_at_the_end(tables: &mut Vec<u32>, first: usize) -> Run {
    match steady(tables[first..].iter().copied()) {
        Some(run) => {
            tables.truncate(first);
            run
        }
        None => Run::Table(first as u32),
    }
}

#[inline]
fn steady(mut rows: impl Iterator<Item = u32>) -> Option<Run> {
    let start = rows.next().unwrap_or(0);
    let Some(second) = rows.next() else { return Some(Run::Steady { start, stride: 1 }) };
    let stride = second.checked_sub(start)?;
    let mut expected = u64::from(second);
    let steady = rows.all(|row| {
        expected += u64::from(stride);
        u64::from(row) == expected
    });
    steady.then_some(Run::Steady { start, stride })
}
