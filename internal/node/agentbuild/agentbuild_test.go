package agentbuild_test

import (
	"bytes"
	"context"
	"debug/pe"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/agentbuild"
	"github.com/swdt-dev/swdt/internal/testing/proxytest"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	swdt    = "github.com/swdt-dev/swdt"
	version = "v0.9.0"
	goMod   = "module " + swdt + "\n\ngo 1.26.0\n"
)

// published is a version of swdt whose agent is a few lines, and the builder of a swdt that go install has
// made of it.
type published struct {
	*proxytest.Module
	t       *testing.T
	builder *agentbuild.Builder
}

func publish(t *testing.T) *published {
	t.Helper()
	p := &published{t: t, Module: proxytest.Publish(t, release(), folderWith(t, "agent"), nil)}
	p.Environ = append(os.Environ(), p.Environ...)
	p.builder = &agentbuild.Builder{Environ: p.Environ, Cache: filepath.Join(t.TempDir(), "cache"),
		Info: &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Path: swdt, Version: version, Sum: p.Sum}}}
	return p
}

func release() module.Version { return module.Version{Path: swdt, Version: version} }

// folderWith returns a module whose agent prints a text.
func folderWith(t *testing.T, text string) string {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), goMod)
	write(t, filepath.Join(root, "cmd", "swdt-agent", "main.go"), printing(text))
	return root
}

func printing(text string) string {
	return "package main\n\nfunc main() { println(\"" + text + "\") }\n"
}

func (p *published) build() (agentbin.Agent, error) {
	p.t.Helper()
	return p.builder.Build(p.t.Context(), agentbuild.Agent(), ui.Discard{})
}

