package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criproxy"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

type criProxyOptions struct {
	listen string
	exec   bool
}

func (a *app) criProxyCommand() *cobra.Command {
	o := &criProxyOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "proxy [flags] [--exec -- CMD [ARG…]]",
		Short: "Relay the node's container runtime to a socket on your machine",
		Long: `Listens on a socket of your account, or on loopback, and relays each connection
to the named pipe of the runtime on the node, over the connection to the node.
crictl, grpcurl, ctr and any other gRPC client work as they are. It runs until
Ctrl-C and reconnects to the node after a lost connection; until then clients
get an error with the reason.

crictl exec -it, attach and port-forward work, too: swdt replaces the URL that
the runtime names by one of a loopback port of your machine, with a secret for
one connection, and relays that connection. A streaming server with TLS is not
relayed.

Each node has a socket of its own, always at the same path. swdt prints the
endpoints as soon as clients can connect. A client that connects controls the
node: only you can open the socket. With a TCP port, swdt listens on loopback
addresses alone, to which any user of your machine can connect.

With --exec a command runs with a socket of its own and with
CONTAINER_RUNTIME_ENDPOINT, IMAGE_SERVICE_ENDPOINT and CONTAINERD_ADDRESS set.
Its exit code is the exit code of swdt.`,
		Example: examples(
			"cri proxy", "until Ctrl-C; then, in another shell: eval $(swdt cri env)",
			"cri proxy --exec -- crictl pods", "for one command",
			"cri proxy --listen tcp://127.0.0.1:0 -o json", "on any free port",
		),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runCRIProxy(cmd.Context(), o, args) },
	})
	cmd.Flags().SetInterspersed(false)
	a.listenFlag(cmd, &o.listen)
	cmd.Flags().BoolVar(&o.exec, "exec", false, "run the command that follows -- and end with it")
	return cmd
}

// listenFlag adds --listen, the address of a node's proxy, to `cri proxy` and to the command
// that prints this address for clients.
func (a *app) listenFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "listen",
		"", "`address` on this machine: unix:///PATH or tcp://127.0.0.1:PORT (default a socket in $XDG_RUNTIME_DIR "+
			"or the cache folder)")
	must(cmd.RegisterFlagCompletionFunc("listen", cobra.FixedCompletions(
		[]string{"unix:///", "tcp://127.0.0.1:0"}, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp)))
}

func (o *criProxyOptions) validate(args []string, nodes int) error {
	var address *criproxy.AddressError
	switch {
	case o.exec && len(args) == 0:
		return usagef("--exec: write the command behind --, as in `swdt cri proxy --exec -- crictl pods`")
	case !o.exec && len(args) > 0:
		return usagef("%q: to run a command beside the proxy write --exec -- %s", args[0], strings.Join(args, " "))
	case o.exec && nodes > 1:
		return usagef("--exec runs the command with one node's runtime, and there are %d nodes: "+
			"choose one with --node", nodes)
	case o.listen == "":
		return nil
	case nodes > 1 && o.listen != anyPort:
		return usagef("--listen %s: %d nodes cannot share this address; leave --listen out, use %s, or "+
			"choose one node with --node",
			o.listen, nodes, anyPort)
	case errors.As(criproxy.Check(o.listen), &address):
		return usagef("--listen %v", address)
	}
	return nil
}

// anyPort listens on any free port.
const anyPort = "tcp://127.0.0.1:0"

// criEndpoint returns the default address of a node's proxy. On Windows the clients
// do not support unix sockets.
func (a *app) criEndpoint(document config.Document) (string, error) {
	if runtime.GOOS == "windows" {
		return anyPort, nil
	}
	folder := a.env.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(folder) { // the XDG specification requires an absolute path
		cache, err := localfile.CacheFolder()
		if err != nil {
			return "", fmt.Errorf("find a folder for the socket: %w; set --listen", err)
		}
		folder = cache
	}
	return "unix://" + filepath.Join(folder, "swdt", "cri", document.Node.Metadata.Name+".sock"), nil
}

// criProxy is the proxy of one node.
type criProxy struct {
	document config.Document
	listener net.Listener
	node     *node.Node
	reporter ui.Reporter
	scratch  *localfile.Staging // has the socket, if it was made for this proxy alone
}

