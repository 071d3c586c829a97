// Package v1alpha1 is the node file: the YAML that describes how swdt connects
// to a Windows node, how the node is set up, and which binaries it runs.
//
// The types extend the published windows.k8s.io/v1alpha1 Node, so a file that was
// written for the published Node works unchanged. The package imports no other package
// of this project. Defaults are in defaults.go, the rules in validate.go and
// validate_*.go: Validate returns every problem at once, each with its field path;
// package config adds file and line.
//
// The field comments are the descriptions that editors show from `swdt config
// schema`.
package v1alpha1
