// Pairs of lanes eight apart, for subgroups of eight.

fn far(row: Row, mine: f32) -> Pair {
    lanes[row.local] = mine;
    workgroupBarrier();
    let place = row.local - row.v + row.v % 8u;
    let pair = Pair(lanes[place], lanes[place + 8u]);
    workgroupBarrier();
    return pair;
}
