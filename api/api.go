// Package api holds what is published about the interfaces of Forgeyard: the HTTP interface as an OpenAPI document, and the JSON
// Schema of the pipeline file. Both are made from the code by tests, which fail when they are stale. It does nothing else.
package api

import _ "embed"

// OpenAPI is the HTTP interface of the daemon, as an OpenAPI 3.1 document in YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte

// PipelineSchema is the JSON Schema of the pipeline file.
//
//go:embed pipeline.v1.schema.json
var PipelineSchema []byte