func (a *app) runCRIProxy(ctx context.Context, o *criProxyOptions, args []string) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	if err := o.validate(args, len(s.documents)); err != nil {
		return err
	}
	s.quiet = o.exec
	defer s.story.End()
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()

	proxies, err := a.listenAll(s, o)
	defer closeAll(ctx, proxies)
	if err != nil {
		return err
	}
	results := fleet.Run(ctx, s.documents, a.global.parallel,
		func(ctx context.Context, document config.Document) (*criProxy, error) {
			p := proxies[document.Node.Metadata.Name]
			defer ui.Done(p.reporter)
			n, err := s.connect(ctx, document, p.reporter)
			if err != nil {
				return p, explain(ctx, err)
			}
			p.node = n
			return p, nil
		})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 {
		return failed
	}
	if !o.exec {
		if err := a.printEndpoints(results, proxies); err != nil {
			return err
		}
		return errors.Join(explain(ctx, serveAll(ctx, results)), failed)
	}
	return explain(ctx, a.execBeside(ctx, results[0].Value, args))
}

// listenAll listens for every node before swdt contacts any of them.
func (a *app) listenAll(s *session, o *criProxyOptions) (map[string]*criProxy, error) {
	proxies := map[string]*criProxy{}
	for _, document := range s.documents {
		p := &criProxy{document: document, reporter: s.reporter(document)}
		proxies[document.Node.Metadata.Name] = p
		address, err := a.listenAddress(o, p)
		if err == nil {
			p.listener, err = criproxy.Listen(address)
		}
		if err != nil {
			return proxies, err
		}
	}
	return proxies, nil
}

func (a *app) listenAddress(o *criProxyOptions, p *criProxy) (address string, err error) {
	switch {
	case o.listen != "":
		return o.listen, nil
	case o.exec && runtime.GOOS != "windows":
		// Listen on a socket for this command alone, since another proxy may use the default
		// socket.
		if p.scratch, err = localfile.Scratch(); err != nil {
			return "", err
		}
		return "unix://" + filepath.Join(p.scratch.Path, "cri.sock"), nil
	}
	return a.criEndpoint(p.document)
}

func closeAll(ctx context.Context, proxies map[string]*criProxy) {
	for _, p := range proxies {
		if p.listener != nil {
			_ = p.listener.Close() // the listener is already closed if the proxy has served
		}
		if p.node != nil {
			p.node.Leave(ctx)
		}
		if p.scratch != nil {
			_ = p.scratch.Remove() // if this fails, a later run removes it
		}
	}
}

// serve relays until ctx ends, or until every further attempt to reach the node would fail.
func (p *criProxy) serve(ctx context.Context) error {
	keeper := &criproxy.Keeper{Node: p.node, Pipe: p.document.RuntimePipe(), Reporter: p.reporter}
	return criproxy.Serve(ctx, p.listener, keeper)
}

// serveAll serves the nodes that could be reached, until ctx ends or no node is left.
func serveAll(ctx context.Context, results []fleet.Result[*criProxy]) error {
	var serving sync.WaitGroup
	errs := make([]error, len(results))
	for i, result := range results {
		if result.Err == nil {
			serving.Go(func() { errs[i] = result.Value.serve(ctx) })
		}
	}
	serving.Wait()
	return errors.Join(errors.Join(errs...), context.Cause(ctx))
}

// printEndpoints prints the address of each node's runtime. It closes the listener of a node that
// failed, so that no client waits for an answer of this node.
func (a *app) printEndpoints(results []fleet.Result[*criProxy], proxies map[string]*criProxy) error {
	var list criproxy.Endpoints
	var rows [][]string
	for _, result := range results {
		p := proxies[result.Name()]
		e := criproxy.NewNodeEndpoint(result.Name(), p.listener, result.Err)
		if result.Err != nil {
			p.reporter.Warn("%v", result.Err)
			_ = p.listener.Close() // the node's error is the one to report
		} else {
			rows = append(rows, []string{e.Name, e.Endpoint})
		}
		list.Nodes = append(list.Nodes, e)
	}
	return a.print(list, func(p *ui.Page) error { return ui.Lines(p, rows) })
}

// execGrace is how long an interrupted command may take to end.
const execGrace = 5 * time.Second

// execBeside runs a command with the proxy's endpoint in its environment.
func (a *app) execBeside(ctx context.Context, p *criProxy, args []string) error {
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- p.serve(ctx) }()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin(), ui.Raw(a.streams.Out), ui.Raw(a.streams.Err)
	cmd.WaitDelay = execGrace
	if runtime.GOOS != "windows" {
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	}
	cmd.Env = os.Environ()
	for _, variable := range criproxy.Variables(criproxy.Endpoint(p.listener)) {
		cmd.Env = append(cmd.Env, variable.Name+"="+variable.Value)
	}
	err := wait.Program(cmd)
	ended := context.Cause(ctx)
	stop()
	serving := <-served
	var exited *exec.ExitError
	switch {
	case ended != nil:
		return ended
	case errors.As(err, &exited):
		return errors.Join(&exitError{code: localCode(exited.ExitCode())}, serving)
	case err != nil:
		return fmt.Errorf("run %s: %w; is it installed on this machine?", args[0], err)
	}
	return serving
}
