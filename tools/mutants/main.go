// Command mutants measures whether the tests of packages notice changes of their code. It makes small changes
// (mutants), such as < to <=, and runs the tests of the package with each of them: a mutant with which a test fails is
// killed, one with which all tests pass has survived.
//
//	mutants [-seed N] [-n 100] [-min 90] [-jobs 1] [-grace 10s] [-match REGEXP] [-v] [-json FILE] FOLDER…
//
// It runs at the root of the repository. The folders are those of packages; only a package's own tests run. The seed
// chooses N mutants of each package; the same source and seed give the same mutants. A mutant ends in one of these
// classes:
//
//	killed       a test failed
//	survived     all tests passed
//	not reached  no test runs its line; it survives without a run
//	timeout      the tests took longer than five times as long as without a mutant plus -grace; not counted
//
// The kill rate is killed / (killed + survived + not reached). The exit code is 1 if the rate of a package is below
// -min, or if a mutant of always.txt is not killed. That file lists changes of critical lines, which the tests must
// notice whatever the seed is. exclude.txt lists mutants that no test should notice, each with a reason; their
// numbers are printed.
//
// All sampled mutants of a package are in one copy of its source, each behind a switch, so a package is compiled and
// linked once and the test program runs once for each mutant. The
// existing tool gremlins (v0.6.0) does not fit: it copies the module for each worker, compiles and links once for each
// mutant, which costs 8 CPU-seconds with client-go, takes no sample and drops no statements.
//
// main.go judges the results, find.go finds mutants (operators.go lists the changes), instrument.go writes the copy
// with switches, run.go builds and runs it, and lists.go reads always.txt and exclude.txt.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	var match string
	flag.Uint64Var(&o.seed, "seed", 1, "chooses the mutants")
	flag.IntVar(&o.most, "n", 100, "the `number` of mutants of each package; all, if it has fewer")
	flag.Float64Var(&o.least, "min", 90, "the lowest kill rate that passes, in `percent`")
	flag.DurationVar(&o.grace, "grace", 10*time.Second, "the time limit is five times the `time` without a mutant plus this")
	flag.IntVar(&o.jobs, "jobs", 1, "how many test programs run at the same time")
	flag.StringVar(&match, "match", "", "run only the mutants of the sample whose line in the report matches")
	flag.BoolVar(&o.verbose, "v", false, "print each mutant that was not killed")
	flag.StringVar(&o.record, "json", "", "write all results to a `file`")
	flag.StringVar(&o.always, "always", "tools/mutants/always.txt", "the `file` of the mutants that must be killed")
	flag.StringVar(&o.exclude, "exclude", "tools/mutants/exclude.txt", "the `file` of the mutants to leave out")
	flag.Parse()
	o.folders, o.story = flag.Args(), os.Stderr
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if o.match, err = regexp.Compile(match); err == nil {
		err = run(ctx, os.Stdout, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

type options struct {
	seed            uint64
	most, jobs      int
	grace           time.Duration
	story           io.Writer // the mutants that survive, as they end
	least           float64
	match           *regexp.Regexp
	verbose         bool
	record          string // the JSON file; "": none
	always, exclude string
	folders         []string
}

// report holds all results, for the JSON file.
type report struct {
	Seed     uint64
	Packages []result
}

// result holds the results of one package.
type result struct {
	Package    string // its folder
	Candidates int    // all mutants that are not excluded
	Counts     map[class]int
	Excluded   map[string]int // the number of mutants by reason
	Rate       float64        // in percent
	CPUSeconds float64        // of all test programs; compilers are not counted
	Mutants    []*mutant      // the sample
	Always     []*mutant
}

func run(ctx context.Context, out io.Writer, o options) error {
	exclusions, err := readExclusions(o.exclude)
	if err != nil {
		return err
	}
	always, err := readAlways(o.always)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "seed %d, at most %d mutants a package\n", o.seed, o.most)
	all := report{Seed: o.seed}
	var problems []string
	for _, folder := range o.folders {
		r, err := examine(ctx, o, folder, exclusions, always)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		r.print(out, o.verbose)
		problems = append(problems, r.problems(o.least)...)
		all.Packages = append(all.Packages, r)
	}
	if o.record != "" {
		if err := write(o.record, all); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	return nil
}

// examine runs the sample of a package and its fixed mutants.
func examine(ctx context.Context, o options, folder string, exclusions []exclusion, always []fixed) (result, error) {
	source, err := load(ctx, folder)
	if err != nil {
		return result{}, err
	}
	candidates, excluded := exclude(source.find(), exclusions)
	sampled := sample(candidates, o.seed, o.most)
	sampled = slices.DeleteFunc(sampled, func(m *mutant) bool { return !o.match.MatchString(m.String()) })
	r := result{Package: folder, Candidates: len(candidates), Excluded: excluded, Mutants: sampled}
	for _, f := range always {
		if f.folder() == folder {
			m, err := source.fixed(f)
			if err != nil {
				return r, err
			}
			r.Always = append(r.Always, m)
		}
	}
	if r.CPUSeconds, err = test(ctx, source, sampled, r.Always, o); err != nil {
		return r, err
	}
	r.count()
	return r, nil
}

// count fills Counts and Rate from the sample.
func (r *result) count() {
	r.Counts = map[class]int{}
	for _, m := range r.Mutants {
		r.Counts[m.Class]++
	}
	r.Rate = 100
	if judged := r.Counts[killed] + r.Counts[survived] + r.Counts[notReached]; judged > 0 {
		r.Rate = 100 * float64(r.Counts[killed]) / float64(judged)
	}
}

func (r *result) print(out io.Writer, verbose bool) {
	left := 0
	for _, n := range r.Excluded {
		left += n
	}
	fmt.Fprintf(out, "%s: %d of %d mutants: %d killed, %d survived, %d not reached, %d timeout; %d excluded; "+
		"kill rate %.1f %%; %.0f CPU-s\n", r.Package, len(r.Mutants), r.Candidates, r.Counts[killed],
		r.Counts[survived], r.Counts[notReached], r.Counts[timeout], left, r.Rate, r.CPUSeconds)
	for _, m := range r.Always {
		fmt.Fprintf(out, "  always: %s: %s\n", m.Class, m)
	}
	if !verbose {
		return
	}
	for _, m := range r.Mutants {
		if m.Class != killed {
			fmt.Fprintf(out, "  %s: %s\n", m.Class, m)
		}
	}
	for _, reason := range sortedKeys(r.Excluded) {
		fmt.Fprintf(out, "  excluded: %d: %s\n", r.Excluded[reason], reason)
	}
}

// problems returns the reasons for which the package fails.
func (r *result) problems(least float64) (all []string) {
	if r.Rate < least {
		all = append(all, fmt.Sprintf("%s: kill rate %.1f %% is below %.1f %%: add tests, or exclude equivalent mutants "+
			"with a reason", r.Package, r.Rate, least))
	}
	for _, m := range r.Always {
		if m.Class != killed {
			all = append(all, fmt.Sprintf("%s: must be killed, but: %s", m, m.Class))
		}
	}
	return all
}

func write(file string, all report) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
