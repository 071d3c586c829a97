// Package document redacts secrets in whole documents: JSON, YAML, TOML and
// XML.
//
// Package redact scans text line by line, on the node as well as on your
// machine. This package is for documents that swdt has as a whole, after that
// scan. It parses the document, so it also detects what no single line shows:
// that a document is a Secret of Kubernetes, with data that is secret whatever
// its names; names that are written with escapes; lists and objects of any
// depth. It runs only in swdt: its parsers would add 300 KB to the agent.
//
//   - document.go: the values of a document, and which of them are secret
//   - json.go, yaml.go, toml.go, xml.go: how each format is read and written
package document
