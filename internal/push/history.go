package push

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// HistoryReport is the output of `swdt history`.
type HistoryReport struct {
	Nodes []NodeHistory `json:"nodes"`

	results []fleet.Result[[]PastPush]
	names   []string
}

// NodeHistory has the pushes of one node, oldest first.
type NodeHistory struct {
	fleet.Outcome
	Pushes []PastPush `json:"pushes"`
}

// PastPush is a transaction that a node has in its history: a push, a rollback, a restart, or a part of a join.
type PastPush struct {
	Number      int    `json:"number"`      // counts the transactions of the node, from 1 on
	Transaction string `json:"transaction"` // its ID, which was the name of its journal on the node
	// Journal reports whether the journal is still on the node: the transaction is unfinished, or no swdt has collected
	// its outcome yet.
	Journal    bool            `json:"journal"`
	By         string          `json:"by"`      // the user and the machine that began it
	Command    string          `json:"command"` // the command of swdt; "": unknown
	Begun      time.Time       `json:"begun"`
	Ended      *time.Time      `json:"ended"`  // null: it has not ended
	Result     string          `json:"result"` // committed, rolledBack, failed, or unfinished
	Message    string          `json:"message"`
	Components []PastComponent `json:"components"`
}

// PastComponent is a component of a past push.
type PastComponent struct {
	Name        string `json:"name"`
	Destination string `json:"destination"`
	Service     string `json:"service"` // "": none
	Action      string `json:"action"`  // "": unknown
	// SHA256 is the hash of the file that the push brought, or found and kept. PreviousSHA256 is that of the file before;
	// "": there was none.
	SHA256         string      `json:"sha256"`
	PreviousSHA256 string      `json:"previousSha256"`
	Version        PastVersion `json:"version"`
	Kept           Kept        `json:"kept"`

	brought     bool
	commandLine bool // the push changed the command line of the service
}

// ChangedCommandLine reports whether the push changed the command line of a service.
func (p PastPush) ChangedCommandLine(service string) bool {
	return slices.ContainsFunc(p.Components, func(c PastComponent) bool {
		return c.commandLine && strings.EqualFold(c.Service, service)
	})
}

// PastVersion has the versions that the two files have reported; "": unknown.
type PastVersion struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// Kept is a place from which a rollback can take the file that a push brought.
type Kept string

const (
	KeptPresent Kept = "present" // it is the file at the destination
	KeptOnNode  Kept = "node"    // the node keeps it as the previous file
	KeptInCache Kept = "cache"   // your machine's cache has it
	KeptNowhere Kept = ""
)

const unfinished = "unfinished"

// Keeper is a store of files on your machine, by their SHA-256. A *transfer.Depot is one.
type Keeper interface {
	// Has reports whether the store has a file, without a look at its content.
	Has(sha256 string) bool
	// Path returns the path of a file whose content has the hash.
	Path(ctx context.Context, sha256 string) (string, error)
}

