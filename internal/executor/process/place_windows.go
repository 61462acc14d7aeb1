package process

// placeOf needs to tell nothing apart here: job objects die with their agent.
func placeOf(string) (string, error) { return "0", nil }
