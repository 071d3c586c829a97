package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// fakeBuild runs for the time `takes`, and then writes kubelet with the number of the build.
type fakeBuild struct {
	*Build
	bench   *bench
	takes   time.Duration
	err     error
	writes  func(n int) // beside the binary
	begun   atomic.Int64
	stopped atomic.Int64
}

func (b *bench) build(patterns ...string) *fakeBuild {
	f := &fakeBuild{bench: b, takes: 4 * time.Second}
	f.Build = &Build{Name: "kubelet", Dir: filepath.Join(b.folder, "src"), Patterns: patterns, Run: f.run}
	return f
}

func (f *fakeBuild) run(ctx context.Context) error {
	n := f.begun.Add(1)
	if err := sleep(ctx, f.takes/2); err != nil {
		f.stopped.Add(1)
		return err
	}
	if f.writes != nil {
		f.writes(int(n))
	}
	if err := sleep(ctx, f.takes/2); err != nil {
		f.stopped.Add(1)
		return err
	}
	if f.err == nil {
		f.bench.rename("kubelet", fmt.Sprintf("build %d.", n))
	}
	return f.err
}

func TestABuildBeginsWithTheWatch(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "old.")
		b.write("src/a.go", "a")
		f := b.build("**/*.go")
		n := b.target("n", b.binary("kubelet", f.Build))
		b.start()
		b.pass(f.takes - 1)
		n.expect("") // the binary that is there is old
		b.pass(1)
		n.expect("kubelet=build 1.")
		b.want("building built pushed")
		b.pass(time.Hour)
		b.want("")
	})
}

func TestASourceChangeBuildsAndPushes(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("src/a.go", "a")
		f := b.build("**/*.go")
		n := b.target("n", b.binary("kubelet", f.Build))
		b.start()
		b.pass(time.Minute)
		b.write("src/readme.md", "not a source")
		b.write("src/.git/x.go", "nor this")
		b.write("src/vendor/x.go", "nor this")
		b.pass(time.Minute)
		n.expect("kubelet=build 1.")
		b.write("src/new/b.go", "b")
		b.notify(filepath.Join(b.folder, "src/new"))
		b.pass(Quiet + f.takes)
		n.expect("kubelet=build 2.")
		if err := os.Remove(filepath.Join(b.folder, "src/new/b.go")); err != nil {
			t.Fatal(err)
		}
		b.notify(filepath.Join(b.folder, "src/new/b.go"))
		b.pass(Quiet + f.takes)
		n.expect("kubelet=build 3.")
	})
}

func TestSourcesWithoutNotifications(t *testing.T) {
	onBench(t, func(b *bench) {
		b.silent, b.refuses = true, true
		b.write("src/a.go", "a")
		f := b.build("**/*.go")
		n := b.target("n", b.binary("kubelet", f.Build))
		b.start()
		b.pass(time.Minute)
		n.expect("kubelet=build 1.")
		b.write("src/a.go", "other")
		b.pass(2*treePoll + f.takes)
		n.expect("kubelet=build 2.")
	})
}

func TestANewerChangeStopsTheBuild(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("src/a.go", "a")
		f := b.build("**/*.go")
		n := b.target("n", b.binary("kubelet", f.Build))
		b.start()
		b.pass(time.Second)
		b.write("src/a.go", "other")
		b.pass(Quiet)
		b.want("building buildStopped building")
		b.pass(f.takes)
		n.expect("kubelet=build 2.")
		if f.stopped.Load() != 1 {
			t.Errorf("%d builds were stopped", f.stopped.Load())
		}
	})
}

// A build has not seen a source file that changes in its last moments.
func TestAChangeThatNobodyToldOfBeforeTheBuildEnds(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("src/a.go", "a")
		f := b.build("**/*.go")
		n := b.target("n", b.binary("kubelet", f.Build))
		b.start()
		b.pass(f.takes - Quiet/2)
		b.write("src/a.go", "other")
		b.pass(Quiet / 2)
		b.want("building buildStopped building")
		b.pass(f.takes)
		n.expect("kubelet=build 2.")
	})
}

func TestAFailedBuildPushesNothing(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("kubelet", "old.")
		b.write("src/a.go", "a")
		f := b.build("**/*.go")
		f.err = errors.New("syntax error")
		n := b.target("n", b.binary("kubelet", f.Build))
		b.start()
		b.pass(time.Hour)
		b.want("building buildFailed")
		n.expect("")
		f.err = nil
		b.write("src/a.go", "repaired")
		b.pass(Quiet + f.takes)
		n.expect("kubelet=build 2.")
	})
}

func TestABuildHoldsAPushUpThatItBelongsTo(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("containerd", "c1.")
		b.write("src/a.go", "a")
		f := b.build("**/*.go")
		n := b.target("n", b.binary("containerd", nil), b.binary("kubelet", f.Build))
		b.start()
		b.pass(f.takes - 1)
		n.expect("")
		b.pass(1)
		n.expect("containerd=c1. kubelet=build 1.")
		f.err = errors.New("syntax error")
		b.write("src/a.go", "b")
		b.pass(Quiet + f.takes)
		b.write("containerd", "c2!.")
		b.pass(Quiet)
		n.expect("containerd=c2!.")
	})
}

// A generator that writes the same source again in each build causes one needless build, not an
// endless loop.
func TestABuildThatWritesItsSourcesAnew(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("src/a.go", "a")
		b.write("src/generated.go", "not yet")
		f := b.build("**/*.go")
		f.writes = func(int) { b.write("src/generated.go", "generated") }
		n := b.target("n", b.binary("kubelet", f.Build))
		b.start()
		b.pass(time.Hour)
		n.expect("kubelet=build 2.")
		b.want("building buildStopped building built pushed")
		b.write("src/a.go", "other")
		b.pass(Quiet + f.takes)
		n.expect("kubelet=build 3.")
	})
}

