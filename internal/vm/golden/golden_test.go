package golden_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/localfile/earlier"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/golden"
	"github.com/swdt-dev/swdt/internal/vm/install"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// place is a user's folder of images, with a driver in which nothing runs.
type place struct {
	*golden.Images
	driver   *simulatedvm.Driver
	machines *vm.Machines
	root     string
}

func newPlace(t *testing.T) place {
	t.Helper()
	store, err := vm.OpenStore(filepath.Join(t.TempDir(), "machines"))
	check(t, err)
	p := place{driver: &simulatedvm.Driver{}, root: filepath.Join(t.TempDir(), "images")}
	p.machines = vm.NewMachines(store, "swdt test", p.driver)
	p.machines.WithTimes(earlier.At(filepath.Join(t.TempDir(), "times.json")))
	p.Images, err = golden.Open(p.root, p.machines)
	check(t, err)
	p.Bound(golden.Options{Fits: func(string, int64) error { return nil }})
	p.machines.WithImages(func() (vm.Images, error) { return p.Images, nil })
	return p
}

// A disk with too little free space ends a build before anything is made.
func TestABuildThatDoesNotFit(t *testing.T) {
	p := newPlace(t)
	full := &localfile.NoRoomError{Folder: p.root}
	var asked int64
	p.Bound(golden.Options{Fits: func(folder string, bytes int64) error {
		if folder != p.root {
			t.Errorf("the space of %s is checked, want that of %s", folder, p.root)
		}
		asked = bytes
		return full
	}})
	_, err := p.Build(t.Context(), document(t, mediatest.WindowsISO(t)), ui.Discard{})
	if !errors.Is(err, full) || asked <= 0 {
		t.Errorf("error %v after %d bytes were asked for, want %v", err, asked, full)
	}
	left, err := os.ReadDir(p.root)
	check(t, err)
	for _, entry := range left {
		if name := entry.Name(); name != ".locks" && name != "hashes.json" {
			t.Errorf("left: %s", name)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// document returns the node file of a VM that is installed from an ISO, with further lines of
// spec.machine.
func document(t *testing.T, iso string, more ...string) config.Document {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.yaml")
	text := fmt.Sprintf(`apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata: {name: win-1}
spec:
  credentials: {username: Administrator}
  machine:
    driver: simulated
    image: {iso: %s%s}
`, iso, strings.Join(more, ""))
	check(t, os.WriteFile(path, []byte(text), 0o600))
	documents, err := config.Load([]string{path}, strings.NewReader(""))
	check(t, err)
	return documents[0]
}

func (p place) build(t *testing.T, d config.Document) (golden.Report, error) {
	t.Helper()
	return p.Build(t.Context(), d, ui.Discard{})
}

// only checks that the folder of images has these entries, besides locks and hashes.
func (p place) only(t *testing.T, expected ...string) {
	t.Helper()
	entries, err := os.ReadDir(p.root)
	check(t, err)
	var names []string
	for _, e := range entries {
		if e.Name() != ".locks" && e.Name() != "hashes.json" {
			names = append(names, e.Name())
		}
	}
	if diff := cmp.Diff(expected, names); diff != "" {
		t.Errorf("the folder of images (-expected +got):\n%s", diff)
	}
}

func TestAnImageIsBuiltOnce(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	synctest.Test(t, func(t *testing.T) {
		report, err := p.build(t, d)
		check(t, err)
		want := []string{"changed", "Windows Server 2022 Standard Evaluation", "10.0.20348.587"}
		got := []string{report.Result, report.Image.Edition, report.Image.Build}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("result, edition and build (-want +got):\n%s", diff)
		}
		p.only(t, report.Image.Key)
		for _, name := range []string{"golden.disk", "manifest.json"} {
			info, err := os.Stat(filepath.Join(report.Image.Folder, name))
			check(t, err)
			if info.Mode().Perm() != 0o444 {
				t.Errorf("%s has mode %v", name, info.Mode())
			}
		}
		again, err := p.build(t, d)
		check(t, err)
		if again.Result != "unchanged" || again.Image.Key != report.Image.Key {
			t.Errorf("%+v", again)
		}
		list, err := p.List(t.Context())
		check(t, err)
		if len(list.Images) != 1 {
			t.Fatalf("%d images, want 1: %+v", len(list.Images), list)
		}
		if is := list.Images[0]; is.State != golden.Ready || is.BuildSeconds < 3 {
			t.Errorf("state %s, built in %v s; want %s, at least 3", is.State, is.BuildSeconds, golden.Ready)
		}
		check(t, p.Remove(t.Context(), report.Image.Key, ui.Discard{}))
		p.only(t)
	})
}

func TestTheKeyCoversWhatGoesIn(t *testing.T) {
	iso, virtio := mediatest.WindowsISO(t), mediatest.VirtioISO(t, "2k22")
	msi := filepath.Join(t.TempDir(), "OpenSSH-Win64.msi")
	check(t, os.WriteFile(msi, []byte("msi"), 0o600))
	p, seen := newPlace(t), map[string]string{}
	for name, more := range map[string]string{
		"as it is": "", "edition": ", edition: standard", "drivers": ", drivers: " + virtio, "OpenSSH": ", openSSH: " + msi,
		"product key": ", productKey: AAAAA-BBBBB-CCCCC-DDDDD-EEEEE",
		"time zone":   "}\n    timeZone: W. Europe Standard Time #", "bus": "}\n    diskBus: virtio #",
		"disk": "}\n    disk: 100Gi #", "TPM": "}\n    firmware: {tpm: true",
	} {
		plan, err := p.Plan(t.Context(), document(t, iso, more), ui.Discard{})
		check(t, err)
		if other, taken := seen[plan.Image.Key]; taken {
			t.Errorf("%s: the same key as %s", name, other)
		}
		seen[plan.Image.Key] = name
		again, err := p.Plan(t.Context(), document(t, iso, more), ui.Discard{})
		check(t, err)
		if again.Image.Key != plan.Image.Key {
			t.Errorf("%s: the key differs each time", name)
		}
	}
	p.only(t)
}

func TestAFailedInstallationIsExplained(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	p.driver.Frames = []simulatedvm.Frame{{Written: 1, Serial: "SWDT stage=sshd error the service\x1b[2J is gone\r\n"}}
	synctest.Test(t, func(t *testing.T) {
		_, err := p.build(t, d)
		var failed *golden.BuildError
		if !errors.As(err, &failed) || failed.Cause != install.ScriptFailed {
			t.Fatalf("got %v", err)
		}
		for _, words := range []string{"sshd: the service", failed.Screen, "SWDT stage=sshd error", failed.Remedy()} {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("the error lacks %q: %v", words, err)
			}
		}
		if strings.Contains(err.Error(), "\x1b") {
			t.Error("the guest's escape sequence reaches the terminal")
		}
		if _, err := os.Stat(failed.Screen); err != nil {
			t.Error(err)
		}
		list, err := p.List(t.Context())
		check(t, err)
		keys := p.Keys()
		if len(list.Images) != 1 {
			t.Fatalf("%d images, want 1: %+v", len(list.Images), list)
		}
		is, remedy := list.Images[0], "vm image remove "+keys[0]
		if is.State != golden.Failed || !strings.Contains(is.Reason, remedy) {
			t.Errorf("state %s, reason %q; want %s, %q", is.State, is.Reason, golden.Failed, remedy)
		}
		p.only(t, ".failed-"+keys[0])
		p.driver.Frames = nil
		_, err = p.build(t, d)
		check(t, err)
		p.only(t, keys[0])
	})
}

// Many builds of one image at once make it once.
func TestBuildsSideBySide(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	results := make(chan string, 4)
	var all sync.WaitGroup
	for range cap(results) {
		all.Go(func() {
			report, err := p.Build(t.Context(), d, ui.Discard{})
			if err != nil {
				t.Error(err)
			}
			results <- report.Result
		})
	}
	all.Wait()
	close(results)
	count := map[string]int{}
	for result := range results {
		count[result]++
	}
	if diff := cmp.Diff(map[string]int{"changed": 1, "unchanged": 3}, count); diff != "" {
		t.Error(diff)
	}
}

func TestEmulationMustBeAskedFor(t *testing.T) {
	p, iso := newPlace(t), mediatest.WindowsISO(t)
	p.driver.Slow = true
	synctest.Test(t, func(t *testing.T) {
		_, err := p.build(t, document(t, iso))
		var refused *golden.EmulatedError
		if !errors.As(err, &refused) {
			t.Fatalf("got %v", err)
		}
		p.only(t)
		report, err := p.build(t, document(t, iso, "}\n    accelerator: tcg #"))
		check(t, err)
		if report.Image.Accelerator != "tcg" {
			t.Errorf("%+v", report)
		}
	})
}

// A fault at each operation of the driver leaves no VM, no CD and no image.
func TestFaultsLeaveNothing(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	broken := errors.New("broken")
	for _, operation := range []string{"create", "start", "publish"} {
		synctest.Test(t, func(t *testing.T) {
			p.driver.Fault = func(now string, _ vm.Machine) error {
				if now == operation {
					return broken
				}
				return nil
			}
			if _, err := p.build(t, d); !errors.Is(err, broken) {
				t.Errorf("%s: got %v", operation, err)
			}
			p.only(t)
		})
	}
}

// A build that was killed is listed, and the next build ends its VM and removes it.
func TestAKilledBuildIsDiscarded(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	synctest.Test(t, func(t *testing.T) {
		p.driver.Fault = func(now string, m vm.Machine) error {
			if now == "kill" || now == "delete" {
				return errors.New("as if swdt had been killed")
			}
			return nil
		}
		p.driver.Frames = []simulatedvm.Frame{{State: vm.Paused, Reason: "its guest has panicked"}}
		if _, err := p.build(t, d); err == nil {
			t.Fatal("the build succeeded")
		}
		p.driver.Fault, p.driver.Frames = nil, nil
		list, err := p.List(t.Context())
		check(t, err)
		if len(list.Images) != 1 || list.Images[0].State != golden.Interrupted {
			t.Fatalf("%+v", list)
		}
		_, err = p.build(t, d)
		check(t, err)
	})
	p.only(t, p.Keys()...)
}

// steps are the steps that were reported.
type steps struct {
	ui.Discard
	all []string
}

func (s *steps) Step(format string, args ...any) { s.all = append(s.all, fmt.Sprintf(format, args...)) }

func TestAnEarlierBuildGivesTheEstimate(t *testing.T) {
	p, iso := newPlace(t), mediatest.WindowsISO(t)
	synctest.Test(t, func(t *testing.T) {
		first, second := &steps{}, &steps{}
		_, err := p.Build(t.Context(), document(t, iso), first)
		check(t, err)
		_, err = p.Build(t.Context(), document(t, iso, ", edition: standard"), second)
		check(t, err)
		if got := strings.Join(first.all, "\n"); strings.Contains(got, "left") {
			t.Errorf("the first build has an estimate:\n%s", got)
		}
		estimate := "start Windows Setup from the CD (about 4 s left, as before)"
		if got := strings.Join(second.all, "\n"); !strings.Contains(got, estimate) {
			t.Errorf("the second build lacks the estimate:\n%s", got)
		}
	})
}

func TestTheHashIsCompared(t *testing.T) {
	p, iso := newPlace(t), mediatest.WindowsISO(t)
	for range 2 { // the second time it is remembered
		_, err := p.build(t, document(t, iso, ", sha256: "+strings.Repeat("0", 64)))
		var refused *config.Error
		problem := "node.yaml:8: spec.machine.image.sha256: is not the hash of"
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), problem) {
			t.Errorf("got %v", err)
		}
	}
	p.only(t)
}

func TestTheBuildIsBounded(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	p.driver.Frames = []simulatedvm.Frame{{}}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, err := p.build(t, d)
		var failed *golden.BuildError
		if !errors.As(err, &failed) || failed.Cause != install.NotBooted {
			t.Fatalf("got %v", err)
		}
		if took := time.Since(begun); took > time.Hour {
			t.Errorf("it took %s", took)
		}
	})
}
