package launch

// InitArg is the argument that makes an init half.
const InitArg = initArg
