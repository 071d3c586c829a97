// Package document takes secrets out of whole documents: JSON, YAML, TOML and XML.
//
// Package redact reads text line by line, on the node as well as here. This package
// is for what swdt has as a whole, when that scan is done. It parses the document,
// so it also knows what no line shows: that a document is a Secret of Kubernetes,
// whose data are secret whatever their names; names that are written with escapes;
// lists and objects of any depth. It runs in swdt alone: its parsers would take
// 300 KB of the agent.
//
//   - document.go: the values of a document, and which of them are secret
//   - json.go, yaml.go, toml.go, xml.go: how each format is read and written
package document
