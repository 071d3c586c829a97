package agent_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/agent/custody"
	"github.com/swdt-dev/swdt/internal/agent/pktmon"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	uploaded = `C:\Users\Administrator\swdt-agent-upload.exe`
	evil     = "EVIL"
	secret   = "the bootstrap token"
)

// installer is a machine with an agent in the administrator's profile.
type installer struct {
	*simulated.Machine
	agent []byte
	hash  string
}

func newInstaller(t *testing.T) *installer {
	t.Helper()
	content := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Version: "v0.0.0"})
	sum := sha256.Sum256(content)
	i := &installer{newMachine(t, simulated.Options{Preset: simulated.Minimal}), content, hex.EncodeToString(sum[:])}
	i.WriteFile(uploaded, content)
	return i
}

func (i *installer) path() string { return layout.Agent(i.hash) }

// install runs the uploaded agent once, as swdt does at the first contact.
func (i *installer) install(t *testing.T) handshake.Installed {
	t.Helper()
	var stdout, stderr bytes.Buffer
	m := agent.Machine{Platform: i.Process("install"), Executable: uploaded, Hash: i.hash}
	code := agent.Main(t.Context(), m, []string{handshake.InstallArgument}, strings.NewReader(""), &stdout, &stderr)
	result, ok := handshake.FindInstalled("Welcome to win!\r\n" + stdout.String())
	if !ok || (code == 0) != (result.Failure == "") {
		t.Fatalf("exit code %d, printed %q, %q", code, stdout.String(), stderr.String())
	}
	return result
}

