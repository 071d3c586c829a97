// Package yamledit changes single fields of a YAML or JSON document, and no other byte of it: comments, the order of keys,
// quotes, indentation and line ends stay. An edit is made in the text, and believed only if the edited text, read again,
// differs from the text before by the wanted field alone. A form that the package does not know is a *FormError, never a
// wrong text.
//
//   - edit.go: Set and Remove
//   - text.go: the lines of a text, and the ends of the values in it
//   - same.go: whether two documents say the same
package yamledit
