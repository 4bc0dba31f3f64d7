    // One thread per element. Word 0 of the record is the number of elements of a lane.
    let thread = enter(group.y * groups.x + group.x) * 64u + local;
    if thread >= segment.threads {
        return;
    }
    let lane = segment.first + thread / r(0u);
    let element = thread % r(0u);
