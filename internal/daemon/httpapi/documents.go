package httpapi

import "net/http"

// The media types of documents.
const (
	typeYAML   = "application/yaml"
	typeSchema = "application/schema+json"
)

// document answers with a text that is a part of the program. Nothing in it is secret.
func document(kind string, text []byte) endpoint {
	return endpoint{http.StatusOK, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Cache-Control", "no-cache") // it changes with the daemon
		_, _ = w.Write(text)
	}}
}
