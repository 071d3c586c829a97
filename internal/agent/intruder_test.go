package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

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
		layout.RolloutRecord, layout.TraceRecord, layout.History, layout.History + ".new", layout.HistoryLock,
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
	for _, path := range []string{layout.JoinRecord, layout.RolloutRecord, layout.JoinConfiguration, layout.Journals +
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
