// Package v1alpha1 is the node file: the YAML that says how a Windows node is
// reached, how it is set up, and which binaries it runs.
//
// The types are exactly the published windows.k8s.io/v1alpha1 Node, extended;
// an old file works as it is. The package imports nothing of this project.
// Defaults are in defaults.go, the rules in validate.go: Validate returns every
// problem at once, each with its field path; package config adds file and line.
//
// The comments of the fields are what `swdt config schema` shows in an editor.
package v1alpha1
