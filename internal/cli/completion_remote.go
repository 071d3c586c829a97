package cli

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/maruel/natural"
	"github.com/spf13/cobra"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui"
)

// A completion that needs a node asks it within completionTimeout. It never prompts
// the user, and if anything fails, it offers nothing.

// offeredByNodes collects what the nodes offer, sorted and without duplicates.
func (a *app) offeredByNodes(cmd *cobra.Command, documents []config.Document,
	ask func(context.Context, *node.Node, config.Document) ([]string, error)) []string {
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completionTimeout)
	defer cancel()
	// A node that is reached through its cluster would get a pod for each press of the key.
	documents = slices.DeleteFunc(slices.Clone(a.applyVia(documents)), func(d config.Document) bool {
		return d.Node.Spec.Credentials.Kubernetes != nil
	})
	if len(documents) == 0 {
		return nil
	}
	quiet := *a
	quiet.streams = ui.Streams{Out: io.Discard, Err: io.Discard}
	quiet.env.Builder = builtAlready{a.env.Builder}
	s, err := quiet.sessionFor(documents)
	if err != nil {
		return nil
	}
	var all []string
	for _, result := range onNodes(ctx, s, func(ctx context.Context, n *node.Node, document config.Document,
		_ ui.Reporter) ([]string, error) {
		return ask(ctx, n, document)
	}) {
		all = append(all, result.Value...)
	}
	slices.SortFunc(all, natural.Compare)
	return slices.Compact(all)
}

// completePods completes NAMESPACE/NAME of the pods that run on the selected nodes.
func (a *app) completePods(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return a.completeFromRuntime(cmd, toComplete, func(ctx context.Context, c *criclient.Client) ([]string, error) {
		state := &runtimev1.PodSandboxStateValue{State: runtimev1.PodSandboxState_SANDBOX_READY}
		ready := &runtimev1.PodSandboxFilter{State: state}
		reply, err := c.Runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{Filter: ready})
		var names []string
		for _, pod := range reply.GetItems() {
			names = append(names, pod.GetMetadata().GetNamespace()+"/"+pod.GetMetadata().GetName())
		}
		return names, err
	})
}

// completePodNames completes the same pods as completePods, without their namespaces.
func (a *app) completePodNames(cmd *cobra.Command, args []string, toComplete string) ([]string,
	cobra.ShellCompDirective) {
	return a.partOfPods(cmd, args, toComplete, func(_, name string) string { return name })
}

// completeNamespaces completes the namespaces of the pods on the selected nodes.
func (a *app) completeNamespaces(cmd *cobra.Command, args []string, toComplete string) ([]string,
	cobra.ShellCompDirective) {
	return a.partOfPods(cmd, args, toComplete, func(namespace, _ string) string { return namespace })
}

func (a *app) partOfPods(cmd *cobra.Command, args []string, toComplete string,
	part func(namespace, name string) string) ([]string, cobra.ShellCompDirective) {
	pods, directive := a.completePods(cmd, args, "")
	var parts []string
	for _, pod := range pods {
		namespace, name, _ := strings.Cut(pod, "/")
		parts = append(parts, part(namespace, name))
	}
	slices.SortFunc(parts, natural.Compare)
	return beginningWith(slices.Compact(parts), toComplete), directive
}

