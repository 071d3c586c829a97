package thismachine_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/thismachine"
	"github.com/swdt-dev/swdt/internal/ui"
)

func connect(t *testing.T, folder string) carrier.Connection {
	t.Helper()
	c, err := thismachine.Way{Folder: folder}.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// program returns a program of this machine that copies its input, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	return path
}

func TestAProgramEndsWithItsInput(t *testing.T) {
	c := connect(t, t.TempDir())
	p, err := c.Start(t.Context(), program(t, "cat"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p.Input(), "there and back"); err != nil {
		t.Fatal(err)
	}
	p.Input().Close()
	got, err := io.ReadAll(p.Output())
	if err != nil || string(got) != "there and back" {
		t.Errorf("the program answered %q, %v", got, err)
	}
	if code, err := p.ExitCode(t.Context()); code != 0 || err != nil {
		t.Errorf("the exit code is %d, %v", code, err)
	}
}

func TestTheEndOfTheConnectionEndsItsPrograms(t *testing.T) {
	c := connect(t, t.TempDir())
	p, err := c.Start(t.Context(), program(t, "cat"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	<-c.Done()
	if c.Err() == nil {
		t.Error("a closed connection has no error")
	}
	if _, err := c.Start(t.Context(), program(t, "cat")); err == nil {
		t.Error("a closed connection starts programs")
	}
}

func TestRunReportsTheExitCode(t *testing.T) {
	c := connect(t, t.TempDir())
	out, err := c.Run(t.Context(), program(t, "sh"), "-c", "echo out; echo err >&2; exit 7")
	want := carrier.Output{Stdout: "out\n", Stderr: "err\n", ExitCode: 7}
	if err != nil || out != want {
		t.Errorf("got %+v, %v; want %+v", out, err, want)
	}
	if _, err := c.Run(t.Context(), filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing program runs")
	}
}

func TestAnAgentIsVerifiedAndRemoved(t *testing.T) {
	content := []byte("an agent")
	sum := sha256.Sum256(content)
	agent := agentbin.Agent{Hash: hex.EncodeToString(sum[:]), Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
	folder := t.TempDir()
	left := filepath.Join(folder, carrier.StagedName()) // of a program that was killed
	long := time.Now().Add(-25 * time.Hour)
	if err := errors.Join(os.WriteFile(left, content, 0o600), os.Chtimes(left, long, long)); err != nil {
		t.Fatal(err)
	}
	stage, err := connect(t, folder).Stage(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	path, err := stage.Put(t.Context(), agent, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if there, err := stage.HasAgent(t.Context(), path, agent.Hash); !there || err != nil {
		t.Errorf("the agent is not there: %v", err)
	}
	stage.Close()
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if !stage.Vanished(t.Context(), path) {
		t.Error("the removed file has not vanished")
	}

	agent.Hash = hex.EncodeToString(make([]byte, sha256.Size))
	if _, err := stage.Put(t.Context(), agent, ui.Discard{}); err == nil {
		t.Error("an agent with another hash is accepted")
	}
	stage.Close()
}
