package v1

const first = iota + 1 // want iota "iota numbers a wire value"
