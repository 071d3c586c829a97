package stats

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict names a kind of fault of a sample, or a note on the sample (see Rule.Note).
type Verdict string

const (
	Zero      Verdict = "zero"
	Missing   Verdict = "missing"
	Stale     Verdict = "stale"
	Backwards Verdict = "backwards"
	Above     Verdict = "above"
	Wild      Verdict = "wild"
	Jumped    Verdict = "jumped"
	Disagree  Verdict = "disagree"
	Quantised Verdict = "quantised"
)

// Rule describes a verdict: its meaning, its formula and its known cause.
type Rule struct {
	Verdict  Verdict `json:"verdict"`
	Means    string  `json:"means"`
	Formula  string  `json:"formula"`
	Cause    string  `json:"cause"`
	Upstream string  `json:"upstream,omitempty"`
	// Note reports whether the verdict only describes how Windows counts, and does not mean that
	// the numbers are wrong.
	Note bool `json:"note,omitempty"`

	// Needs is the minimum length of a series that the rule can judge.
	Needs time.Duration `json:"-"`

	holds func(Window) bool
	// possible reports whether the window has the numbers that the rule compares. If the window has
	// these numbers, a sample without the verdict has passed the rule.
	possible func(Window) bool
}

// Doc returns the URL of the guide's section on the verdict.
func (r Rule) Doc() string {
	return "https://github.com/swdt-dev/swdt/blob/main/docs/guides/metrics.md#" + string(r.Verdict)
}

const issue9531 = "https://github.com/containerd/containerd/issues/9531"

// Rules returns the rules of all verdicts, the most significant first.
func Rules() []Rule {
	return []Rule{
		{
			Verdict: Zero, holds: zero, possible: zeroPossible, Needs: RateWindow, Upstream: issue9531,
			Means: "0 is reported for a container that is busy",
			Formula: "usageNanoCores = 0, while usageCoreNanoSeconds advanced by more than a tick (15.625 ms) since " +
				"the caller's last sample, and in every step (≥ 0.5 s) of the last 10 s",
			Cause: "containerd 1.7 and newer computes the rate since the previous call of any client: between two " +
				"calls close together, the counter has not moved",
		},
		{
			Verdict: Missing, holds: missing, possible: missingPossible,
			Upstream: "https://github.com/containerd/containerd/pull/7186",
			Means:    "no rate is reported",
			Formula: "usageNanoCores is absent although usageCoreNanoSeconds is present, in a sample that neither is " +
				"the first of its series nor follows a counter that went back",
			Cause: "containerd before 1.7 omits the field on Windows; the kubelet then computes the rate itself, " +
				"every 10 s",
		},
		{
			Verdict: Backwards, holds: backwards, possible: backwardsPossible,
			Means: "the counter went back without having begun again",
			Formula: "usageCoreNanoSeconds is less than in the previous sample, and more than all of the node's cores " +
				"could have used since then",
			Cause: "a counter that is put together from processes of which one has ended, or answers out of order",
		},
		{
			Verdict: Above, holds: above, possible: abovePossible, Upstream: issue9531,
			Means: "more is reported than there is",
			Formula: "usageNanoCores > (1 + tolerance) × the container's CPU limit, or the node's cores if it has " +
				"none, + 2 ticks a second",
			Cause: "the rate over a very short time: one tick of 15.625 ms within 6 ms is 2.6 cores",
		},
		{
			Verdict: Wild, holds: wild, possible: wildPossible, Needs: lag, Upstream: issue9531,
			Means: "more is reported than was used at any time",
			Formula: "usageNanoCores > 2 × the highest rate of usageCoreNanoSeconds between any two samples (≥ 0.1 s " +
				"apart) of the last 20 s, + 4 ticks a second",
			Cause: "a rate over a very short time, as for the verdict above",
		},
		{
			Verdict: Jumped, holds: jumped, possible: backwardsPossible,
			Means: "the counter moved by more than all cores could have used",
			Formula: "usageCoreNanoSeconds advanced since the previous sample by more than all of the node's cores could " +
				"have used in that time, + 2 ticks a core",
			Cause: "a counter of another container under the same name, one that is put together from processes of which " +
				"one was counted twice, or a wrong unit",
		},
		{
			Verdict: Stale, holds: stale, possible: stalePossible, Needs: staleAfter,
			Means: "the sample is an old one",
			Formula: "its timestamp has not changed for 30 s while that of another container of the same answer " +
				"moved; or usageCoreNanoSeconds has not changed for 30 s while usageNanoCores was never 0",
			Cause: "a cache that is not refreshed, or a runtime that lost its container",
		},
		{
			Verdict: Disagree, holds: disagree, possible: disagreePossible, Needs: lag,
			Means: "the kubelet's summary and the runtime differ",
			Formula: "both report a rate and compute the same from their counters (within the tolerance), the load " +
				"was steady for 20 s, and yet the two usageNanoCores differ by more than the tolerance + 4 ticks a " +
				"second",
			Cause: "the kubelet takes the runtime's rate of another moment, or its own 10 s cache",
		},
		{
			Verdict: Quantised, holds: quantised, possible: quantisedPossible, Note: true,
			Means:   "the counter moves in ticks of 15.625 ms",
			Formula: "the last 8 steps by which usageCoreNanoSeconds advanced are all multiples of 15.625 ms",
			Cause: "Windows charges a whole clock tick to the process that runs at its end; rates over less than a " +
				"second are coarse",
		},
	}
}

// Verdicts returns the verdicts of all rules.
func Verdicts() []Verdict {
	var all []Verdict
	for _, r := range Rules() {
		all = append(all, r.Verdict)
	}
	return all
}

// RuleOf returns the rule of a verdict, and whether there is such a rule.
func RuleOf(v Verdict) (Rule, bool) {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Verdict == v })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

// ParseVerdicts parses names of verdicts and returns each once.
func ParseVerdicts(names []string) ([]Verdict, error) {
	var verdicts []Verdict
	for _, name := range names {
		v := Verdict(strings.TrimSpace(name))
		if _, ok := RuleOf(v); !ok {
			return nil, fmt.Errorf("%q is no verdict; the verdicts are %s", name, join(Verdicts()))
		}
		if !slices.Contains(verdicts, v) {
			verdicts = append(verdicts, v)
		}
	}
	return verdicts, nil
}

// ParseSources parses names of sources and returns each once.
func ParseSources(names []string) ([]Source, error) {
	var sources []Source
	for _, name := range names {
		s := Source(strings.TrimSpace(name))
		if !slices.Contains(Sources(), s) {
			return nil, fmt.Errorf("%q is no source; the sources are %s", name, join(Sources()))
		}
		if !slices.Contains(sources, s) {
			sources = append(sources, s)
		}
	}
	return sources, nil
}

func join[T ~string](names []T) string {
	var all []string
	for _, n := range names {
		all = append(all, string(n))
	}
	return strings.Join(all, ", ")
}

// VerdictNames returns verdicts as text.
func VerdictNames(verdicts []Verdict) []string {
	var all []string
	for _, v := range verdicts {
		all = append(all, string(v))
	}
	return all
}