// isSafe fails unless this very agent is installed, and no other user can change it or any folder above it.
func (i *installer) isSafe(t *testing.T) {
	t.Helper()
	files := i.Process("look").Files
	for path := i.path(); len(path) >= len(layout.Root); path = path[:strings.LastIndex(path, `\`)] {
		sddl, err := files.ACL(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := files.Stat(path)
		list, parsed := access.Parse(sddl)
		switch {
		case err != nil:
			t.Fatalf("%s: %v", path, err)
		case parsed != nil:
			t.Fatalf("%s: parsed is %v, want nil", path, parsed)
		case !list.Exclusive():
			t.Fatalf("%s: list.Exclusive() is false, want true", path)
		case info.Link:
			t.Fatalf("%s: info.Link is true, want false", path)
		}
	}
	if content, err := i.ReadFile(i.path()); err != nil || !bytes.Equal(content, i.agent) {
		t.Fatalf("another agent stands there: %.20q, %v", content, err)
	}
}

func TestInstall(t *testing.T) {
	i := newInstaller(t)
	switch result := i.install(t); {
	case result.Failure != "":
		t.Fatalf(`result.Failure is %q, want ""`, result.Failure)
	case result.Kept:
		t.Fatal("result.Kept is true, want false")
	case result.MovedAside != "":
		t.Fatalf(`result.MovedAside is %q, want ""`, result.MovedAside)
	case result.Path != i.path():
		t.Fatalf("result.Path is %v, want %v", result.Path, i.path())
	}
	i.isSafe(t)
	for _, op := range i.Operations() {
		if op.Kind == simulated.OpACL {
			t.Errorf("an access list was changed, rather than given at birth: %v", op)
		}
	}
	if files := i.Snapshot(layout.Root); len(files) != 1 {
		t.Errorf("left %v", files)
	}
}

// The first contact of a second user changes nothing, not even temporarily.
func TestInstallLeavesAnAgentAloneThatIsThere(t *testing.T) {
	i := newInstaller(t)
	i.install(t)
	i.ForgetOperations()
	if result := i.install(t); result.Failure != "" || !result.Kept {
		t.Fatalf("got %+v", result)
	}
	if changes := i.Operations(); len(changes) != 0 {
		t.Errorf("changed %v", changes)
	}
}

func TestInstallReplacesADamagedAgent(t *testing.T) {
	i := newInstaller(t)
	i.install(t)
	i.WriteFile(i.path(), []byte("half of it"))
	if result := i.install(t); result.Failure != "" || result.Kept {
		t.Fatalf("got %+v", result)
	}
	i.isSafe(t)
}

func TestInstallSaysWhyNot(t *testing.T) {
	t.Run("an ordinary user", func(t *testing.T) {
		i := newInstaller(t)
		var stdout bytes.Buffer
		i.WriteFile(`C:\Windows\Temp\agent.exe`, i.agent)
		m := agent.Machine{Platform: i.SpawnAs("install", simulated.User).Platform,
			Executable: `C:\Windows\Temp\agent.exe`, Hash: i.hash}
		agent.Main(t.Context(), m, []string{handshake.InstallArgument}, strings.NewReader(""), &stdout, io.Discard)
		if result, _ := handshake.FindInstalled(stdout.String()); result.Failure != handshake.NotAllowed {
			t.Errorf("got %+v", result)
		}
	})
	t.Run("a full disk", func(t *testing.T) {
		i := newInstaller(t)
		i.SetFreeBytes(10)
		if result := i.install(t); result.Failure != handshake.DiskFull {
			t.Errorf("got %+v", result)
		}
	})
	t.Run("a root that cannot be moved", func(t *testing.T) {
		i := newInstaller(t)
		user := i.SpawnAs("user.exe", simulated.User)
		if err := user.Platform.Files.MakeFolder(layout.Root); err != nil {
			t.Fatal(err)
		}
		if _, err := user.Hold(layout.Root, access.ReadData, true); err != nil {
			t.Fatal(err)
		}
		if result := i.install(t); result.Failure != handshake.Foreign ||
			!strings.Contains(result.Message, "end the processes") {
			t.Errorf("got %+v", result)
		}
	})
}

// A journal planted by another user would make the guardian, which is SYSTEM, give services command lines of that
// user's choice.
func TestAPlantedJournalIsNotBelieved(t *testing.T) {
	for _, when := range []string{"before the first contact", "with a lock that he holds"} {
		t.Run(when, func(t *testing.T) {
			i := newInstaller(t)
			i.AddService(platform.ServiceConfig{Name: "kubelet", CommandLine: `C:\k\kubelet.exe`,
				StartType: platform.StartManual})
			user := i.SpawnAs("user.exe", simulated.User)
			const id = "20240101-000000-0badc0de"
			plant(t, user.Platform.Files, layout.Journals+`\`+id+".jsonl", plantedJournal(t))
			if when != "before the first contact" {
				if _, err := user.Platform.Files.Lock(layout.LockFile, []byte("me, for ever")); err != nil {
					t.Fatal(err)
				}
			}
			i.ForgetOperations()

			m := agent.Machine{Platform: i.Process("guardian"), Executable: uploaded, Hash: i.hash}
			if code := agent.Main(t.Context(), m, []string{swap.GuardianArgument, id}, strings.NewReader(""),
				io.Discard, io.Discard); code == 0 {
				t.Error("the guardian is content")
			}
			if _, err := swap.Transactions(custody.Files(i.Process("session").Files)); err == nil {
				t.Error("the planted transaction was listed, or hidden")
			}
			for _, op := range i.Operations() {
				if strings.HasPrefix(string(op.Kind), "service.") || op.Kind == simulated.OpProcessRun {
					t.Errorf("the guardian did %v", op)
				}
			}
		})
	}
}

func plantedJournal(t *testing.T) string {
	t.Helper()
	plan := swap.Plan{Holder: "me", Components: []swap.Component{{Name: "kubelet", Service: "kubelet",
		Destination: `C:\k\kubelet.exe`, CommandLine: "cmd /c echo pwned"}}}
	lines := ""
	for _, record := range []any{
		map[string]any{"state": swap.Prepared, "plan": plan, "boot": "1"},
		map[string]any{"state": swap.Stopping, "before": map[string]any{"running": []string{"kubelet"},
			"commandLines": map[string]string{"kubelet": "cmd /c echo pwned"}}},
		map[string]any{"state": swap.RollingBack},
	} {
		line, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		lines += string(line) + "\n"
	}
	return lines
}

func plant(t *testing.T, files platform.Files, path, content string) {
	t.Helper()
	if err := tryPlant(files, path, content); err != nil {
		t.Fatal(err)
	}
}

func tryPlant(files platform.Files, path, content string) error {
	if err := files.MakeFolder(path[:strings.LastIndex(path, `\`)]); err != nil {
		return err
	}
	w, err := files.Create(path, platform.CreateTruncate)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, content)
	return errors.Join(err, w.Close())
}

// intruder is an ordinary user that knows every name that swdt uses.
type intruder struct {
	*simulated.Process
	machine *installer
	holds   []*simulated.Hold
	stolen  string // the part of the secret that the intruder could read
}

// tricks returns the intruder's attempts. Each fails silently if Windows denies it.
func tricks() map[string]func(*intruder) {
	return map[string]func(*intruder){
		"plants everything": (*intruder).plantAll,
		"makes the root and keeps every right to it": func(u *intruder) {
			_ = u.Platform.Files.MakeFolder(layout.Root)
			u.keep(layout.Root, access.All&^0x100000, false)
			u.useHandles()
		},
		"opens the root for everybody": func(u *intruder) {
			_ = u.Platform.Files.NewFolder(layout.Root, "D:P(A;OICI;FA;;;WD)")
			_ = u.Platform.Files.SetACL(layout.Root, "D:P(A;OICI;FA;;;WD)")
			u.plantAll()
		},
		"makes the root and holds it alone": func(u *intruder) {
			if u.Platform.Files.MakeFolder(layout.Root) == nil {
				u.keep(layout.Root, access.ReadData, true)
			}
		},
		"holds a file below": func(u *intruder) {
			u.plantAll()
			u.keep(layout.LockFile, access.ReadData|access.WriteData, false)
			u.useHandles()
		},
		"makes the root a file":     func(u *intruder) { _ = tryPlant(u.Platform.Files, layout.Root, evil) },
		"makes the root a junction": func(u *intruder) { u.lead(layout.Root) },
		"makes a folder in it a junction": func(u *intruder) {
			for _, path := range []string{layout.Agents, layout.Journals, layout.Captures, layout.Trace} {
				u.lead(path)
			}
		},
		"takes the lock": func(u *intruder) {
			u.plantAll()
			_, _ = u.Platform.Files.Lock(layout.LockFile, []byte(evil))
		},
		"moves things away": func(u *intruder) {
			for _, path := range append(u.known(), layout.Journals, layout.Agents, layout.Root) {
				_ = u.Platform.Files.Rename(path, `C:\ProgramData\away`, false)
				_ = u.Platform.Files.Remove(path)
			}
			u.plantAll()
		},
	}
}

func (u *intruder) known() []string {
	return []string{
		layout.LockFile, layout.HashCache, layout.HashCache + ".new", layout.JoinRecord, layout.JoinConfiguration,
		layout.TraceRecord,
		layout.CaptureJournal, layout.CaptureLock, layout.Journals + `\20240101-000000-0badc0de.jsonl`,
		layout.Scratch + `\x\y.evtx`,
		u.machine.path(), uploaded,
	}
}

func (u *intruder) plantAll() {
	for _, path := range u.known() {
		_ = tryPlant(u.Platform.Files, path, evil)
	}
}

func (u *intruder) keep(path string, rights access.Rights, exclusive bool) {
	if h, err := u.Hold(path, rights, exclusive); err == nil {
		u.holds = append(u.holds, h)
	}
}

func (u *intruder) lead(path string) {
	_ = u.Platform.Files.MakeFolder(`C:\ProgramData\his`)
	_ = tryPlant(u.Platform.Files, `C:\ProgramData\his\swdt-agent.exe`, evil)
	_ = u.Platform.Files.MakeFolder(path[:strings.LastIndex(path, `\`)])
	_ = u.Junction(path, `C:\ProgramData\his`)
}

// useHandles does everything that the intruder's old handles allow by now.
func (u *intruder) useHandles() {
	for _, h := range u.holds {
		_ = h.SetACL("D:P(A;OICI;FA;;;WD)")
		_ = h.Add("lock", evil)
		_ = h.Add("join.json", evil)
		_ = h.Write(evil)
		_ = h.Rename(layout.Root)
	}
}

// spy reads everything that the intruder has access to.
func (u *intruder) spy() {
	for _, path := range u.known() {
		file, err := u.Platform.Files.Open(path)
		if err != nil {
			continue
		}
		content, _ := io.ReadAll(file)
		_ = file.Close()
		if strings.Contains(string(content), secret) {
			u.stolen = path
		}
	}
}

// work does what the administrator's swdt does on the node with its own files. It returns everything that it read and
// trusted.
func work(ctx context.Context, i *installer) (believed []string, err error) {
	p := custody.Platform(i.Process("agent"))
	lock, err := p.Files.Lock(layout.LockFile, []byte("swdt"))
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	for _, path := range []string{layout.JoinRecord, layout.JoinConfiguration, layout.Journals +
		`\20240101-000000-0badc0de.jsonl`, layout.TraceRecord} {
		read, err := recordOf(p.Files, path)
		believed = append(believed, read)
		if err != nil {
			return believed, err
		}
	}
	if _, err := swap.Transactions(p.Files); err != nil {
		return believed, err
	}
	return believed, pktmon.Heal(ctx, pktmon.Machine{Platform: p})
}

// recordOf reads a record, if there is one, and replaces it.
func recordOf(files platform.Files, path string) (read string, err error) {
	if file, err := files.Open(path); err == nil {
		content, err := io.ReadAll(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return "", err
		}
		read = string(content)
	} else if !errors.Is(err, fault.ErrNotExist) {
		return "", err
	}
	if err := tryPlant(files, path+".new", secret); err != nil {
		return read, err
	}
	return read, files.Rename(path+".new", path, true)
}

// refused fails unless an error is a clear refusal.
func refused(t *testing.T, err error) {
	t.Helper()
	var foreign *custody.ForeignError
	if err != nil && !errors.As(err, &foreign) && !errors.Is(err, fault.ErrPermission) &&
		!errors.Is(err, fault.ErrInUse) && !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// An ordinary user acts before any operation of the first contact and of the operations that follow it: with each
// trick before each operation alone, and before all of them.
func TestAnOrdinaryUserGainsNothingBetweenAnyTwoOperations(t *testing.T) {
	count := newInstaller(t)
	operations := 0
	count.Interleave(func(simulated.Operation) { operations++ })
	count.install(t)
	if _, err := work(t.Context(), count); err != nil {
		t.Fatal(err)
	}
	if operations < 40 {
		t.Fatalf("only %d operations were seen", operations)
	}
	for name, trick := range tricks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			installed := 0
			for at := -1; at < operations; at++ { // -1: before every operation
				installed += attack(t, fmt.Sprintf("before operation %d", at), at, trick)
			}
			t.Logf("of %d attacks %d left swdt working, the others were refused", operations+1, installed)
			if installed < operations/2 {
				t.Errorf("only %d of %d attacks left swdt working", installed, operations+1)
			}
		})
	}
}

func attack(t *testing.T, name string, at int, trick func(*intruder)) (installed int) {
	t.Helper()
	i := newInstaller(t)
	defer i.Close()
	u := &intruder{Process: i.SpawnAs("user.exe", simulated.User), machine: i}
	operation := 0
	i.Interleave(func(simulated.Operation) {
		if at < 0 || operation == at {
			trick(u)
		}
		operation++
		u.useHandles()
		u.spy()
	})
	result := i.install(t)
	if result.Failure == "" {
		installed = 1
		i.isSafe(t)
	} else if result.Failure != handshake.Foreign && result.Failure != handshake.NotAllowed {
		t.Errorf("%s: installed: %+v", name, result)
	}
	believed, err := work(t.Context(), i)
	refused(t, err)
	if strings.Contains(strings.Join(believed, ""), evil) {
		t.Errorf("%s: believed %q", name, believed)
	}
	if u.stolen != "" {
		t.Errorf("%s: read the secret in %s", name, u.stolen)
	}
	if content, err := i.ReadFile(uploaded); err != nil || !bytes.Equal(content, i.agent) {
		t.Errorf("%s: the uploaded agent was changed", name)
	}
	return installed
}
