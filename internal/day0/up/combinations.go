package up

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join/combination"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm/media"
)

// warnEarly warns, before the first stage, of nodes whose Windows is known not to work with the pod network or with the
// programs that their files name. A Windows machine that exists is asked for its build; an ISO has the build of a VM to
// make. If the build stays unknown, or an earlier run has joined the node, the checks of the join look.
func (w *work) warnEarly(ctx context.Context, all []*stage) {
	for _, s := range all {
		if s.kind != Join || w.notes.now().Stages[label(s.kind, s.node)] == succeeded {
			continue
		}
		for _, document := range w.documents {
			if document.Node.Metadata.Name != s.node {
				continue
			}
			w.warnOfCombinations(ctx, document)
			if !wantsSetup(document) && !w.foundBefore(s) { // minutes may pass until the join needs the connection
				w.reconnect(ctx, s.node)
			}
		}
	}
}

// warnOfCombinations warns of one node. It asks the machine only if its build decides.
func (w *work) warnOfCombinations(ctx context.Context, document config.Document) {
	name := document.Node.Metadata.Name
	subject := combination.Subject{}.Planned(document.Node.Spec.Kubernetes).In(w.plannedNetwork())
	if combination.DependsOnWindows(subject) {
		build, product := w.windowsOf(ctx, document)
		if build == "" {
			return
		}
		subject.Build, subject.Product = build, product
	}
	found := combination.Problems(subject)
	if w.warned == nil {
		w.warned = map[string][]finding.Problem{}
	}
	w.warned[name] = found
	finding.Warn(w.Reporter(name), found)
}

// plannedNetwork returns the pod network that the document asks for. For none, an existing cluster may have one, which
// only the checks of the join see.
func (w *work) plannedNetwork() combination.Network {
	if !w.wantsNetwork() {
		return combination.Network{}
	}
	return combination.NetworkTo(w.cluster.Cluster.Spec.Network.Plugin, cluster.CNI{})
}

// windowsOf returns the build and the product of a node's Windows; "" if they are unknown yet.
func (w *work) windowsOf(ctx context.Context, document config.Document) (build, product string) {
	machine := document.Node.Spec.Machine
	switch {
	case machine == nil && w.Connect != nil:
		n, err := w.connect(ctx, document, w.Reporter(document.Node.Metadata.Name))
		if err != nil {
			return "", "" // the stage that needs the machine connects again, and reports the error
		}
		facts, _, err := preflight.Looker{Node: n}.Machine(ctx)
		if err != nil {
			return "", ""
		}
		return facts.Build, facts.Product
	case machine != nil && machine.Image.ISO != "":
		return windowsOnISO(document.Resolve(machine.Image.ISO), machine.Image.Edition)
	}
	return "", ""
}

// windowsOnISO returns the build and the name of an edition on an ISO; "" if the ISO has no such edition, which the stage
// that makes the VM reports.
func windowsOnISO(path, edition string) (build, product string) {
	file, info, err := localfile.OpenRegular(path)
	if err != nil {
		return "", ""
	}
	defer closeRead(file)
	disc, err := media.Inspect(file, info.Size())
	if err != nil {
		return "", ""
	}
	chosen, err := disc.Choose(edition)
	if err != nil {
		return "", ""
	}
	product = chosen.Name
	if chosen.InstallationType != "Client" {
		product = "Windows Server, " + chosen.Name
	}
	return fmt.Sprintf("%d.%d", chosen.Build, chosen.ServicePackBuild), product
}

// closeRead closes a file that was only read.
func closeRead(file *os.File) { _ = file.Close() }

// notYetWarned returns the problems without those that warnEarly has reported.
func (w *work) notYetWarned(name string, problems []finding.Problem) (all []finding.Problem) {
	for _, p := range problems {
		again := func(said finding.Problem) bool { return said.Check == p.Check && said.What == p.What }
		if !slices.ContainsFunc(w.warned[name], again) {
			all = append(all, p)
		}
	}
	return all
}
