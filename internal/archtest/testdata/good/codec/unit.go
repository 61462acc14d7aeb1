package codec

// Unit has nothing in it.
type Unit struct{}
