package pipeline

// Parse reads a pipeline file. It returns the file if nothing but advice was found, and everything that was found.
func Parse(text []byte) (*File, Problems) {
	var r reader
	doc := r.document(text)
	if doc == nil {
		return nil, sorted(r.found)
	}
	f, _ := pipelineFile.read(&r, doc)
	if !r.over {
		check(&r, &f)
	}
	found := sorted(r.found)
	if len(found.Wrong()) > 0 {
		return nil, found
	}
	return &f, found
}
