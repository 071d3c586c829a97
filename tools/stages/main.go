// Command stages runs the stages of the checks and the tests, and records how each ended and what it cost.
//
//	stages run TIER [STAGE…]   run a tier's stages, or only those that are named
//	stages list                print the table of CONTRIBUTING.md
//	stages status TIER         print how the tier's stages ended at this commit
//	stages inputs STAGE        print the hash of the files that a stage depends on
//	stages stamp               give unchanged files times that follow from their content, for Go's cache
//
// scripts/stages.txt has the table: name, tier, budget, when a record counts, and what the stage shows.
// `scripts/stage.sh NAME` runs a stage. Each run writes the time of its stages and of its slowest tests
// into bin/stages/TIER.txt. A stage that exceeds its budget by half is named at the end: a warning, since a
// budget is in seconds of processor time, which differ between machines.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "stages:", err)
		os.Exit(1)
	}
}

const usage = "usage: stages run TIER [STAGE…] | list | status TIER | inputs STAGE | stamp"

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("stages", flag.ContinueOnError)
	if err := flags.Parse(args); err != nil {
		return err
	}
	h, err := openHouse(ctx)
	if err != nil {
		return err
	}
	switch args := flags.Args(); {
	case len(args) >= 2 && args[0] == "run":
		return h.run(ctx, out, args[1], args[2:])
	case len(args) == 1 && args[0] == "list":
		return h.list(out)
	case len(args) == 2 && args[0] == "status":
		return h.status(ctx, out, args[1])
	case len(args) == 2 && args[0] == "inputs":
		return h.printInputs(ctx, out, args[1])
	case len(args) == 1 && args[0] == "stamp":
		return h.stamp(ctx, out)
	}
	return errors.New(usage)
}

// house is the checkout whose stages run, and the place of their records.
type house struct {
	root    string // the checkout
	records string // a folder outside of the checkout, so that clones share it
	table   []stage
}

// openHouse finds the checkout that holds the current folder. SWDT_STAGES moves the folder of the records.
func openHouse(ctx context.Context) (*house, error) {
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, fmt.Errorf("find the checkout: %w; run this command in a clone of the repository", err)
	}
	h := &house{root: strings.TrimSpace(string(root)), records: os.Getenv("SWDT_STAGES")}
	if h.records == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		h.records = filepath.Join(cache, "swdt", "stages")
	}
	h.table, err = readTable(filepath.Join(h.root, "scripts", "stages.txt"))
	return h, err
}
