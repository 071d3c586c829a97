package manage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report is the state of rollouts.
type Report struct {
	Cluster  string    `json:"cluster"` // the API server's URL
	Rollouts []Rollout `json:"rollouts"`
	// Unmade names the workloads of the installation whose pods the cluster does not create, with its reason.
	Unmade []string `json:"unmade"`
}

// Rollout is the state of one rollout, as its controller has last seen it.
type Rollout struct {
	Name    string `json:"name"`
	State   string `json:"state"`   // Rolling, Waiting, Paused, Stopped, Aborted, RollingBack, RolledBack or Complete
	Message string `json:"message"` // explains the state; usually empty
	Paused  bool   `json:"paused"`  // spec.paused
	// Valid is false if the controller has found a wrong field in the spec. The message names it, and no node is touched.
	Valid bool `json:"valid"`
	// Seen is false while the controller has not seen the present spec.
	Seen    bool   `json:"seen"`
	Changed bool   `json:"changed"` // whether this command has changed the rollout
	Hash    string `json:"hash"`    // of the content
	// Step is the present canary step, such as "canary 1 of 2"; "" without canary steps, or after them.
	Step    string `json:"step"`
	Nodes   int32  `json:"nodes"`
	Updated int32  `json:"updated"`
	Working int32  `json:"working"`
	Failed  int32  `json:"failed"`
	// FailedNodes are the names of the nodes that failed with the content, also of those that were deleted or
	// replaced since. At most failureLimit names are kept.
	FailedNodes []string `json:"failedNodes"`
	RolledBack  int32    `json:"rolledBack"`
	// Unavailable nodes are cordoned or not Ready for other reasons than this rollout.
	Unavailable int32 `json:"unavailable"`
	// Touched are the nodes that the rollout has touched, in the order of their names.
	Touched []Node `json:"touched"`

	generation int64
	spec       fleetv1.NodeRolloutSpec
}

// Node is a node that a rollout has touched.
type Node struct {
	Name   string `json:"name"`
	Hash   string `json:"hash"`   // of the content that the node's order has
	Action string `json:"action"` // Apply or RollBack
	// Released reports that the node may begin: it has the binaries, and its pods have left, if they have to.
	Released bool   `json:"released"`
	Verdict  string `json:"verdict"` // Updated, Failed or RolledBack; "" before the end
	Phase    string `json:"phase"`   // Fetched, Working, Done, RolledBack, Failed or Refused, as the node reports; "" before it reports
	Journal  string `json:"journal"` // the ID of the last transaction on the node; "" if there is none
	Reason   string `json:"reason"`  // explains a failure; usually empty
}

func newRollout(r fleetv1.NodeRollout, states []fleetv1.NodeState) Rollout {
	result := Rollout{Name: r.Name, Touched: []Node{}}
	result.set(r)
	var updated []time.Time
	for _, s := range states {
		if s.Spec.Rollout != r.Name {
			continue
		}
		n := Node{Name: s.Name, Hash: s.Spec.Hash, Action: string(s.Spec.Action), Released: s.Spec.Released,
			Verdict: string(s.Spec.Verdict), Reason: s.Spec.Reason}
		if s.Spec.Hash == result.Hash && s.Spec.Verdict == fleetv1.VerdictUpdated {
			updated = append(updated, s.Spec.Since.Time)
		}
		if s.Status.Hash == s.Spec.Hash && s.Status.Action == s.Spec.Action {
			n.Phase, n.Journal = string(s.Status.Phase), s.Status.Journal
			n.Reason = cmp.Or(n.Reason, s.Status.Message)
		}
		result.Touched = append(result.Touched, n)
	}
	step, _, _ := rollout.Step(r.Spec.Canary, int(r.Status.Nodes), updated, time.Now())
	if step < len(r.Spec.Canary) {
		result.Step = fmt.Sprintf("canary %d of %d", step+1, len(r.Spec.Canary))
	}
	slices.SortFunc(result.Touched, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return result
}

func (r *Rollout) set(from fleetv1.NodeRollout) {
	s := from.Status
	r.State, r.Message, r.Paused, r.Hash = s.State, s.Message, from.Spec.Paused, s.Hash
	r.Seen = s.ObservedGeneration == from.Generation
	r.Nodes, r.Updated, r.Working, r.Failed = s.Nodes, s.Updated, s.Working, s.Failed
	r.RolledBack, r.Unavailable = s.RolledBack, s.Unavailable
	r.FailedNodes = []string{}
	for _, n := range s.FailedNodes {
		r.FailedNodes = append(r.FailedNodes, n.Name)
	}
	r.Valid = !meta.IsStatusConditionFalse(s.Conditions, fleetv1.Valid)
	r.generation, r.spec = from.Generation, from.Spec
}

// Bad reports whether a rollout is stopped or not valid, or has failed nodes. Those that were deleted since count until
// all nodes are updated.
func (r Report) Bad() bool { return slices.ContainsFunc(r.Rollouts, Rollout.bad) }

func (r Rollout) bad() bool { return r.failed() || !r.Valid || r.State == rollout.StateStopped }

// failed follows the same rule as the condition Degraded.
func (r Rollout) failed() bool { return r.Failed > 0 || len(r.FailedNodes) > 0 && r.Updated < r.Nodes }

// gone returns the names of failed nodes that were deleted, replaced or relabelled since, if they still count.
func (r Rollout) gone() []string {
	if !r.failed() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.FailedNodes), func(name string) bool {
		return slices.ContainsFunc(r.Touched, func(n Node) bool {
			takenBack := n.Action == string(fleetv1.ActionRollBack)
			return n.Name == name && n.Hash == r.Hash && (takenBack || n.Verdict == string(fleetv1.VerdictFailed))
		})
	})
}

