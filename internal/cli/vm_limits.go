package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm/golden"
	"github.com/swdt-dev/swdt/internal/vm/install"
)

// stallLimit is the word of --limit that bounds how long the disk and the screen of a VM may stay
// unchanged, in any stage.
const stallLimit = "stall"

// addLimitFlag adds --limit, which a machine that is slower than most needs.
func addLimitFlag(cmd *cobra.Command, limits *[]string) {
	cmd.Flags().StringSliceVar(limits, "limit", nil, "give up after a time in a stage, as `copy=2h`; the stages "+
		"are boot, copy, set-up, script and end; stall=20m gives up if nothing is read or written for so long")
	must(cmd.RegisterFlagCompletionFunc("limit", cobra.FixedCompletions(limitWords(), cobra.ShellCompDirectiveNoSpace)))
}

// limitWords returns the words that --limit accepts.
func limitWords() []string {
	var words []string
	for _, stage := range install.Stages() {
		words = append(words, string(stage))
	}
	return append(words, stallLimit)
}

// setLimits sets the limits of --limit, or returns a usage error.
func setLimits(o *golden.Options, limits []string) error {
	for _, pair := range limits {
		word, text, _ := strings.Cut(pair, "=")
		limit, err := time.ParseDuration(text)
		switch {
		case !slices.Contains(limitWords(), word):
			return usagef("--limit %s: begin with one of %s", pair, ui.Alternatives(limitWords()))
		case err != nil, limit <= 0:
			return usagef("--limit %s: write a time, as in %s=90m", pair, word)
		case word == stallLimit:
			o.Stall = limit
			continue
		}
		if o.Limits == nil {
			o.Limits = map[install.Stage]time.Duration{}
		}
		o.Limits[install.Stage(word)] = limit
	}
	return nil
}
