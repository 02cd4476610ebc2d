# How deep can the library's stack become? Reads gcc's call graphs (-fcallgraph-info=su), prints bytes from ea_server_take
# down to where the board's own functions are called. The server's table of commands is the one indirect call inside.

function short(title) {
    sub(/.*:/, "", title)
    return title
}

function deepest(f,    i, n, best, depth, callee, callees) {
    best = 0
    n = split(calls[f], callees, " ")
    for (i = 1; i <= n; i++) {
        callee = callees[i]
        if (callee == f)
            continue # ea_skip, counted below.
        if (callee == "__indirect_call")
            depth = f in has_table ? deepest("tools_call") : 0
        else
            depth = deepest(callee)
        if (depth > best)
            best = depth
    }
    return frame[f] * (f == "ea_skip" ? DEPTH_MAX + 1 : 1) + best
}

/^node:/ {
    split($0, quoted, "\"")
    if (match(quoted[4], /[0-9]+ bytes/))
        frame[short(quoted[2])] = substr(quoted[4], RSTART, RLENGTH) + 0
}

/^edge:/ {
    split($0, quoted, "\"")
    calls[short(quoted[2])] = calls[short(quoted[2])] " " short(quoted[4])
}

END {
    # Wherever the compiler put the body of send_answer and answered.
    has_table["answered"] = has_table["send_answer"] = has_table["ea_server_take"] = 1
    print deepest("ea_server_take")
}
