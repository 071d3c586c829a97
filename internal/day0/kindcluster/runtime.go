package kindcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/swdt-dev/swdt/internal/wait"
)

// The container runtimes that kind can use, in the order in which kind tries them.
const (
	Docker  = "docker"
	Nerdctl = "nerdctl"
	Podman  = "podman"
)

// answerLimit bounds one command of a container runtime.
const answerLimit = 30 * time.Second

// errNoAnswer is the cause of an end by answerLimit.
var errNoAnswer = fmt.Errorf("no answer within %s", answerLimit)

// saveLimit bounds the time for which a container runtime may write an archive with one image.
const saveLimit = 30 * time.Minute

// network is the name of the network in which kind puts its containers.
const network = "kind"

// library is kind's library with a container runtime.
type library struct {
	*kind.Provider
	program string // the runtime's command
}

// OpenKind returns kind's library for a container runtime. If runtime is empty, OpenKind takes the
// first container runtime that answers. kind's messages go to log. If no runtime answers, the
// error is a *NoRuntimeError.
func OpenKind(ctx context.Context, runtime string, log log.Logger) (Kind, error) {
	program, err := find(ctx, runtime)
	if err != nil {
		return nil, err
	}
	return library{kind.NewProvider(kind.ProviderWithLogger(log), optionOf(program)), program}, nil
}

func optionOf(program string) kind.ProviderOption {
	switch program {
	case Nerdctl:
		return kind.ProviderWithNerdctl(Nerdctl)
	case Podman:
		return kind.ProviderWithPodman()
	}
	return kind.ProviderWithDocker()
}

// find checks that a container runtime answers, and returns its program. If runtime is empty, find
// returns the first runtime that answers. kind itself only checks whether the program exists.
func find(ctx context.Context, runtime string) (program string, err error) {
	all := []string{Docker, Nerdctl, Podman}
	switch {
	case runtime != "" && !slices.Contains(all, runtime):
		return "", fmt.Errorf("%q is not a container runtime of kind: use docker, podman or nerdctl", runtime)
	case runtime != "":
		all = []string{runtime}
	}
	refused := &NoRuntimeError{}
	for _, program := range all {
		_, err := output(ctx, program, "ps", "--quiet")
		switch {
		case err == nil:
			return program, nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		}
		refused.Reasons = append(refused.Reasons, err)
	}
	return "", refused
}

// NoRuntimeError means that no container runtime answers.
type NoRuntimeError struct {
	Reasons []error // one for each runtime
}

func (e *NoRuntimeError) Error() string {
	lines := []string{"no container runtime answers: kind needs Docker, Podman or nerdctl"}
	for _, reason := range e.Reasons {
		lines = append(lines, "  "+reason.Error())
	}
	return strings.Join(append(lines, "start one of them, and check with `docker ps` that you may use it; "+
		"with Docker, the members of the group docker may"), "\n")
}

func (e *NoRuntimeError) Unwrap() []error { return e.Reasons }

// output runs a command of a container runtime and returns its standard output. An error contains
// the first line of its standard error.
func output(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errNoAnswer)
	defer cancel()
	var out bytes.Buffer
	err := run(ctx, &out, program, args...)
	return out.String(), err
}

// run runs a command of a container runtime, and writes the command's standard output to stdout.
func run(ctx context.Context, stdout io.Writer, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	command.Stdout, command.Stderr = stdout, &stderr
	err := wait.Program(command)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s: it is not installed: %w", program, exec.ErrNotFound)
	case ctx.Err() != nil:
		return fmt.Errorf("%s %s: %w", program, args[0], context.Cause(ctx))
	}
	first, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	return fmt.Errorf("%s %s: %w: %.300s", program, args[0], err, first)
}

// HasNetwork reports whether kind's network exists. It also returns true if one of kind's
// environment variables names another network, since that network belongs to the user.
func (l library) HasNetwork(ctx context.Context) (bool, error) {
	if os.Getenv("KIND_EXPERIMENTAL_DOCKER_NETWORK")+os.Getenv("KIND_EXPERIMENTAL_PODMAN_NETWORK") != "" {
		return true, nil
	}
	names, err := output(ctx, l.program, "network", "ls", "--format", "{{.Name}}")
	return slices.Contains(strings.Fields(names), network), err
}

// RemoveNetwork removes kind's network. It fails if a container is connected to the network.
func (l library) RemoveNetwork(ctx context.Context) error {
	_, err := output(ctx, l.program, "network", "rm", network)
	return err
}

// Removing reports whether the container runtime is removing a container of a cluster.
func (l library) Removing(ctx context.Context, name string) (bool, error) {
	ids, err := output(ctx, l.program, "ps", "--all", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+name,
		"--filter", "status=removing")
	return ids != "", err
}

// ImageID returns the ID of an image of the container runtime.
func (l library) ImageID(ctx context.Context, image string) (string, error) {
	text, err := output(ctx, l.program, "image", "inspect", image)
	if err != nil {
		return "", fmt.Errorf("look for image %s: %w; `%s pull %s` fetches it", image, err, l.program, image)
	}
	var found []struct{ ID string } // Docker and nerdctl print "Id"; package json ignores the case of names
	if err := json.Unmarshal([]byte(text), &found); err != nil || len(found) == 0 || found[0].ID == "" {
		return "", fmt.Errorf("look for image %s: %s image inspect prints no ID", image, l.program)
	}
	return found[0].ID, nil
}

// ImageArchitecture returns the processor architecture of an image, such as amd64.
func (l library) ImageArchitecture(ctx context.Context, image string) (string, error) {
	text, err := output(ctx, l.program, "image", "inspect", "--format", "{{.Architecture}}", image)
	return goArchitecture(text), err
}

// RuntimeInfo returns facts about the machine on which the container runtime works.
func (l library) RuntimeInfo(ctx context.Context) (RuntimeInfo, error) {
	format := "{{.CgroupVersion}} {{.Architecture}}"
	if l.program == Podman {
		format = "{{.Host.CgroupsVersion}} {{.Host.Arch}}"
	}
	text, err := output(ctx, l.program, "info", "--format", format)
	if err != nil {
		return RuntimeInfo{}, err
	}
	version, architecture, _ := strings.Cut(strings.TrimSpace(text), " ")
	return RuntimeInfo{Architecture: goArchitecture(architecture), OldCgroups: strings.TrimPrefix(version, "v") == "1"}, nil
}

// goArchitecture returns the name that Go gives to a processor architecture.
func goArchitecture(name string) string {
	name = strings.TrimSpace(name)
	if known := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[name]; known != "" {
		return known
	}
	return name
}

// SaveImage writes an archive with an image of the container runtime.
func (l library) SaveImage(ctx context.Context, image string, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, saveLimit)
	defer cancel()
	return run(ctx, to, l.program, "save", image)
}
