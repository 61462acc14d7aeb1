package folder

// Size is what a folder takes of its disk.
type Size struct {
	Bytes uint64 // as blocks; a file with several names counts once for all of them, wherever they are
	Files uint64 // and folders, and everything else that has a name
	Blind uint64 // folders that could not be read or lie too deep: what is in them is not counted
}

// maxMeasured bounds the folders that are open at once while one is measured. What lies deeper is not counted.
const maxMeasured = 512
