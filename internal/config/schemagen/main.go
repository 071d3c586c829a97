// Command schemagen writes schema.json, the JSON Schema of the documents of kind Node and of
// kind Cluster, from the Go types and their comments:
//
//	go run ./internal/config/schemagen api/v1alpha1
//
// schema.go derives the parts of the schema that follow from the types. rules.go and
// rules_cluster.go add the rules that only the validation has: patterns, choices and fields
// that exclude each other.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: schemagen FOLDER-OF-THE-TYPES")
	}
	schema, err := generate(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(args[0], "schema.json"), schema, 0o644)
}
