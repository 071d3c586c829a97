//go:build linux

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	// saveDelay is the time without a change after which Windows' state is saved. mostDelay is the
	// time after which the state is saved even if changes continue. If the power of a guest is cut,
	// changes since the last save are lost, as on a Windows that did not flush its caches.
	saveDelay = 300 * time.Millisecond
	mostDelay = 3 * time.Second
	// closeLimit bounds the time that Windows' programs get to end.
	closeLimit = 5 * time.Second
)

// guest is the simulated Windows with the disk that keeps its state.
type guest struct {
	windows *simulated.Machine
	console *console
	kept    kept
	changed chan struct{} // has one element if a change is not saved yet

	mu    sync.Mutex // held while the state is written
	disk  *state
	ended bool
}

func startWindows(k kept, saved *simulated.Saved, disk *state, c *console) (*guest, error) {
	g := &guest{console: c, kept: k, disk: disk, changed: make(chan struct{}, 1)}
	o := simulated.Options{
		Hostname: k.Settings.Hostname, Preset: simulated.Preset(k.Settings.Preset), Saved: saved,
		Programs: []simulated.Program{anyAgent()}, Internet: true, RealNetwork: true, Log: slog.New(slog.DiscardHandler),
		OnShutdown: func() { go g.end(powerOff) },
	}
	switch o.Preset {
	case "":
		o.Preset = simulated.Minimal
	case simulated.Minimal, simulated.Node, simulated.Member:
	default:
		return nil, fmt.Errorf("%s: preset %q: use minimal, node or member", settingsFile, o.Preset)
	}
	switch k.Settings.Restart {
	case "", "computer":
		o.OnRestart = func() { go g.end(restart) }
	case "windows":
	default:
		return nil, fmt.Errorf("%s: restart %q: use computer or windows", settingsFile, k.Settings.Restart)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("read the identity of this boot: %w", err)
	}
	g.windows = simulated.New(o)
	if saved == nil {
		for path, content := range k.Settings.Files {
			g.windows.WriteFile(path, []byte(content))
		}
	}
	// A restored snapshot repeats earlier numbers of boots, so the boot id also contains the id of the
	// guest's boot, which is unique.
	g.windows.SetFacts(func(f *platform.Facts) { f.BootID += "-" + strings.TrimSpace(string(boot)) })
	g.windows.OnOperation(g.note)
	go g.saveChanges(context.Background())
	return g, nil
}

// anyAgent runs this build's agent in place of each swdt-agent.exe. A guest's disk is older than
// the swdt under test, and the agent of that swdt has another hash.
func anyAgent() simulated.Program {
	begin := strings.TrimSuffix(layout.AgentName, ".exe")
	return simulated.Program{
		Name: "swdt-agent",
		Match: func(image *simulated.Image) bool {
			name := image.Path[strings.LastIndex(image.Path, `\`)+1:]
			return image.PE && image.Note == nil && strings.HasPrefix(strings.ToLower(name), begin)
		},
		Main: func(ctx context.Context, p *simulated.Process) int {
			hash := p.Image().SHA256()
			return simulated.AgentProgram(simulated.Agent{Hash: hash, Main: sandbox.AgentMain(hash)}).Main(ctx, p)
		},
	}
}

// note records that there is a change to save. A change of a log is not recorded: the guest saves the
// log with the next other change.
func (g *guest) note(op simulated.Operation) simulated.Verdict {
	if op.Phase == simulated.After && op.Seq > 0 && !strings.HasPrefix(strings.ToLower(op.Target), `c:\var\log\`) {
		select {
		case g.changed <- struct{}{}:
		default:
		}
	}
	return simulated.Continue()
}

// saveChanges saves the state when nothing has changed for saveDelay, or at the latest after
// mostDelay.
func (g *guest) saveChanges(ctx context.Context) {
	for {
		<-g.changed
		g.awaitQuiet(ctx)
		if err := g.save(); err != nil {
			g.console.print("%v", err)
		}
	}
}

func (g *guest) awaitQuiet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, mostDelay)
	defer cancel()
	quiet := time.NewTimer(saveDelay)
	defer quiet.Stop()
	for {
		select {
		case <-g.changed:
			quiet.Reset(saveDelay)
		case <-quiet.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// save writes the state of Windows to the disk.
func (g *guest) save() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil
	}
	return g.disk.save(g.kept, g.windows)
}

// end shuts Windows down, saves its state and ends the guest. Only the first call ends the guest.
func (g *guest) end(how int) {
	closed := make(chan struct{})
	go func() {
		g.windows.Close()
		close(closed)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	select {
	case <-closed:
	case <-ctx.Done():
		g.console.print("Windows' programs did not end within %s", closeLimit)
	}
	if err := g.save(); err != nil {
		g.console.print("%v", err)
	}
	g.mu.Lock()
	first := !g.ended
	g.ended = true
	g.mu.Unlock()
	if !first {
		return
	}
	switch how {
	case restart:
		g.console.print("restarting")
	default:
		g.console.print("powering off")
	}
	end(how)
	g.console.print("the kernel refuses to end the guest")
	_ = wait.For(context.Background(), closeLimit)
}
