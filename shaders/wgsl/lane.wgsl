    // One group per lane.
    let number_of_lane = enter(group.y * groups.x + group.x);
    if number_of_lane >= segment.threads {
        return;
    }
    let lane = segment.first + number_of_lane;
