    // Threads are elements: word 0 of the record says how many a lane has.
    let thread = enter(group.y * groups.x + group.x) * 64u + local;
    if thread >= segment.threads {
        return;
    }
    let lane = segment.first + thread / r(0u);
    let element = thread % r(0u);
