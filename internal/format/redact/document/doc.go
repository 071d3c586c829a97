// Package document redacts secrets in whole documents: JSON, YAML, TOML and
// XML.
//
// Package redact scans text line by line, on the node as well as on your machine. This package is
// for documents that swdt has as a whole, and runs in addition to that scan. It parses the
// document, so it also detects secrets that no single line shows: the data of a Kubernetes
// Secret, whatever the names of that data are; values whose names are written with escapes; lists
// and objects of any depth. It runs only in swdt: its parsers would add 300 KB to the agent.
//
//   - document.go: the values of a document, and which of them are secret
//   - json.go, yaml.go, toml.go, xml.go: how each format is read and written
package document