// History returns the transactions in the node's history, oldest first; those with one of the names among their
// components, if there are names. It changes nothing. keeper may be nil.
func History(ctx context.Context, n *node.Node, doc config.Document, names []string, keeper Keeper) ([]PastPush, error) {
	w := newWork(n, doc, Options{Holder: "-"}, ui.Discard{})
	all, err := w.history(ctx, keeper)
	if err != nil || len(names) == 0 {
		return all, err
	}
	var chosen []PastPush
	for _, p := range all {
		p.Components = slices.DeleteFunc(slices.Clone(p.Components), func(c PastComponent) bool { return !named(names, c.Name) })
		if len(p.Components) > 0 {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

// history reads the node's history and looks which of its files are kept.
func (w *work) history(ctx context.Context, keeper Keeper) ([]PastPush, error) {
	reply, err := w.node.Swap.History(ctx, &agentv1.HistoryRequest{})
	if err != nil {
		return nil, fmt.Errorf("read the node's history: %w", err)
	}
	var all []PastPush
	for _, t := range reply.GetTransactions() {
		all = append(all, pastPush(t))
	}
	now, err := w.inspectPast(ctx, all)
	if err != nil {
		return nil, err
	}
	versions := versionsOf(reply.GetTransactions(), now)
	for _, push := range all {
		for i := range push.Components {
			c := &push.Components[i]
			c.Version = PastVersion{Before: versions[c.PreviousSHA256], After: versions[c.SHA256]}
			c.Kept = kept(c.SHA256, now[destinationKey(c.Destination)], keeper)
		}
	}
	return all, nil
}

func pastPush(t *agentv1.PastTransaction) PastPush {
	by, command := splitHolder(t.GetHolder())
	push := PastPush{
		Number: int(t.GetNumber()), Transaction: t.GetId(), Journal: t.GetJournal(), By: by, Command: command,
		Begun: t.GetBegun().AsTime(), Ended: timeOf(t.GetEnded()), Result: unfinished, Message: t.GetMessage(),
		Components: []PastComponent{},
	}
	if t.GetEnded() != nil {
		push.Result = word.Of(t.GetResult())
	}
	if name := t.GetFailedComponent(); name != "" {
		push.Message = name + ": " + push.Message
	}
	for _, c := range t.GetComponents() {
		push.Components = append(push.Components, PastComponent{
			Name: c.GetName(), Destination: c.GetDestination(), Service: c.GetService(), Action: word.Of(c.GetAction()),
			SHA256: c.GetSha256(), PreviousSHA256: c.GetPreviousSha256(), brought: c.GetBrought(),
			commandLine: c.GetCommandLine(),
		})
	}
	return push
}

// splitHolder returns the parts of a text of plan.Holder. Another text is returned as it is, without a command.
func splitHolder(holder string) (by, command string) {
	by, rest, found := strings.Cut(holder, ", swdt ")
	if !found {
		return holder, ""
	}
	command, _, _ = strings.Cut(rest, ", process ")
	return by, command
}

func destinationKey(path string) string { return strings.ToLower(strings.ReplaceAll(path, "/", `\`)) }

// mostDestinations bounds the files of the history that the node is asked about.
const mostDestinations = 100

// inspectPast returns the present states of the destinations in the history, by destinationKey.
func (w *work) inspectPast(ctx context.Context, all []PastPush) (map[string]*agentv1.ComponentState, error) {
	var asked []*component
	known := map[string]bool{}
	for _, push := range slices.Backward(all) {
		for _, c := range push.Components {
			if key := destinationKey(c.Destination); !known[key] && len(asked) < mostDestinations {
				known[key] = true
				asked = append(asked, newComponent(w.pastSpec(c)))
			}
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	request := &agentv1.InspectRequest{}
	for _, c := range asked {
		request.Components = append(request.Components, c.inspect())
	}
	reply, err := w.node.Swap.Inspect(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("look at the node: %w", err)
	}
	if got := len(reply.GetComponents()); got != len(asked) {
		return nil, fmt.Errorf("look at the node: asked for %d components, and the node reported %d", len(asked), got)
	}
	states := map[string]*agentv1.ComponentState{}
	for i, c := range asked {
		states[destinationKey(c.spec.Destination)] = reply.GetComponents()[i]
	}
	return states, nil
}

// pastSpec returns the settings of a component of the history: those of the node file if it has the component at the
// same destination, without a wanted version, since that belongs to another file.
func (w *work) pastSpec(c PastComponent) v1alpha1.Provisioner {
	spec := v1alpha1.Provisioner{Name: c.Name, Destination: c.Destination, Service: c.Service}
	for _, p := range w.doc.Node.Spec.Kubernetes.Provisioners {
		if strings.EqualFold(p.Name, c.Name) && destinationKey(p.Destination) == destinationKey(c.Destination) {
			spec = p
		}
	}
	spec.Version, spec.Args = "", nil
	return spec
}

// versionsOf returns the versions that files have reported, by their hashes.
func versionsOf(past []*agentv1.PastTransaction, now map[string]*agentv1.ComponentState) map[string]string {
	versions := map[string]string{}
	add := func(sha256, version string) {
		if sha256 != "" && version != "" {
			versions[sha256] = version
		}
	}
	for _, t := range past {
		for _, c := range t.GetComponents() {
			add(c.GetPreviousSha256(), c.GetPreviousVersion())
			add(c.GetSha256(), c.GetVersion())
		}
	}
	for _, state := range now {
		add(state.GetSha256(), state.GetVersion())
		add(state.GetPreviousSha256(), state.GetPreviousVersion())
	}
	return versions
}

func kept(sha256 string, now *agentv1.ComponentState, keeper Keeper) Kept {
	switch {
	case sha256 == "":
		return KeptNowhere
	case now.GetSha256() == sha256:
		return KeptPresent
	case now.GetPreviousSha256() == sha256:
		return KeptOnNode
	case keeper != nil && keeper.Has(sha256):
		return KeptInCache
	}
	return KeptNowhere
}

// NewHistoryReport returns the report of the histories of nodes, which are about the named components; all if names is
// empty.
func NewHistoryReport(results []fleet.Result[[]PastPush], names []string) HistoryReport {
	report := HistoryReport{Nodes: []NodeHistory{}, results: results, names: names}
	for _, result := range results {
		report.Nodes = append(report.Nodes, NodeHistory{result.Outcome(), append([]PastPush{}, result.Value...)})
	}
	return report
}

// HistoryColumns returns the columns of the table of a HistoryReport of one node. If wide is true, they are those of -o
// wide.
func HistoryColumns(wide bool) []string {
	header := []string{"PUSH", "WHEN", "BY", "COMMAND", "RESULT", "COMPONENT", "VERSION", "HASH", "KEPT"}
	if wide {
		header = append(header, "TRANSACTION", "DESTINATION")
	}
	return append(header, "MESSAGE")
}

// WriteText writes a line for each component of each push. A wide page has more columns.
func (r HistoryReport) WriteText(p *ui.Page) error {
	nothing := "no pushes yet"
	if len(r.names) > 0 {
		nothing = "no push of " + strings.Join(r.names, " or ")
	}
	return fleet.WriteListings(p, r.results, func(all []PastPush) ui.Listing {
		t := ui.Listing{Nothing: nothing, Header: HistoryColumns(p.Wide)}
		for _, push := range all {
			for _, c := range push.Components {
				t.Rows = append(t.Rows, push.row(c, p.Wide))
			}
		}
		return t
	})
}

func (p PastPush) row(c PastComponent, wide bool) []string {
	message, _, _ := strings.Cut(p.Message, "\n")
	row := []string{strconv.Itoa(p.Number), p.Begun.Local().Format(time.DateTime), p.By, p.Command, p.shownResult(c), c.Name,
		c.versions(), c.hashes(), c.Kept.text()}
	if wide {
		row = append(row, p.Transaction, c.Destination)
	}
	return append(row, message)
}

// shownResult returns the end of the push for the component, such as replaced, restarted or rolled back.
func (p PastPush) shownResult(c PastComponent) string {
	switch {
	case p.Result == unfinished:
		return ui.Warn(unfinished)
	case p.Result != committed:
		return ui.Bad(ui.Words(p.Result))
	}
	return ui.Words(c.Action)
}

const committed = "committed"

func (c PastComponent) versions() string {
	both := ComponentResult{Version: Version{Before: c.Version.Before, After: c.Version.After}}
	if !c.brought || c.Version.After == c.Version.Before {
		return ui.Version(c.Version.After)
	}
	return both.versions()
}

func (c PastComponent) hashes() string {
	switch {
	case !c.brought || c.PreviousSHA256 == c.SHA256:
		return ui.Hash(c.SHA256)
	case c.PreviousSHA256 == "":
		return "new " + ui.Hash(c.SHA256)
	}
	return ui.Hash(c.PreviousSHA256) + " → " + ui.Hash(c.SHA256)
}

func (k Kept) text() string {
	return map[Kept]string{KeptPresent: "present", KeptOnNode: "on the node", KeptInCache: "in the cache"}[k]
}
