package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkout is a repository with stages, whose script notes each stage that it runs.
type checkout struct {
	t *testing.T
	*house
}

func newCheckout(t *testing.T) checkout {
	t.Helper()
	root := t.TempDir()
	t.Setenv("SWDT_STAGES", filepath.Join(t.TempDir(), "records"))
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "someone")
	}
	c := checkout{t, &house{root: root}}
	c.write("scripts/stages.txt", `
# a comment
one   | test    | 10 | always | the first
two   | test    | 10 | always | the second
slow  | nightly | 10 | commit | much
other | nightly | 10 | commit | more
kind  | kind    | 10 | inputs | a cluster
`)
	c.write("scripts/inputs/kind.txt", "# what matters\ncode\n:(exclude)code/notes\n")
	c.write("scripts/stage.sh", "#!/bin/sh\necho $1 >>../ran-$(basename \"$PWD\")\n[ ! -e fail-$1 ] || exit 1\n")
	if err := os.Chmod(filepath.Join(root, "scripts/stage.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.write(".gitignore", "bin\nfail-*\n")
	c.write("code/a.go", "package a\n")
	c.git("init", "-q")
	c.commit()
	t.Chdir(root)
	h, err := openHouse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.house = h
	return c
}

func (c checkout) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func (c checkout) git(args ...string) {
	c.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = c.root
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (c checkout) commit() {
	c.t.Helper()
	c.git("add", "-A")
	c.git("commit", "-q", "-m", "a change")
}

// runs runs a tier, and returns the stages whose script ran, and the output.
func (c checkout) runs(tier string, names ...string) (ran, output string, err error) {
	c.t.Helper()
	note := filepath.Join(filepath.Dir(c.root), "ran-"+filepath.Base(c.root))
	if err := os.RemoveAll(note); err != nil {
		c.t.Fatal(err)
	}
	var out bytes.Buffer
	err = c.house.run(c.t.Context(), &out, tier, names)
	text, readErr := os.ReadFile(note)
	if readErr != nil && !os.IsNotExist(readErr) {
		c.t.Fatal(readErr)
	}
	return strings.Join(strings.Fields(string(text)), " "), out.String(), err
}

func (c checkout) expect(want, tier string, names ...string) string {
	c.t.Helper()
	ran, out, err := c.runs(tier, names...)
	if err != nil || ran != want {
		c.t.Fatalf("ran %q, want %q, error %v\n%s", ran, want, err, out)
	}
	return out
}

func TestATierEndsWithItsFirstFailure(t *testing.T) {
	c := newCheckout(t)
	c.expect("one two", "test")
	c.expect("one two", "test") // no record counts
	c.expect("two", "test", "two")
	c.write("fail-one", "")
	ran, out, err := c.runs("test")
	if err == nil || ran != "one" || !strings.Contains(out, "FAILED") {
		t.Errorf("ran %q, error %v\n%s", ran, err, out)
	}
	if _, _, err := c.runs("test", "three"); err == nil {
		t.Error("ran a stage that the table lacks")
	}
	if _, _, err := c.runs("tests"); err == nil {
		t.Error("ran a tier that the table lacks")
	}
}

// A nightly stage counts for the commit at which it passed, and for no other.
func TestARecordCountsForItsCommit(t *testing.T) {
	c := newCheckout(t)
	c.write("fail-slow", "")
	if ran, out, err := c.runs("nightly"); err == nil || ran != "slow other" {
		t.Fatalf("ran %q, error %v: each stage stands for itself\n%s", ran, err, out)
	}
	if err := os.Remove(filepath.Join(c.root, "fail-slow")); err != nil {
		t.Fatal(err)
	}
	out := c.expect("slow", "nightly") // other has passed
	if !strings.Contains(out, "not run: it passed on") {
		t.Errorf("does not say that a record counts:\n%s", out)
	}
	c.expect("", "nightly")
	c.write("code/a.go", "package a // changed\n")
	c.expect("slow other", "nightly")
	c.expect("slow other", "nightly") // of a changed tree there is no record
	c.commit()
	c.expect("slow other", "nightly")
	c.expect("", "nightly")
	var status bytes.Buffer
	if err := c.status(t.Context(), &status, "nightly"); err != nil || strings.Count(status.String(), "passed") != 2 {
		t.Errorf("%v\n%s", err, status.String())
	}
}

func TestARecordCountsForItsInputs(t *testing.T) {
	c := newCheckout(t)
	c.expect("kind", "kind")
	c.write("README.md", "no input")
	c.write("code/notes", "no input")
	c.expect("", "kind")
	c.write("code/new.go", "package a\n") // not committed yet
	c.expect("kind", "kind")
	if err := os.Remove(filepath.Join(c.root, "code/new.go")); err != nil {
		t.Fatal(err)
	}
	c.expect("", "kind")
	c.write("code/a.go", "package b\n")
	c.write("fail-kind", "")
	if _, _, err := c.runs("kind"); err == nil {
		t.Fatal("the failure is lost")
	}
	if err := os.Remove(filepath.Join(c.root, "fail-kind")); err != nil {
		t.Fatal(err)
	}
	c.expect("kind", "kind") // the record of a failure does not count
	c.write("scripts/inputs/kind.txt", "nothing\n")
	if _, err := c.inputs(t.Context(), "kind"); err == nil {
		t.Error("the hash of no file")
	}
}

func TestTheSlowestTestsAreWritten(t *testing.T) {
	c := newCheckout(t)
	c.write("scripts/stage.sh", `#!/bin/sh
cat >"$SWDT_STAGE_FOLDER/unit.json" <<END
{"Action":"pass","Package":"github.com/swdt-dev/swdt/internal/a","Test":"TestQuick","Elapsed":0.1}
not an event
{"Action":"pass","Package":"github.com/swdt-dev/swdt/internal/a","Test":"TestSlow/sub","Elapsed":9}
{"Action":"fail","Package":"github.com/swdt-dev/swdt/internal/b","Test":"TestSlow","Elapsed":12.5}
END
`)
	if _, out, err := c.runs("test", "one"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(c.root, "bin/stages/test.txt"))
	if err != nil || !strings.Contains(string(text), "   12.50  internal/b.TestSlow\n    0.10  internal/a.TestQuick\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestAnExceededBudgetIsNamed(t *testing.T) {
	stages := []stage{{name: "a", budget: 10}, {name: "b", budget: 10}}
	var out bytes.Buffer
	if err := summarize(&out, filepath.Join(t.TempDir(), "test"), stages,
		[]record{{Stage: "a", CPU: 14.9}, {Stage: "b", CPU: 15.1}}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "warning: a ") || !strings.Contains(out.String(), "warning: b took 15 CPU-seconds") {
		t.Error(out.String())
	}
}

// A clone has the same times, and another content another time.
func TestTimesFollowFromContents(t *testing.T) {
	c := newCheckout(t)
	if err := os.Symlink("a.go", filepath.Join(c.root, "code/link")); err != nil {
		t.Fatal(err)
	}
	c.commit()
	times := func(root string, names ...string) (all []string) {
		t.Helper()
		for _, name := range names {
			info, err := os.Stat(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, info.ModTime().String())
		}
		return all
	}
	stamp := func(h *house) {
		t.Helper()
		if err := h.stamp(t.Context(), &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	}
	stamp(c.house)
	clone := filepath.Join(t.TempDir(), "clone")
	c.git("clone", "-q", c.root, clone)
	stamp(&house{root: clone})
	first, second := times(c.root, "code/a.go", "code"), times(clone, "code/a.go", "code")
	if strings.Join(first, " ") != strings.Join(second, " ") {
		t.Errorf("%v in the first, %v in the clone", first, second)
	}
	c.write("code/a.go", "package z\n") // as long as before
	stamp(c.house)
	if now := times(c.root, "code/a.go"); now[0] == first[0] {
		t.Error("a changed file keeps its time")
	}
	c.commit()
	stamp(c.house)
	if now := times(c.root, "code/a.go"); now[0] == first[0] {
		t.Error("another content has the same time")
	}
	c.write("code/b.go", "package z\n")
	c.commit()
	stamp(c.house)
	if now := times(c.root, "code"); now[0] == first[1] {
		t.Error("a folder with another file has the same time")
	}
}

func TestTheTableIsChecked(t *testing.T) {
	for _, text := range []string{"a | test | 10 | always", "a | test | ten | always | x", "a | test | 10 | sometimes | x",
		"a | test | 10 | always | x\na | test | 10 | always | x"} {
		path := filepath.Join(t.TempDir(), "stages.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readTable(path); err == nil || !strings.Contains(err.Error(), "stages.txt:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The repository's own table names each stage that the script has, and its workflow each nightly one.
func TestEachStageHasAScript(t *testing.T) {
	table, err := readTable("../../scripts/stages.txt")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../../scripts/stage.sh")
	if err != nil {
		t.Fatal(err)
	}
	workflow, err := os.ReadFile("../../.github/workflows/nightly.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var nightly []string
	for _, s := range table {
		if s.tier == "nightly" {
			nightly = append(nightly, s.name)
		}
		if !strings.Contains(string(script), "\nstage_"+s.name+"() {") {
			t.Errorf("scripts/stage.sh has no function stage_%s", s.name)
		}
	}
	if jobs := "stage: [" + strings.Join(nightly, ", ") + "]"; !strings.Contains(string(workflow), jobs) {
		t.Errorf("the workflow nightly lacks %q", jobs)
	}
	if functions := strings.Count(string(script), "\nstage_"); functions != len(table) {
		t.Errorf("scripts/stage.sh has %d stages, scripts/stages.txt %d", functions, len(table))
	}
}
