package wine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// keeper is the program that keeps a prefix running, see recipe/keeper.c.
const keeper = "keeper"

// Keep boots the prefix and keeps it and its services running until the caller calls stop. down
// is closed when the prefix has gone down, after stop or because of a reboot.
func (p *Prefix) Keep(ctx context.Context) (down <-chan struct{}, stop func(), err error) {
	cmd := p.Command(context.WithoutCancel(ctx), `C:\windows\system32\`+keeper+".exe")
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
		// Do not call stop, which waits for the end of the output: the processes of a start
		// that hangs may hold the output open.
		_ = cmd.Process.Kill()
		_ = stdin.Close()
		_ = stdout.Close()
		return nil, nil, fmt.Errorf("boot Wine prefix %s: %w", p.folder, errors.Join(ctx.Err(), readErr))
	}
	return gone, stop, nil
}
