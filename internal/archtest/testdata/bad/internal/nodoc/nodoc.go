package nodoc // want doc "package internal/nodoc has no doc comment"
