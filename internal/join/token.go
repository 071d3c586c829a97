package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// withToken calls the function use with a bootstrap token. If the node file has a token, that is
// the token. Otherwise withToken creates a token, and deletes it after use has returned, even if
// use fails.
func (s *kubeadmJoin) withToken(ctx context.Context, n *node.Node, r ui.Reporter,
	use func(token string) error) (err error) {
	if own, err := s.ownToken(); err != nil || own != "" {
		return errors.Join(err, useIf(err == nil, use, own))
	}
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return err
	}
	r.Step("making a bootstrap token")
	token, err := s.options.Cluster.MintToken(ctx, cluster.TokenOptions{Node: name})
	if err != nil {
		return err
	}
	remove := sync.OnceValue(func() error {
		lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearedIn)
		defer cancel()
		return s.options.Cluster.DeleteToken(lasting, token)
	})
	// The token is deleted as soon as ctx ends: after Ctrl-C swdt must end within a second, and
	// kubeadm may need all of that second to end.
	defer context.AfterFunc(ctx, func() { _ = remove() })()
	defer func() {
		if gone := remove(); gone != nil {
			err = errors.Join(err, fmt.Errorf("%w; the token expires at %s", gone, token.Expires.Format(time.TimeOnly)))
		}
	}()
	return use(token.Value())
}

func useIf(condition bool, use func(string) error, token string) error {
	if !condition {
		return nil
	}
	return use(token)
}

// ownToken returns the node file's token; "" if it has none.
func (s *kubeadmJoin) ownToken() (string, error) {
	from := s.spec.Join.TokenFrom
	if from == nil {
		return s.spec.Join.Token, nil
	}
	token, err := s.doc.Secret(*from, s.lookupEnv)
	if err != nil {
		return "", fmt.Errorf("spec.kubernetes.join.tokenFrom: %w", err)
	}
	return strings.TrimSpace(token), nil
}

// kubeadm runs kubeadm join with its configuration in a file that exists only while kubeadm
// runs.
func (s *kubeadmJoin) kubeadm(ctx context.Context, n *node.Node, r ui.Reporter, token string) (err error) {
	content, err := s.configuration(ctx, n, token)
	if err != nil {
		return err
	}
	defer func() {
		lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearedIn)
		defer cancel()
		for _, path := range []string{layout.JoinConfiguration, bootstrapConf} {
			// If the connection is lost, the next run removes the file.
			if gone := smallfile.Remove(lasting, n, path); gone != nil && !lost(gone) {
				err = errors.Join(err, gone)
			}
		}
	}()
	if err := smallfile.Replace(ctx, n, layout.JoinConfiguration, content, smallfile.Administrators); err != nil {
		return err
	}
	output := &kubeadmOutput{reporter: r, secret: token}
	code, err := runKubeadm(ctx, n, output, "join", "--config", layout.JoinConfiguration)
	if err != nil {
		return err
	}
	if code != 0 {
		return &KubeadmError{ExitCode: code, Output: output.text()}
	}
	return nil
}

// runKubeadm runs kubeadm on the node, waits until kubeadm ends, and returns its exit code.
func runKubeadm(ctx context.Context, n *node.Node, output *kubeadmOutput, args ...string) (int, error) {
	cmd := &agentv1.RunCommand{Path: kubeadmExe, Args: args, Folder: `C:\k`,
		Environment: []string{"PATH=" + programPath}}
	code, err := command.Run(ctx, n.Processes, cmd, command.Streams{Stdout: output, Stderr: output})
	if err != nil {
		return 0, fmt.Errorf("run kubeadm %s: %w", args[0], err)
	}
	return code, nil
}

// kubeadmOutput keeps kubeadm's output, without the token, and reports kubeadm's
// progress.
type kubeadmOutput struct {
	reporter ui.Reporter
	secret   string

	mu      sync.Mutex
	lines   []string
	partial string
}

// Write implements io.Writer.
func (o *kubeadmOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial += string(p)
	for {
		line, rest, found := strings.Cut(o.partial, "\n")
		if !found {
			return len(p), nil
		}
		o.partial = rest
		o.add(line)
	}
}

// add stores a line, and drops the oldest line if there are too many.
func (o *kubeadmOutput) add(line string) {
	const most = 200
	line = strings.TrimRight(line, "\r ")
	if o.secret != "" { // kubeadm does not print the token; if it ever does, swdt must not
		_, tokenSecret, _ := strings.Cut(o.secret, ".")
		line = strings.ReplaceAll(line, tokenSecret, "<token>")
	}
	if strings.TrimSpace(line) == "" {
		return
	}
	o.lines = append(o.lines[max(0, len(o.lines)-most+1):], line)
	if strings.HasPrefix(line, "[") {
		o.reporter.Step("kubeadm: %s", line)
	} else {
		o.reporter.Debug("kubeadm: %s", line)
	}
}

func (o *kubeadmOutput) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if strings.TrimSpace(o.partial) != "" {
		o.add(o.partial)
		o.partial = ""
	}
	return strings.Join(o.lines, "\n")
}

func (o *kubeadmOutput) last() string {
	text := o.text()
	return text[strings.LastIndex(text, "\n")+1:]
}
