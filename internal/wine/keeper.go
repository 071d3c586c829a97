package wine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

const keeper = "keeper"

// ContainerdPipes are the named pipes of containerd.
func ContainerdPipes() []string {
	return []string{`\\.\pipe\containerd-containerd`, `\\.\pipe\containerd-containerd.ttrpc`}
}

// buildKeeper builds keeper.exe, see recipe/keeper.c.
func (p *Prefix) buildKeeper(ctx context.Context, system32 string) error {
	source := filepath.Join(p.folder, keeper+".c")
	content, err := recipe.ReadFile("recipe/" + keeper + ".c")
	if err != nil {
		return err
	}
	if err := os.WriteFile(source, content, 0o644); err != nil {
		return err
	}
	defer os.Remove(source)
	return p.run(exec.CommandContext(ctx, p.tools.compiler, "-municode", "-O2", "-s",
		"-o", filepath.Join(system32, keeper+".exe"), source, "-lntdll"), p.folder)
}

// Keep boots the prefix and keeps it up, with its services, until the returned
// stop is called; down is closed when it went down before (a reboot). The named
// pipes are made to accept clients, see recipe/keeper.c; give every pipe that a
// program in the prefix serves.
func (p *Prefix) Keep(ctx context.Context, pipes ...string) (down <-chan struct{}, stop func(), err error) {
	cmd := p.Command(context.WithoutCancel(ctx), `C:\windows\system32\`+keeper+".exe", pipes...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("boot Wine prefix %s: %w", p.folder, err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("boot Wine prefix %s: %w", p.folder, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("boot Wine prefix %s: %w", p.folder, err)
	}
	abort := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer abort()
	_, readErr := bufio.NewReader(stdout).ReadString('\n')
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait()
		close(gone)
	}()
	stop = func() { stdin.Close(); <-gone }
	if readErr != nil || ctx.Err() != nil {
		// Not stop: what a hanging start has begun may hold its output open.
		_ = cmd.Process.Kill()
		_ = stdin.Close()
		_ = stdout.Close()
		return nil, nil, fmt.Errorf("boot Wine prefix %s: %w", p.folder, errors.Join(ctx.Err(), readErr))
	}
	return gone, stop, nil
}
