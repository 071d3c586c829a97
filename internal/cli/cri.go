package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) criCommand() *cobra.Command {
	cmd := group("cri", "Query the container runtime, or relay it to your machine",
		a.criProxyCommand(), a.criEnvCommand(),
		a.criAskCommand("version", "Print the name and version of the runtime", "", fixed(criclient.Version)),
		a.criAskCommand("status", "Print whether the runtime and its pod network are ready",
			"JSON and YAML have the runtime's own configuration too.", fixed(criclient.Status)),
		a.criAskCommand("pods", "List all pod sandboxes", "", fixed(criclient.Pods)),
		a.criAskCommand("containers", "List all containers, including those that have ended", "",
			fixed(criclient.Containers)),
		a.criAskCommand("images", "List all images, and which of them the node can run",
			`The table shows the Windows that each image was made for, if the image and the
runtime report it (containerd does), and whether this node can run it:

  yes           with process isolation
  hyper-v only  it is older than process isolation allows
  no, too new   it is newer than the node's Windows, with either isolation
  unknown       the runtime or the image does not report it

HostProcess containers use nothing of their image's Windows: they run anyway.`, forBuild(criclient.Images)),
		a.criAskCommand("stats", "Print the CPU and memory usage of containers",
			`CORES is usageNanoCores and CPU TIME usageCoreNanoSeconds, as the runtime gives
them. A value that it does not give is printed as -, which is not 0.`, fixed(criclient.Stats)),
	)
	cmd.Long = `Asks the node's containerd over its Container Runtime Interface, which listens
on a named pipe of the node. The SSH connection carries the requests: no port is
opened on the node.

cri proxy relays the pipe to a socket on your machine for crictl, grpcurl, ctr
and other gRPC clients; the other commands need no client.`
	cmd.Example = examples(
		"cri images", "all images, and whether the node can run each",
		"cri proxy --exec -- crictl ps", "crictl of your machine",
		"cri proxy & eval $(swdt cri env)", "for all commands of this shell",
	)
	return cmd
}

// asking is a function that returns the question for a node. swdt calls it after it has
// connected to the node.
type asking func(context.Context, *node.Node) (criclient.Question, error)

func fixed(q criclient.Question) asking {
	return func(context.Context, *node.Node) (criclient.Question, error) { return q, nil }
}

// forBuild returns an asking function for a question that depends on the node's Windows build.
func forBuild(question func(host string) criclient.Question) asking {
	return func(ctx context.Context, n *node.Node) (criclient.Question, error) {
		facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
		if err != nil {
			return nil, fmt.Errorf("ask the node for its Windows: %w", err)
		}
		return question(facts.GetBuild()), nil
	}
}

// crictlNames returns what crictl calls the commands.
func crictlNames() map[string][]string {
	return map[string][]string{
		"pods": {"podsandboxes", "sandboxes", "po"}, "containers": {"ps", "inspect"}, "images": {"image", "img"},
		"status": {"info"}, "stats": {"statsp", "top"},
	}
}

func (a *app) criAskCommand(name, short, long string, ask asking) *cobra.Command {
	text := short + "."
	if long != "" {
		text += "\n\n" + long
	}
	return forNodes(&cobra.Command{
		Use: name + " [flags]", Short: short, SuggestFor: crictlNames()[name],
		Long: text + `

In JSON and YAML, "answer" of each node is the message of the CRI, as crictl
prints it.`,
		Example: examples("cri "+name, "", "cri "+name+" -o json", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runCRI(cmd.Context(), ask) },
	})
}

func (a *app) runCRI(ctx context.Context, ask asking) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (answer criclient.Answer, err error) {
		question, err := ask(ctx, n)
		if err != nil {
			return answer, err
		}
		client, err := criclient.Open(ctx, n, doc.RuntimePipe(), criclient.Options{Reconnect: r})
		if err != nil {
			return answer, err
		}
		defer func() { err = errors.Join(err, client.Close()) }()
		return question(ctx, client)
	})
	return a.printAnswers(results)
}

func (a *app) printAnswers(results []fleet.Result[criclient.Answer]) error {
	failed := fleet.Failures(results)
	if len(results) == 1 && failed != nil && a.inText() {
		return failed
	}
	report := criclient.NewReport(results)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return failed
}
