package launch

// InitArg is the argument that makes an init half.
const InitArg = initArg

// CopyProgram copies this program into memory.
var CopyProgram = copyProgram