// completeSources completes a log's source: a name that swdt knows, or, after pod/,
// a pod of the nodes.
func (a *app) completeSources(cmd *cobra.Command, args []string, toComplete string) ([]string,
	cobra.ShellCompDirective) {
	const ofPod = "pod/"
	if prefix, isPod := strings.CutPrefix(toComplete, ofPod); isPod {
		pods, directive := a.completePods(cmd, args, prefix)
		for i := range pods {
			pods[i] = ofPod + pods[i]
		}
		return pods, directive
	}
	names := []string{ofPod, "file:", "event:"}
	for _, source := range logs.Sources() {
		names = append(names, source.Name)
	}
	return beginningWith(names, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeServices completes NAMESPACE/NAME of the cluster's Services. It asks the
// same cluster as the command.
func (a *app) completeServices(o *clusterOptions) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		quiet := *o
		quiet.noStdin = true
		known, err := askedInTime(cmd, func(ctx context.Context) (hns.Known, error) {
			return a.askCluster(ctx, &quiet, ui.Discard{})
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, service := range known.Services {
			names = append(names, service.Namespace+"/"+service.Name)
		}
		slices.SortFunc(names, natural.Compare)
		return beginningWith(slices.Compact(names), toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNetworks completes the names of the nodes' HNS networks.
func (a *app) completeNetworks(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	documents, err := a.documents()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := a.offeredByNodes(cmd, documents, func(ctx context.Context, n *node.Node, _ config.Document) ([]string,
		error) {
		state, err := hns.Read(ctx, n.Compute)
		var names []string
		for _, network := range state.Networks {
			names = append(names, network.Name)
		}
		return names, err
	})
	return beginningWith(names, toComplete), cobra.ShellCompDirectiveNoFileComp
}

// completeContainers completes NAMESPACE/POD/CONTAINER, for the first argument.
func (a *app) completeContainers(cmd *cobra.Command, args []string, toComplete string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeFromRuntime(cmd, toComplete, func(ctx context.Context, c *criclient.Client) ([]string, error) {
		state := &runtimev1.ContainerStateValue{State: runtimev1.ContainerState_CONTAINER_RUNNING}
		running := &runtimev1.ContainerFilter{State: state}
		reply, err := c.Runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{Filter: running})
		var names []string
		for _, container := range reply.GetContainers() {
			labels := container.GetLabels()
			names = append(names, labels["io.kubernetes.pod.namespace"]+"/"+labels["io.kubernetes.pod.name"]+
				"/"+container.GetMetadata().GetName())
		}
		return names, err
	})
}

func (a *app) completeFromRuntime(cmd *cobra.Command, toComplete string,
	list func(context.Context, *criclient.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	documents, err := a.documents()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := a.offeredByNodes(cmd, documents, func(ctx context.Context, n *node.Node,
		document config.Document) ([]string, error) {
		client, err := criclient.Open(ctx, n, document.RuntimePipe(), criclient.Options{Reconnect: ui.Discard{}})
		if err != nil {
			return nil, err
		}
		defer client.Close()
		return list(ctx, client)
	})
	return beginningWith(names, toComplete), cobra.ShellCompDirectiveNoFileComp
}

func beginningWith(names []string, prefix string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, prefix) || strings.ContainsFunc(name, isControl)
	})
}

// isControl reports whether a character of a node's answer is invisible or could
// control the shell's line.
func isControl(r rune) bool { return !unicode.IsPrint(r) }

// completePlaces completes the arguments of cp: a file of this machine, or a node's
// name with a colon and a path on that node.
func (a *app) completePlaces(cmd *cobra.Command, args []string, toComplete string) ([]string,
	cobra.ShellCompDirective) {
	documents, err := a.documents()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if at := parsePlace(toComplete); at.remote() {
		return a.completeRemote(cmd, documents, at), cobra.ShellCompDirectiveNoSpace
	}
	names := []string{anyNode + ":"}
	for _, document := range documents {
		names = append(names, document.Node.Metadata.Name+":")
	}
	// Without a node's name, the shell completes files of this machine.
	return beginningWith(names, toComplete), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveDefault
}

// completeRemote lists the folder of a partly typed path. It uses the separator that
// the user typed last, since a shell needs two backslashes for one.
func (a *app) completeRemote(cmd *cobra.Command, documents []config.Document, at place) []string {
	chosen, err := onNode(documents, at.node)
	if err != nil {
		return nil
	}
	last := strings.LastIndexAny(at.path, `\/`)
	if last < 0 {
		return []string{at.node + ":C:/"}
	}
	folder, separator := at.path[:last+1], at.path[last:last+1]
	found := a.offeredByNodes(cmd, chosen, func(ctx context.Context, n *node.Node, _ config.Document) ([]string,
		error) {
		reply, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: strings.ReplaceAll(folder, "/", `\`)})
		var paths []string
		for _, entry := range reply.GetEntries() {
			name := entry.GetPath()[strings.LastIndexAny(entry.GetPath(), `\/`)+1:]
			if entry.GetFolder() {
				name += separator
			}
			paths = append(paths, name)
		}
		return paths, err
	})
	var all []string
	for _, name := range found {
		if len(name) >= len(at.path)-last-1 && strings.EqualFold(name[:len(at.path)-last-1], at.path[last+1:]) {
			all = append(all, at.node+":"+at.path+name[len(at.path)-last-1:])
		}
	}
	return beginningWith(all, "")
}
