// Products of many rows: a group of 16 by 16 threads makes a tile of 64 by 64 results, four by four a
// thread; sixteen columns of the gathered operand and sixteen rows of the weight at a time are in the
// memory of the group. Every sum is one chain in ascending k, part by part: the bits of `prod_few`.
//
// Record: as that of `prod_few`. Groups are tiles: a row of tiles has `ceil(columns / 64)`.

const TILE: u32 = 64u;
const DEEP: u32 = 16u;

var<workgroup> xs: array<f32, 1024>;
var<workgroup> ws: array<f32, 1024>;
var<workgroup> starts: array<u32, 64>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let columns = r(1u);
    let each = r(0u) / columns;
    // The rows of all lanes of the dispatch.
    let rows = play.threads;
    let across = (columns + TILE - 1u) / TILE;
    let tile = group.y * groups.x + group.x;
    let first_row = (tile / across) * TILE;
    let first_column = (tile % across) * TILE;
    if first_row >= rows {
        return;
    }
    let down = (local / 16u) * 4u;
    let right = (local % 16u) * 4u;
    var sums: array<f32, 16>;
    for (var i = 0u; i < 4u; i++) {
        let row = min(first_row + down + i, rows - 1u);
        let lane = play.first + row / each;
        for (var j = 0u; j < 4u; j++) {
            let column = min(first_column + right + j, columns - 1u);
            var sum = 0.0;
            if r(3u) == 1u {
                sum = paramf(r(4u) + column);
            }
            if r(3u) == 2u {
                sum = ldf(row_of(4u, lane) + (row % each) * columns + column);
            }
            sums[i * 4u + j] = sum;
        }
    }
    for (var part = 0u; part < r(2u); part++) {
        let at = 12u + 8u * part;
        let width = r(at + 4u);
        workgroupBarrier();
        if local < TILE {
            let row = min(first_row + local, rows - 1u);
            starts[local] = row_of(at, play.first + row / each) + (row % each) * width;
        }
        workgroupBarrier();
        for (var k0 = 0u; k0 < width; k0 = k0 + DEEP) {
            let deep = min(DEEP, width - k0);
            for (var i = 0u; i < 4u; i++) {
                // Sixteen threads read a row of the operand; they read a row of the weight as 64 columns.
                let place = local + i * 256u;
                let xk = place % DEEP;
                let xr = place / DEEP;
                if xk < deep {
                    xs[xk * TILE + xr] = ldf(starts[xr] + k0 + xk);
                }
                let wk = place / TILE;
                let wc = place % TILE;
                if wk < deep {
                    let column = min(first_column + wc, columns - 1u);
                    ws[wk * TILE + wc] =
                        paramf(r(at + 5u) + column * r(at + 7u) + (k0 + wk) * r(at + 6u));
                }
            }
            workgroupBarrier();
            for (var k = 0u; k < deep; k++) {
                let x = vec4<f32>(
                    xs[k * TILE + down],
                    xs[k * TILE + down + 1u],
                    xs[k * TILE + down + 2u],
                    xs[k * TILE + down + 3u],
                );
                let w = vec4<f32>(
                    ws[k * TILE + right],
                    ws[k * TILE + right + 1u],
                    ws[k * TILE + right + 2u],
                    ws[k * TILE + right + 3u],
                );
                sums[0] = mad(x.x, w.x, sums[0]);
                sums[1] = mad(x.x, w.y, sums[1]);
                sums[2] = mad(x.x, w.z, sums[2]);
                sums[3] = mad(x.x, w.w, sums[3]);
                sums[4] = mad(x.y, w.x, sums[4]);
                sums[5] = mad(x.y, w.y, sums[5]);
                sums[6] = mad(x.y, w.z, sums[6]);
                sums[7] = mad(x.y, w.w, sums[7]);
                sums[8] = mad(x.z, w.x, sums[8]);
                sums[9] = mad(x.z, w.y, sums[9]);
                sums[10] = mad(x.z, w.z, sums[10]);
                sums[11] = mad(x.z, w.w, sums[11]);
                sums[12] = mad(x.w, w.x, sums[12]);
                sums[13] = mad(x.w, w.y, sums[13]);
                sums[14] = mad(x.w, w.z, sums[14]);
                sums[15] = mad(x.w, w.w, sums[15]);
            }
            workgroupBarrier();
        }
    }
    for (var i = 0u; i < 4u; i++) {
        let row = first_row + down + i;
        if row < rows {
            let to_at = row_of(8u, play.first + row / each) + (row % each) * columns;
            for (var j = 0u; j < 4u; j++) {
                let column = first_column + right + j;
                if column < columns {
                    stf(to_at + column, sums[i * 4u + j]);
                }
            }
        }
    }
}
