// Package architecture has no code: its test keeps the layers of
// docs/architecture.md true. Imports go down only.
package architecture
