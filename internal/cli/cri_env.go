package cli

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node/criproxy"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) criEnvCommand() *cobra.Command {
	var listen string
	cmd := forNodes(&cobra.Command{
		Use:   "env [flags]",
		Short: "Print the environment variables for clients of swdt cri proxy",
		Long: `Prints shell commands that set CONTAINER_RUNTIME_ENDPOINT,
IMAGE_SERVICE_ENDPOINT and CONTAINERD_ADDRESS to the socket of swdt cri proxy
for this node. The node is not contacted. A warning is printed if no proxy
listens. On Windows, the proxy takes any free port: give both commands the same port
with --listen.`,
		Example: examples(
			`cri env`, "in a shell: eval $(swdt cri env)",
			"cri env -n win2", "of one node among several",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runCRIEnv(cmd.Context(), listen) },
	})
	a.listenFlag(cmd, &listen)
	return cmd
}

func (a *app) runCRIEnv(ctx context.Context, listen string) error {
	documents, err := a.documents()
	if err != nil {
		return err
	}
	address, err := a.proxyAddress(documents, listen)
	if err != nil {
		return err
	}
	if err := checkListening(ctx, address); err != nil {
		text := fmt.Sprintf("no process listens there yet (%v); start one with `swdt cri proxy`", err)
		fmt.Fprintln(a.streams.Err, "swdt: warning: "+a.remedies("", text))
	}
	environment := criproxy.NewEnvironment(documents[0].Node.Metadata.Name, address)
	return a.print(environment, func(w *ui.Page) error {
		for _, v := range criproxy.Variables(address) {
			if _, err := fmt.Fprintf(w, "export %s=%s\n", v.Name, shellQuoted(v.Value)); err != nil {
				return err
			}
		}
		return nil
	})
}

// proxyAddress returns the address that the proxy of the only node listens on.
func (a *app) proxyAddress(documents []config.Document, listen string) (string, error) {
	if len(documents) != 1 {
		return "", usagef("the variables lead to one node's runtime, and there are %d nodes: choose one with --node",
			len(documents))
	}
	address := listen
	if address == "" {
		var err error
		if address, err = a.criEndpoint(documents[0]); err != nil {
			return "", err
		}
	}
	if err := criproxy.Check(address); err != nil {
		return "", usagef("--listen %v", err)
	}
	if strings.HasSuffix(address, ":0") {
		return "", usagef("%s is any free port: give the proxy and this command the same port with --listen", address)
	}
	return address, nil
}

// knock limits the attempt to connect to a proxy that may listen.
const knock = time.Second

func checkListening(ctx context.Context, address string) error {
	network, place, _ := strings.Cut(address, "://")
	conn, err := (&net.Dialer{Timeout: knock}).DialContext(ctx, network, place)
	if err != nil {
		return err
	}
	return conn.Close()
}

// shellQuoted returns text quoted as one word of a POSIX shell.
func shellQuoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