// WriteText writes a table of the rollouts, and the nodes that failed or are on their way.
func (r Report) WriteText(p *ui.Page) error {
	for _, text := range r.Unmade {
		if _, err := fmt.Fprintln(p, ui.Bad(text)); err != nil {
			return err
		}
	}
	if len(r.Rollouts) == 0 {
		_, err := fmt.Fprintf(p, "there is no rollout in %s\n", r.Cluster)
		return err
	}
	rows := [][]string{{"ROLLOUT", "NODES", "UPDATED", "WORKING", "FAILED", "STATE", "MESSAGE"}}
	for _, one := range r.Rollouts {
		number := func(n int32) string { return strconv.Itoa(int(n)) }
		rows = append(rows, []string{one.Name, number(one.Nodes), number(one.Updated), number(one.Working),
			number(one.Failed), one.state(), one.Message})
	}
	if err := ui.Lines(p, rows); err != nil {
		return err
	}
	return r.writeNodes(p)
}

// state returns the state for people.
func (r Rollout) state() string {
	switch {
	case r.State == "":
		return "not seen by a controller"
	case !r.Seen:
		return r.State + " (the controller has not seen the last change)"
	case r.bad():
		return ui.Bad(r.State)
	}
	return r.State
}

func (r Report) writeNodes(p *ui.Page) error {
	var rows [][]string
	for _, one := range r.Rollouts {
		for _, n := range one.Touched {
			switch {
			case n.Hash != one.Hash && n.Verdict != "": // the end of an earlier content
			case n.Verdict == string(fleetv1.VerdictFailed), n.Verdict == "":
				rows = append(rows, []string{n.Name, one.Name, n.progress(), n.Reason})
			}
		}
		for _, name := range one.gone() {
			rows = append(rows, []string{name, one.Name, ui.Bad("failed"), "deleted or replaced since"})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return writeNodeRows(p, rows)
}

// writeNodeRows writes a table of nodes, with the first line of each reason. The other lines of a reason, such as the
// last ones of a log, are below its node.
func writeNodeRows(p *ui.Page, rows [][]string) error {
	table := [][]string{{"NODE", "ROLLOUT", "PHASE", "REASON"}}
	below := []string{""}
	for _, row := range rows {
		first, others, _ := strings.Cut(row[3], "\n")
		table = append(table, []string{row[0], row[1], row[2], first})
		below = append(below, others)
	}
	var text strings.Builder
	if err := ui.Lines(&text, table); err != nil {
		return err
	}
	lines := strings.Split(text.String(), "\n")
	for i, others := range below {
		if others != "" {
			lines[i] = indented(lines[i] + "\n" + others)
		}
	}
	_, err := fmt.Fprint(p, "\n"+strings.Join(lines, "\n"))
	return err
}

// indented indents all lines of a text but the first. A node writes its reason itself: without the indentation, its
// lines could pass for those of other nodes.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
