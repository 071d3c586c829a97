package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/viapod"
	"github.com/swdt-dev/swdt/internal/ui/result"
)

// viaKubernetes is the only value of --via, before its settings.
const viaKubernetes = "kubernetes"

// viaFlag is the value of --via: how the nodes are reached, instead of what their files say.
type viaFlag struct {
	text         string // as the user typed it; "": the flag is not set
	implied      bool   // the user did not type it: kubectl runs swdt
	settings     v1alpha1.ThroughKubernetes
	keep, shared bool
	pull         time.Duration // 0: the default
}

func (f *viaFlag) String() string { return f.text }
func (f *viaFlag) Type() string   { return "way" }

// Set reads kubernetes[,NAME=VALUE…][,keep][,shared].
func (f *viaFlag) Set(text string) error {
	parts := strings.Split(text, ",")
	if parts[0] != viaKubernetes {
		return fmt.Errorf("%q is not a way to reach nodes: use %s; without --via, the node file decides", parts[0],
			viaKubernetes)
	}
	read := viaFlag{text: text}
	for _, part := range parts[1:] {
		name, value, hasValue := strings.Cut(part, "=")
		switch {
		case name == "keep" && !hasValue:
			read.keep = true
		case name == "shared" && !hasValue:
			read.shared = true
		case name == "kubeconfig" && value != "":
			path, err := filepath.Abs(value)
			if err != nil {
				return err
			}
			read.settings.Kubeconfig = path
		case name == "context" && value != "":
			read.settings.Context = value
		case name == "namespace" && value != "":
			read.settings.Namespace = value
		case name == "image" && value != "":
			read.settings.Image = value
		case name == "pull" && value != "":
			limit, err := time.ParseDuration(value)
			if err != nil || limit <= 0 {
				return fmt.Errorf("pull=%s of %s: write how long the pull of the pod's image may take, such as 30m", value,
					viaKubernetes)
			}
			read.pull = limit
		case hasValue && value == "" && slices.Contains([]string{"kubeconfig", "context", "namespace", "image", "pull"}, name):
			return fmt.Errorf("%s of %s has no value", name, viaKubernetes)
		default:
			return fmt.Errorf("%q is not a setting of %s: use kubeconfig=FILE, context=NAME, namespace=NAME, image=NAME, "+
				"pull=TIME, keep and shared, with commas", part, viaKubernetes)
		}
	}
	*f = read
	return nil
}

// apply returns the documents with the way of the flag. The names of the Nodes stay those of the files.
func (f *viaFlag) apply(documents []config.Document) []config.Document {
	if f.text == "" {
		return documents
	}
	changed := slices.Clone(documents)
	for i := range changed {
		way := v1alpha1.ThroughKubernetes{}
		if own := changed[i].Node.Spec.Credentials.Kubernetes; own != nil {
			way = *own
		}
		for _, each := range []struct{ to, from *string }{
			{&way.Kubeconfig, &f.settings.Kubeconfig}, {&way.Context, &f.settings.Context},
			{&way.Namespace, &f.settings.Namespace}, {&way.Image, &f.settings.Image},
		} {
			if *each.from != "" {
				*each.to = *each.from
			}
		}
		if way.Node == "" {
			way.Node = node.LikelyObjectName(changed[i].Node)
		}
		changed[i].Node.Spec.Credentials = v1alpha1.Credentials{Kubernetes: &way}
		changed[i].Node.Spec.Machine = nil
	}
	return changed
}

// applyVia returns the documents with the way of --via, through the cluster that this invocation names. A node whose file
// leads through a cluster that it does not name is in that cluster, too.
func (a *app) applyVia(documents []config.Document) []config.Document {
	way, named := a.global.via, a.clusterOfVia()
	way.settings.Kubeconfig, way.settings.Context = named.kubeconfig, named.context
	changed := slices.Clone(way.apply(documents))
	for i := range changed {
		own := changed[i].Node.Spec.Credentials.Kubernetes
		if own == nil || own.Kubeconfig != "" || own.Context != "" {
			continue
		}
		through := *own
		through.Kubeconfig, through.Context = named.kubeconfig, named.context
		changed[i].Node.Spec.Credentials.Kubernetes = &through
	}
	return changed
}

