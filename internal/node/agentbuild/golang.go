package agentbuild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// killedDelay bounds the wait for the compilers that a killed go has left.
const killedDelay = 5 * time.Second

// golang runs Go's command, and git.
type golang struct {
	folder  string   // an empty folder, in which the commands run
	environ []string // complete, see environment
}

// NoGoError reports that a program is missing that the build needs.
type NoGoError struct {
	Program string // go or git
	Err     error
}

func (e *NoGoError) Error() string {
	return fmt.Sprintf("there is no %s that can be run, and this swdt has no agent and no probes inside: install Go "+
		"(https://go.dev/dl), or use a swdt that `make build` has built: %v", e.Program, e.Err)
}
func (e *NoGoError) Unwrap() error { return e.Err }

// GoError reports that Go's command, or git, failed.
type GoError struct {
	Command string
	Output  string // its stderr
	Err     error
}

func (e *GoError) Error() string {
	const most = 2000 // bytes, of the end
	output := strings.TrimSpace(e.Output)
	return fmt.Sprintf("%s: %v: %s", e.Command, e.Err, output[max(0, len(output)-most):])
}
func (e *GoError) Unwrap() error { return e.Err }

// compile builds a program, and returns its file in the folder.
func (b *Builder) compile(ctx context.Context, p Program, s source, folder string) (string, error) {
	g, err := b.golang(ctx, folder)
	if err != nil {
		return "", err
	}
	root, err := s.folder(ctx, g)
	if err != nil {
		return "", err
	}
	// The module's own go.mod and go.sum name the dependencies and their hashes, so the environment cannot
	// change them.
	file := filepath.Join(folder, "program")
	g.environ = append(g.environ, "GOOS="+p.System, "GOARCH="+p.Processor)
	args := append([]string{"build", "-C", root, "-mod=readonly", "-o", file}, p.flags...)
	_, err = g.run(ctx, "go", append(args, "./cmd/"+p.Name)...)
	return file, err
}

func (b *Builder) golang(ctx context.Context, folder string) (golang, error) {
	environ := b.Environ
	if environ == nil {
		environ = os.Environ()
	}
	g := golang{folder: folder}
	var err error
	g.environ, err = g.environment(ctx, environ)
	return g, err
}

// kept returns the settings of Go that the build takes from the user, from the environment or from
// `go env -w`: where modules come from, and where they are kept. None of them can change what is built,
// since the sums of swdt and of all its dependencies are known. Any other setting can run programs
// (GOFLAGS with -toolexec, GOCACHEPROG, GOAUTH, CC), or change the source (GOWORK) or the compiler (GOROOT).
func kept() []string {
	return []string{"GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOMODCACHE", "GOCACHE", "GOPATH"}
}

// environment returns the environment of a build: the user's, with no settings of Go but those of kept.
func (g golang) environment(ctx context.Context, environ []string) ([]string, error) {
	var plain, location []string
	for _, setting := range environ {
		name, _, _ := strings.Cut(setting, "=")
		switch name = strings.ToUpper(name); {
		case name == "GOENV":
			location = append(location, setting)
		case isGos(name):
		default:
			plain = append(plain, setting)
			continue
		}
		for _, keep := range kept() {
			if name == keep {
				location = append(location, setting)
			}
		}
	}
	fixed := []string{"GOFLAGS=", "GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0"}
	g.environ = append(append(append([]string{}, plain...), location...), append(fixed, "GOTOOLCHAIN=local")...)
	text, err := g.run(ctx, "go", append([]string{"env", "-json"}, kept()...)...)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return nil, fmt.Errorf("read the settings of Go: %w", err)
	}
	// Go downloads a newer toolchain, if the source needs one, and verifies it by the checksum database alone.
	// So one with a key of its own must not vouch for toolchains.
	toolchain := "auto"
	if strings.Contains(values["GOSUMDB"], "+") {
		toolchain = "local"
	}
	result := append(append([]string{}, plain...), append(fixed, "GOENV=off", "GOTOOLCHAIN="+toolchain)...)
	for _, name := range kept() {
		result = append(result, name+"="+values[name])
	}
	return result, nil
}

// isGos reports whether Go reads this variable, or git in place of its own files.
func isGos(name string) bool {
	for _, prefix := range []string{"GO", "CGO_", "GIT_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "CC" || name == "CXX" || name == "FC" || name == "AR" || name == "PKG_CONFIG"
}

// download brings a module into Go's cache of modules, and returns its folder.
func (g golang) download(ctx context.Context, module string) (string, error) {
	text, err := g.run(ctx, "go", "mod", "download", "-json", module)
	var result struct{ Dir, Error string }
	if parsed := json.Unmarshal([]byte(text), &result); parsed == nil && result.Error != "" {
		return "", &GoError{"go mod download " + module, result.Error, err}
	}
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(result.Dir) {
		return "", fmt.Errorf("go mod download %s printed no folder", module)
	}
	return result.Dir, nil
}

// run runs a program, and returns its stdout.
func (g golang) run(ctx context.Context, name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &NoGoError{name, err}
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = g.folder, g.environ, &stdout, &stderr
	cmd.WaitDelay = killedDelay
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return "", &NoGoError{name, err}
	case err != nil:
		return stdout.String(), &GoError{name + " " + args[0], stderr.String(), err}
	}
	return stdout.String(), nil
}
