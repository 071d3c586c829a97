package agent_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/agent/custody"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
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
	switch result := i.install(t); {
	case result.Failure != "":
		t.Fatalf(`result.Failure is %q, want ""`, result.Failure)
	case !result.Kept:
		t.Fatal("result.Kept is false, want true")
	}
	if changes := i.Operations(); len(changes) != 0 {
		t.Errorf("changed %v", changes)
	}
}

func TestInstallReplacesADamagedAgent(t *testing.T) {
	i := newInstaller(t)
	i.install(t)
	i.WriteFile(i.path(), []byte("half of it"))
	switch result := i.install(t); {
	case result.Failure != "":
		t.Fatalf(`result.Failure is %q, want ""`, result.Failure)
	case result.Kept:
		t.Fatal("result.Kept is true, want false")
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
			t.Errorf("result.Failure is %v, want %v", result.Failure, handshake.NotAllowed)
		}
	})
	t.Run("a full disk", func(t *testing.T) {
		i := newInstaller(t)
		i.SetFreeBytes(10)
		if result := i.install(t); result.Failure != handshake.DiskFull {
			t.Errorf("result.Failure is %v, want %v", result.Failure, handshake.DiskFull)
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
		switch result := i.install(t); {
		case result.Failure != handshake.Foreign:
			t.Errorf("result.Failure is %v, want %v", result.Failure, handshake.Foreign)
		case !strings.Contains(result.Message, "end the processes"):
			t.Errorf("result.Message lacks %q:\n%s", "end the processes", result.Message)
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
			plant(t, user.Platform.Files, layout.History, `{"number":1,"id":"x","holder":"me","components":[]}`+"\n")
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
			if past, err := swap.History(t.Context(), custody.Files(i.Process("session").Files)); err == nil {
				t.Errorf("the planted history was read: %+v", past)
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
