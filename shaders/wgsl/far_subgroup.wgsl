// Pairs of lanes eight apart, where a subgroup has sixteen.

fn far(row: Row, mine: f32) -> Pair {
    return near(row, mine, 8u);
}
