// The tree that joins the sixteen lanes of a row, by subgroup operations. Both lanes of a pair join the lower value
// with the upper one, so all lanes end with the bits of the tree.

struct Pair {
    low: f32,
    high: f32,
}

// The values of a lane and of the lane `width` away in the same subgroup, ordered by lane.
fn near(row: Row, mine: f32, width: u32) -> Pair {
    let other = subgroupShuffleXor(mine, width);
    let upper = (row.v & width) != 0u;
    return Pair(select(mine, other, upper), select(other, mine, upper));
}

fn joined_sum(row: Row, mine: f32) -> f32 {
    let eight = far(row, mine);
    let four = near(row, eight.low + eight.high, 4u);
    let two = near(row, four.low + four.high, 2u);
    let one = near(row, two.low + two.high, 1u);
    return one.low + one.high;
}

fn joined_max(row: Row, mine: f32) -> f32 {
    let eight = far(row, mine);
    let four = near(row, op_max(eight.low, eight.high), 4u);
    let two = near(row, op_max(four.low, four.high), 2u);
    let one = near(row, op_max(two.low, two.high), 1u);
    return op_max(one.low, one.high);
}

fn joined_min(row: Row, mine: f32) -> f32 {
    let eight = far(row, mine);
    let four = near(row, op_min(eight.low, eight.high), 4u);
    let two = near(row, op_min(four.low, four.high), 2u);
    let one = near(row, op_min(two.low, two.high), 1u);
    return op_min(one.low, one.high);
}
