// Lists. A list in a record is five words: TABLED, base, offsets, items, width for rows that tables
// name; or length, and where in the record the places of the values begin, for values of the kernel.

fn list_len(at: u32, lane: u32) -> u32 {
    if r(at) == TABLED {
        let offsets = r(at + 2u) + lane;
        return tables[offsets + 1u] - tables[offsets];
    }
    return r(at);
}

fn list_item(at: u32, lane: u32, number: u32) -> u32 {
    if r(at) == TABLED {
        let item = r(at + 3u) + tables[r(at + 2u) + lane] + number;
        return r(at + 1u) + tables[item] * r(at + 4u);
    }
    return row_of(r(at + 1u) + 4u * number, lane);
}

// How many values the lanes before this one hold, from the first lane of the dispatch on.
fn list_before(at: u32, lane: u32) -> u32 {
    if r(at) == TABLED {
        let offsets = r(at + 2u);
        return tables[offsets + lane] - tables[offsets + play.first];
    }
    return (lane - play.first) * r(at);
}
