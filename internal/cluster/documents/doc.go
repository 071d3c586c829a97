// Package documents reads YAML and JSON that others wrote: the files of a folder, and the documents and objects of a text,
// with the line of each value. All of it is bounded, since a file may be hostile. Checks of manifests use it.
//
//   - folder.go: the files below a folder
//   - document.go: the documents of a text, the objects of a list, values by their keys
//   - aliases.go: the values that aliases stand for
package documents
