// Command recordspecs records the specs of e2e.test programs for the tests of package readiness.
//
//	go run ./internal/proof/readiness/recordspecs FOLDER E2E.TEST…
//
// It writes one file into the folder for each program, unless the file has the same list already.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/proof/readiness/speclist"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: recordspecs FOLDER E2E.TEST…")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	for _, program := range os.Args[2:] {
		if err := record(ctx, os.Args[1], program); err != nil {
			fmt.Fprintln(os.Stderr, "recordspecs:", err)
			os.Exit(1)
		}
	}
}

func record(ctx context.Context, folder, program string) error {
	list, err := speclist.Record(ctx, program)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, list.Version+speclist.Extension)
	changed, err := list.WriteFile(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	state := "as recorded"
	if changed {
		state = "recorded anew"
	}
	fmt.Printf("%s: %d specs, %s\n", path, len(list.Specs), state)
	return nil
}
