// The tree that joins the sixteen lanes of a row, through group memory.

fn joined_sum(row: Row, mine: f32) -> f32 {
    lanes[row.local] = mine;
    workgroupBarrier();
    for (var width = 8u; width > 0u; width = width / 2u) {
        if row.v < width {
            lanes[row.local] = lanes[row.local] + lanes[row.local + width];
        }
        workgroupBarrier();
    }
    let result = lanes[row.local - row.v];
    workgroupBarrier();
    return result;
}

fn joined_max(row: Row, mine: f32) -> f32 {
    lanes[row.local] = mine;
    workgroupBarrier();
    for (var width = 8u; width > 0u; width = width / 2u) {
        if row.v < width {
            lanes[row.local] = op_max(lanes[row.local], lanes[row.local + width]);
        }
        workgroupBarrier();
    }
    let result = lanes[row.local - row.v];
    workgroupBarrier();
    return result;
}

fn joined_min(row: Row, mine: f32) -> f32 {
    lanes[row.local] = mine;
    workgroupBarrier();
    for (var width = 8u; width > 0u; width = width / 2u) {
        if row.v < width {
            lanes[row.local] = op_min(lanes[row.local], lanes[row.local + width]);
        }
        workgroupBarrier();
    }
    let result = lanes[row.local - row.v];
    workgroupBarrier();
    return result;
}