// clusterOfVia returns the cluster that the settings of --via name; a setting that they lack is that of --kubeconfig or
// --context.
func (a *app) clusterOfVia() clusterOptions {
	own := a.global.via.settings
	named := clusterOptions{kubeconfig: own.Kubeconfig, context: own.Context}
	if a.invoked != nil && a.invoked.Annotations[makesCluster] != "" {
		return named // --kubeconfig gets the new cluster
	}
	kubeconfig := a.invokedWith("kubeconfig")
	if path, err := filepath.Abs(kubeconfig); err == nil && kubeconfig != "" {
		kubeconfig = path
	}
	named.kubeconfig = cmp.Or(named.kubeconfig, kubeconfig)
	named.context = cmp.Or(named.context, a.invokedWith("context"))
	return named
}

// with returns the value of --via that a proposed command names, with the settings of this invocation that the
// proposed one does not set.
func (f *viaFlag) with(proposed string) string {
	if f.text == "" || proposed == "" {
		return cmp.Or(proposed, f.text)
	}
	name := func(setting string) string {
		name, _, _ := strings.Cut(setting, "=")
		return name
	}
	settings := strings.Split(proposed, ",")
	for _, own := range strings.Split(f.text, ",")[1:] {
		if !slices.ContainsFunc(settings[1:], func(s string) bool { return name(s) == name(own) }) {
			settings = append(settings, own)
		}
	}
	return strings.Join(settings, ",")
}

// printRBAC prints the least role of the way through the cluster if that is all that the user wants. It contacts
// nothing.
func (a *app) printRBAC() error {
	if !a.global.printRBAC {
		return nil
	}
	if format := a.global.output; format != "" && format != result.Text && format != result.YAML {
		return usagef("--print-rbac prints YAML for kubectl apply: leave -o %s out, or use -o yaml", format)
	}
	namespaces, err := a.viaNamespaces()
	if err != nil {
		return err
	}
	lists := a.global.selector != "" && a.choosesInCluster()
	for i, namespace := range namespaces {
		text := viapod.Manifest(namespace, lists)
		if i > 0 {
			text = "---\n" + text
		}
		_, printErr := fmt.Fprint(a.streams.Out, text)
		err = errors.Join(err, printErr)
	}
	return errors.Join(err, &exitError{code: exitDone})
}

// viaNamespaces returns the namespaces of the pods: that of --via, or those that the node files name. "" is the
// default.
func (a *app) viaNamespaces() (namespaces []string, err error) {
	if own := a.global.via.settings.Namespace; own != "" || a.choosesInCluster() {
		return []string{own}, nil
	}
	documents, err := a.documents()
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		if k := document.Node.Spec.Credentials.Kubernetes; k != nil {
			namespaces = append(namespaces, k.Namespace)
		}
	}
	if len(namespaces) == 0 {
		return nil, usagef("--print-rbac prints the role for a way through the cluster, and these nodes are reached by SSH: "+
			"use it with --via %s, or give a node spec.credentials.kubernetes", viaKubernetes)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), nil
}

// needsSSH lists the commands that reach a machine by SSH alone: they work on machines that are not nodes
// yet, or no longer.
func needsSSH() []string { return []string{"join", "reset", "up", "down", "vm", "image bake"} }

// checkWay returns an error if the command needs SSH, and a node is reached through its cluster.
func (a *app) checkWay(documents []config.Document) error {
	path, needs := a.invokedNeedsSSH()
	if !needs {
		return nil
	}
	for _, document := range documents {
		if document.Node.Spec.Credentials.Kubernetes != nil {
			return usagef("%s needs SSH, and %s is reached through its cluster: give it spec.credentials.hostname instead",
				path, document.Node.Metadata.Name)
		}
	}
	return nil
}

// needsNodeFile returns an error if the command needs SSH, which no label of the cluster leads to.
func (a *app) needsNodeFile() error {
	if path, needs := a.invokedNeedsSSH(); needs {
		return usagef("%s needs SSH: leave --via out, and name a node file with -c", path)
	}
	return nil
}

// invokedNeedsSSH returns the command without the program's name, and reports whether it needs SSH.
func (a *app) invokedNeedsSSH() (path string, needs bool) {
	if a.invoked == nil {
		return "", false
	}
	path = pathBelow(a.invoked)
	return path, isOf(path, needsSSH())
}

// completeVia completes the settings of --via.
func completeVia(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	before := ""
	if i := strings.LastIndex(toComplete, ","); i >= 0 {
		before = toComplete[:i+1]
	}
	all := []string{viaKubernetes}
	if before != "" {
		all = nil
		for _, setting := range []string{"context=", "image=", "keep", "kubeconfig=", "namespace=", "pull=", "shared"} {
			all = append(all, before+setting)
		}
	}
	return beginningWith(all, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
