package cli

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/maruel/natural"
	"github.com/spf13/cobra"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/criclient"
	"github.com/swdt-dev/swdt/internal/criproxy"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// A completion that needs a node asks it within completionTimeout. It asks the
// person nothing, and what goes wrong offers nothing.

// offeredByNodes gathers what the nodes offer, sorted and each once.
func (a *app) offeredByNodes(cmd *cobra.Command, documents []config.Document, ask func(context.Context, *node.Node, config.Document) ([]string, error)) []string {
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completionTimeout)
	defer cancel()
	quiet := *a
	quiet.streams = ui.Streams{Out: io.Discard, Err: io.Discard}
	s, err := quiet.sessionFor(documents)
	if err != nil {
		return nil
	}
	var all []string
	for _, result := range onNodes(ctx, s, func(ctx context.Context, n *node.Node, document config.Document, _ ui.Reporter) ([]string, error) {
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
		ready := &runtimev1.PodSandboxFilter{State: &runtimev1.PodSandboxStateValue{State: runtimev1.PodSandboxState_SANDBOX_READY}}
		reply, err := c.Runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{Filter: ready})
		var names []string
		for _, pod := range reply.GetItems() {
			names = append(names, pod.GetMetadata().GetNamespace()+"/"+pod.GetMetadata().GetName())
		}
		return names, err
	})
}

// completeContainers completes NAMESPACE/POD/CONTAINER, for the first argument.
func (a *app) completeContainers(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeFromRuntime(cmd, toComplete, func(ctx context.Context, c *criclient.Client) ([]string, error) {
		running := &runtimev1.ContainerFilter{State: &runtimev1.ContainerStateValue{State: runtimev1.ContainerState_CONTAINER_RUNNING}}
		reply, err := c.Runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{Filter: running})
		var names []string
		for _, container := range reply.GetContainers() {
			labels := container.GetLabels()
			names = append(names, labels["io.kubernetes.pod.namespace"]+"/"+labels["io.kubernetes.pod.name"]+"/"+container.GetMetadata().GetName())
		}
		return names, err
	})
}

func (a *app) completeFromRuntime(cmd *cobra.Command, toComplete string, list func(context.Context, *criclient.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	documents, err := a.documents()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := a.offeredByNodes(cmd, documents, func(ctx context.Context, n *node.Node, document config.Document) ([]string, error) {
		keeper := &criproxy.Keeper{Node: n, Pipe: document.RuntimePipe(), Reporter: ui.Discard{}}
		client, err := criclient.New(ctx, keeper.Dial)
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

// isControl reports whether a character of a node's answer would do something to
// the shell's line.
func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// completePlaces completes what cp takes: a file of this machine, a node's name
// with a colon, and behind it a path on that node.
func (a *app) completePlaces(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
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

// completeRemote lists the folder of a path that is being typed. It takes the
// separator that was typed last, since a shell wants a backslash twice.
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
	found := a.offeredByNodes(cmd, chosen, func(ctx context.Context, n *node.Node, _ config.Document) ([]string, error) {
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