// A generator that writes a different source in each build is detected.
func TestABuildThatChangesItsSourcesEveryTime(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("src/a.go", "a")
		b.write("src/version.go", "0")
		f := b.build("**/*.go")
		f.writes = func(n int) { b.write("src/version.go", fmt.Sprintf("version %d", n)) }
		n := b.target("n", b.binary("kubelet", f.Build))
		b.start()
		b.pass(time.Hour)
		n.expect("kubelet=build 3.")
		b.want("building buildStopped building buildStopped building buildLoops built pushed")
		b.write("src/a.go", "other")
		b.pass(Quiet + f.takes)
		n.expect("kubelet=build 4.")
		b.write("src/version.go", "by hand") // no build runs: the user wrote it
		b.pass(Quiet + f.takes)
		n.expect("kubelet=build 5.")
	})
}

// The output of the build is no source, even if the patterns match it.
func TestABuildIntoItsOwnFolder(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("a.go", "a")
		f := b.build("**/*")
		f.Dir = b.folder
		n := b.target("n", b.binary("kubelet", f.Build))
		f.patternsWithoutTemporary()
		b.start()
		b.pass(time.Hour)
		n.expect("kubelet=build 1.")
		b.want("building built pushed")
	})
}

// patternsWithoutTemporary leaves out the file that rename leaves for a moment.
func (f *fakeBuild) patternsWithoutTemporary() { f.Patterns = append(f.Patterns, "!**/*.tmp") }

func TestOneBuildForTwoBinaries(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("src/a.go", "a")
		b.write("proxy", "p.")
		f := b.build("**/*.go")
		n := b.target("n", b.binary("kubelet", f.Build), b.binary("proxy", f.Build))
		b.start()
		b.pass(f.takes)
		n.expect("kubelet=build 1. proxy=p.")
		if f.begun.Load() != 1 {
			t.Errorf("%d builds", f.begun.Load())
		}
	})
}

func TestBuildsRunOneAtATime(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("src/a.go", "a")
		b.write("other/a.go", "a")
		b.write("proxy", "p.")
		first := b.build("**/*.go")
		second := &Build{Name: "proxy", Dir: filepath.Join(b.folder, "other"), Patterns: []string{"*.go"}}
		second.Run = func(ctx context.Context) error { return sleep(ctx, 4*time.Second) }
		n := b.target("n", b.binary("kubelet", first.Build), b.binary("proxy", second))
		b.start()
		b.pass(2*first.takes - 1)
		n.expect("")
		b.pass(1)
		n.expect("kubelet=build 1. proxy=p.")
	})
}

func TestQuitStopsABuild(t *testing.T) {
	onBench(t, func(b *bench) {
		b.write("src/a.go", "a")
		f := b.build("**/*.go")
		b.target("n", b.binary("kubelet", f.Build))
		b.start()
		b.pass(time.Second)
		b.commands <- Quit
		if err := <-b.ended; err != nil || f.stopped.Load() != 1 {
			t.Errorf("%v, %d builds were stopped", err, f.stopped.Load())
		}
		b.ended = nil
	})
}

func TestPatterns(t *testing.T) {
	tree := newTree("/src", []string{"**/*.go", "assets/*", "!**/zz_*.go", ".config/x"})
	for path, want := range map[string]bool{
		"a.go": true, "pkg/a.go": true, "pkg/deep/er/a.go": true, "a.goo": false,
		"pkg/zz_a.go": false, "zz_a.go": false,
		"assets/x.html": true, "assets/deep/x.html": false, "vendor/a.go": false, "pkg/vendor/a.go": false,
		".git/a.go":  false,
		".hidden.go": false, ".config/x": true, ".config/y.go": false, "node_modules/a.go": false,
	} {
		segments, ok := tree.segments(filepath.Join("/src", path))
		if got := ok && tree.matches(segments); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
		for i := range segments {
			if want && !tree.canMatchBelow(segments[:i]) {
				t.Errorf("%s: %v is not gone into", path, segments[:i])
			}
		}
	}
	for folder, want := range map[string]bool{"pkg": true, "vendor": false, "pkg/.git": false, ".config": true,
		".config/deep": false} {
		segments, _ := tree.segments(filepath.Join("/src", folder))
		if got := tree.canMatchBelow(segments); got != want {
			t.Errorf("goes into %s: %t, want %t", folder, got, want)
		}
	}
	if tree.concerns("/other/a.go") || tree.concerns("/src/../a.go") {
		t.Error("concerned with what is elsewhere")
	}
}

func TestOnlyTheFoldersOfAPatternAreGoneInto(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"cmd/kubelet/app/a.go", "cmd/other/b.go", "pkg/c.go", "docs/d.go"} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	tree := newTree(folder, []string{"cmd/kubelet/**/*.go", "pkg/**/*.go"})
	found := tree.look(t.Context(), snapshot{})
	var names []string
	for _, path := range found.folders {
		name, err := filepath.Rel(tree.folder, path)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.ToSlash(name))
	}
	slices.Sort(names)
	if want := []string{".", "cmd", "cmd/kubelet", "cmd/kubelet/app", "pkg"}; !reflect.DeepEqual(names, want) {
		t.Errorf("went into %v, want %v", names, want)
	}
	if len(found.files) != 2 {
		t.Errorf("found %v", found.files)
	}
}
