package capture

// noWait is nothing here: folders hold no pipes.
const noWait = 0