// refused requires that a build failed, and that nothing was compiled.
func (p *published) refused(err error) {
	p.t.Helper()
	if err == nil {
		p.t.Fatal("the agent was built")
	}
	if _, err := p.builder.Built(p.t.Context(), agentbuild.Agent()); !errors.Is(err, agentbuild.ErrNotBuilt) {
		p.t.Errorf("the cache: %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, program agentbin.Agent) []byte {
	t.Helper()
	body, err := program.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	all, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The agent is a program for Windows. The cache has it from then on, also if its copy was damaged, and a
// build elsewhere gives the same bytes.
func TestBuild(t *testing.T) {
	p := publish(t)
	built, err := p.build()
	if err != nil {
		t.Fatal(err)
	}
	file, err := pe.NewFile(bytes.NewReader(content(t, built)))
	if err != nil {
		t.Fatal(err)
	}
	if file.Machine != pe.IMAGE_FILE_MACHINE_AMD64 || agentbin.FromBytes(content(t, built)).Hash != built.Hash {
		t.Errorf("machine %#x, hash %s", file.Machine, built.Hash)
	}
	if again, err := p.builder.Built(t.Context(), agentbuild.Agent()); err != nil || again.Hash != built.Hash {
		t.Errorf("from the cache: %s, %v", again.Hash, err)
	}
	kept := filepath.Join(p.builder.Cache, built.Hash)
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the mode of the file: %v, %v", info, err)
	}
	write(t, kept, "damaged")
	if again, err := p.build(); err != nil || again.Hash != built.Hash {
		t.Errorf("after damage: %s, %v", again.Hash, err)
	}
	p.builder.Cache = filepath.Join(t.TempDir(), "cache")
	if again, err := p.build(); err != nil || again.Hash != built.Hash {
		t.Errorf("in another cache: %s, %v", again.Hash, err)
	}
}

// A module that was changed after it was signed is refused before it is compiled: by Go's checksum database,
// and if that is off or the files were changed on this machine, by the sum that is recorded in swdt.
func TestAChangedModuleIsRefused(t *testing.T) {
	evil := proxytest.Zip(t, release(), folderWith(t, "another agent"))
	t.Run("by the checksum database", func(t *testing.T) {
		p := publish(t)
		p.Send(evil)
		_, err := p.build()
		p.refused(err)
		if _, ok := errors.AsType[*agentbuild.GoError](err); !ok {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("by swdt", func(t *testing.T) {
		p := publish(t)
		p.Send(evil)
		p.builder.Environ = append(p.Environ, "GOSUMDB=off", "GONOSUMDB=*", "GOPRIVATE=*", "GONOPROXY=none",
			"GOFLAGS=-mod=mod")
		_, err := p.build()
		p.refused(err)
		if _, ok := errors.AsType[*agentbuild.OtherSourceError](err); !ok {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("after the download", func(t *testing.T) {
		p := publish(t)
		if _, err := p.build(); err != nil {
			t.Fatal(err)
		}
		downloaded := exec.Command("go", "mod", "download", "-json", swdt+"@"+version)
		downloaded.Dir, downloaded.Env = t.TempDir(), append(p.Environ, "GOFLAGS=", "GO111MODULE=on")
		out, err := downloaded.Output()
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(out), `"Dir": "`)
		folder, _, _ := strings.Cut(after, `"`)
		source := filepath.Join(folder, "cmd", "swdt-agent", "main.go")
		if err := errors.Join(os.Chmod(source, 0o600), os.WriteFile(source, []byte(printing("another agent")), 0o600)); err != nil {
			t.Fatal(err)
		}
		p.builder.Cache = filepath.Join(t.TempDir(), "cache")
		_, err = p.build()
		p.refused(err)
		if _, ok := errors.AsType[*agentbuild.OtherSourceError](err); !ok {
			t.Errorf("the error is %v", err)
		}
	})
}

// Settings of Go that run programs or change the source have no effect, from the environment or from the
// file of go env -w.
func TestTheEnvironmentRunsNothing(t *testing.T) {
	p := publish(t)
	clean, err := p.build()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	ran := filepath.Join(folder, "ran")
	script := filepath.Join(folder, "script")
	write(t, script, "#!/bin/sh\ntouch "+ran+"\nexec \"$@\"\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "go.work"), "go 1.26.0\n\nuse ./evil\n")
	write(t, filepath.Join(folder, "evil", "go.mod"), goMod)
	write(t, filepath.Join(folder, "evil", "cmd", "swdt-agent", "main.go"), printing("evil"))
	poison := []string{"GOFLAGS=-toolexec=" + script, "GOWORK=" + filepath.Join(folder, "go.work"),
		"GOCACHEPROG=" + script, "GOROOT=" + folder, "CC=" + script, "GOOS=plan9",
		"GOAUTH=" + script}
	file := filepath.Join(folder, "env")
	write(t, file, strings.Join(poison, "\n")+"\n")
	environs := map[string][]string{"go env -w": append(slices.Clone(p.Environ), "GOENV="+file)}
	for _, setting := range poison {
		environs[setting] = append(slices.Clone(p.Environ), setting)
	}
	for name, environ := range environs {
		p.builder.Environ, p.builder.Cache = environ, filepath.Join(t.TempDir(), "cache")
		if built, err := p.build(); err != nil || built.Hash != clean.Hash {
			t.Errorf("%s: %s, %v; want %s", name, built.Hash, err, clean.Hash)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Fatalf("%s ran a program", name)
		}
	}
}

// A swdt that was built in a checkout takes the agent from it, if it is unchanged, and from nowhere else.
func TestCheckout(t *testing.T) {
	p := publish(t)
	checkout := filepath.Join(t.TempDir(), "swdt")
	write(t, filepath.Join(checkout, "go.mod"), goMod)
	main := filepath.Join(checkout, "cmd", "swdt-agent", "main.go")
	write(t, main, printing("of the checkout"))
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", checkout, "-c", "user.name=t", "-c", "user.email=t@localhost"},
			args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	first := git("rev-parse", "HEAD")
	settings := func(revision, modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: revision},
			{Key: "vcs.modified", Value: modified}}
	}
	p.builder.Checkout = checkout
	p.builder.Info = &debug.BuildInfo{Main: debug.Module{Path: swdt, Version: version}}
	noSource := func(name string) {
		t.Helper()
		_, err := p.build()
		if _, ok := errors.AsType[*agentbuild.NoSourceError](err); !ok {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	noSource("a swdt without a sum or a revision, although its version is published")
	p.builder.Info.Settings = settings(first, "true")
	noSource("a swdt with changes")

	p.builder.Info.Settings = settings(first, "false")
	write(t, main, printing("changed"))
	otherSource := func(name string) {
		t.Helper()
		_, err := p.build()
		p.refused(err)
		if _, ok := errors.AsType[*agentbuild.OtherSourceError](err); !ok {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	otherSource("a checkout with changes")
	git("commit", "-qam", "second")
	otherSource("a checkout of another revision")
	git("checkout", "-q", first)
	built, err := p.build()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(content(t, built), []byte("of the checkout")) {
		t.Error("the agent is not that of the checkout")
	}
}

func TestWithoutGo(t *testing.T) {
	p := publish(t)
	t.Setenv("PATH", t.TempDir())
	_, err := p.build()
	p.refused(err)
	if _, ok := errors.AsType[*agentbuild.NoGoError](err); !ok {
		t.Errorf("the error is %v", err)
	}
}

func TestACancelledBuildEnds(t *testing.T) {
	p := publish(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.builder.Build(ctx, agentbuild.Agent(), ui.Discard{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// The flags are those of the Makefile, so that the programs are the ones that it puts into swdt.
func TestTheFlagsAreTheMakefiles(t *testing.T) {
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.ReplaceAll(string(makefile), "\\\n", " ")
	for name, program := range map[string]agentbuild.Program{"AGENT_FLAGS": agentbuild.Agent(),
		"PROBE_FLAGS": agentbuild.Probe("linux", "arm64")} {
		_, after, _ := strings.Cut(lines, "\n"+name+" := ")
		text, _, _ := strings.Cut(after, "\n")
		out, err := exec.Command("bash", "-c", `printf '%s\n' `+text).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, program.Flags()) {
			t.Errorf("%s has %q, and %s is built with %q", name, got, program, program.Flags())
		}
	}
	if windows := agentbuild.Probe("windows", "amd64"); !slices.Equal(windows.Flags(), agentbuild.Agent().Flags()) {
		t.Errorf("the probe for Windows is built with %q", windows.Flags())
	}
}
