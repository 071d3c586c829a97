package wine

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// prepared returns a prefix that ends with the test. It skips the test if Wine is missing.
func prepared(t *testing.T) *Prefix {
	t.Helper()
	prefix, err := Prepare(t.Context(), filepath.Join(t.TempDir(), "prefix"))
	var missing *MissingError
	if errors.As(err, &missing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := prefix.Close(); err != nil {
			t.Error(err)
		}
	})
	return prefix
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestPrefixIsAWindowsServer(t *testing.T) {
	t.Setenv("SWDT_SECRET", "not for Windows programs")
	p := prepared(t)
	if got := output(t, p.Command(t.Context(), "cmd", "/c", "ver")); !strings.Contains(got, "10.0.20348") {
		t.Errorf("version %q", got)
	}
	got := output(t, p.Command(t.Context(), "reg", "query", `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`,
		"/v", "ProductName"))
	if !strings.Contains(got, "Windows Server 2022 Datacenter") {
		t.Errorf("product %q", got)
	}
	variables := output(t, p.Command(t.Context(), "cmd", "/c", "cd & set"))
	if !strings.HasPrefix(variables, `C:\`) {
		t.Errorf("the working directory is not on drive C:\n%s", variables)
	}
	if strings.Contains(variables, "SWDT_SECRET") {
		t.Error("the environment of this process is handed on")
	}
	if _, err := os.Lstat(filepath.Join(p.Folder(), "dosdevices", "z:")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("drive Z: is there: %v", err)
	}
	cmd := p.Command(t.Context(), "cmd", "/c", "exit 7")
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("exit 7: %v", err)
	}
}

func TestPrefixIsNotPreparedTwice(t *testing.T) {
	p := prepared(t)
	if _, err := Prepare(t.Context(), p.Folder()); err == nil {
		t.Error("a prefix was prepared over another")
	}
	if _, err := Open(p.Folder()); err != nil {
		t.Error(err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open of no prefix: %v", err)
	}
}

func TestRebootKeepsTheRegistryAndEndsProcesses(t *testing.T) {
	p := prepared(t)
	output(t, p.Command(t.Context(), "reg", "add", `HKLM\SOFTWARE\swdt`, "/v", "kept", "/d", "yes"))
	running := p.Command(t.Context(), "cmd", "/c", "echo ready & pause")
	stdin, err := running.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := running.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	// Before this line, only Wine itself is starting, and no Windows program yet.
	switch line, err := bufio.NewReader(stdout).ReadString('\n'); {
	case err != nil:
		t.Fatal(err)
	case !strings.Contains(line, "ready"):
		t.Fatalf("line lacks %q:\n%s", "ready", line)
	}
	if err := p.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := running.Wait(); err == nil {
		t.Error("a program outlived the reboot and ended well")
	}
	if got := output(t, p.Command(t.Context(), "reg", "query", `HKLM\SOFTWARE\swdt`)); !strings.Contains(got, "yes") {
		t.Errorf("after the reboot: %q", got)
	}
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
}

// A program that is just starting also ends with the prefix, at whatever point of its start.
func TestCloseEndsWhatIsStarting(t *testing.T) {
	p := prepared(t)
	output(t, p.Command(t.Context(), "cmd", "/c", "ver"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		starting := p.Command(ctx, "cmd", "/c", "pause")
		stdin, err := starting.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		if err := starting.Start(); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		_ = starting.Wait() // the exit code that Wine reports varies
		if ctx.Err() != nil {
			t.Fatal("the program waits for a server that has ended")
		}
	}
}

// No process of a prefix, neither the first one nor its children, has its heap at the address of
// the page that every Windows process has.
func TestHeapsAreOutOfTheWay(t *testing.T) {
	if fixedLayout() == nil {
		t.Skip("this machine does not let a program have a fixed layout")
	}
	p := prepared(t)
	_, stop, err := p.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	const addressNoRandomize = 0x0040000 // ADDR_NO_RANDOMIZE of <sys/personality.h>
	found := p.processes()
	if len(found) < 3 { // the keeper, wineserver, services.exe
		t.Errorf("%d processes", len(found))
	}
	for _, process := range found {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process.pid), "personality"))
		if err != nil {
			t.Error(err)
			continue
		}
		personality, err := strconv.ParseUint(strings.TrimSpace(string(text)), 16, 32)
		if err != nil || personality&addressNoRandomize == 0 {
			t.Errorf("process %d has personality %q: %v", process.pid, text, err)
		}
	}
}

// If several processes need the template at once, one of them creates it.
func TestTemplateIsMadeOnce(t *testing.T) {
	tools, err := findTools()
	if err != nil {
		t.Skip(err)
	}
	if testing.Short() {
		t.Skip("makes a template, which takes 15 s")
	}
	cache := t.TempDir()
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if _, err := template(t.Context(), tools, cache); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	folders, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) != 2 { // the template and its lock
		t.Errorf("in the cache: %q", folders)
	}
}

// The processes that every boot starts do not keep a prefix running that is no longer used.
func TestPrefixEndsWhenItIsNotKept(t *testing.T) {
	p := prepared(t)
	_, stop, err := p.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	boot := false
	for _, process := range p.processes() {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process.pid), "cmdline"))
		boot = boot || err == nil && strings.Contains(string(line), "keeper.exe") &&
			strings.Contains(string(line), "--boot")
	}
	if !boot {
		t.Error("nothing takes care of the named pipes")
	}
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), shutdownLimit)
	defer cancel()
	if err := p.awaitServerEnd(ctx); err != nil {
		t.Error(err)
	}
}
