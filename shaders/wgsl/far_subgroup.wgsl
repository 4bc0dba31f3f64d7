// Pairs of lanes eight apart, for subgroups of sixteen.

fn far(row: Row, mine: f32) -> Pair {
    return near(row, mine, 8u);
}
