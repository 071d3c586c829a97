package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// Await connects to a guest's SSH server again and again; each attempt is a look. Await waits
	// lookTime for the result of a look, and then pauses for awaitInterval. A look without a result
	// continues during the pause and the next looks.
	awaitInterval, lookTime = 250 * time.Millisecond, 250 * time.Millisecond
	// quickGreeting is the time limit of most looks. Every slowLook-th look has the longer limit
	// slowGreeting, for servers that greet slowly. Since most looks are short, few connections are
	// open at a time: an SSH server with many open connections drops some of them.
	quickGreeting, slowGreeting = time.Second, 5 * time.Second
	slowLook                    = 4
)

// Await waits until a VM's SSH server answers. ctx bounds the wait.
func (s *Machines) Await(ctx context.Context, name string, r ui.Reporter) (Report, error) {
	r.Step("waiting for the SSH server of VM %s%s", name, s.lastStart(ctx, name))
	looks := newLooks(ctx)
	defer looks.end()
	err := wait.Condition{
		Name: "the SSH server of VM " + name, Interval: awaitInterval,
		Look: func(ctx context.Context) error {
			addresses, err := s.Addresses(ctx, name)
			var none *NoAddressError
			if err != nil {
				return wait.StopIf(!errors.As(err, &none), err)
			}
			return looks.look(addresses[0].HostPort())
		},
	}.Wait(ctx)
	if err == nil {
		err = s.awaitFirstStart(ctx, name, r)
	}
	if err != nil {
		return Report{}, err
	}
	return s.with(ctx, name, func(record Record, _ Driver) (Report, error) {
		report := s.began(ctx, record, "its SSH server answers")
		s.rememberStart(record, report.Accelerator)
		return report, nil
	})
}

// looks holds the looks for one SSH server. A connection to a forwarded port that begins before the
// guest has a network hangs, and is never answered. So a new look begins while earlier looks are
// still open.
type looks struct {
	ctx     context.Context
	cancel  context.CancelFunc
	open    sync.WaitGroup
	count   int
	decided chan error // the first result that ends the wait
}

func newLooks(ctx context.Context) *looks {
	l := &looks{decided: make(chan error, 1)}
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// end cancels all open looks and waits until they have ended.
func (l *looks) end() {
	l.cancel()
	l.open.Wait()
}

// look connects to an address once more, and returns nil if an SSH server has greeted on this or an
// earlier connection. If another kind of server is at the address, the error stops the wait.
func (l *looks) look(address string) error {
	limit := quickGreeting
	if l.count++; l.count%slowLook == 0 {
		limit = slowGreeting
	}
	failed := make(chan error, 1)
	l.open.Go(func() {
		err := greets(l.ctx, address, limit)
		if stop := (*notSSHError)(nil); err != nil && !errors.As(err, &stop) {
			failed <- err
			return
		}
		select {
		case l.decided <- err:
		default:
		}
	})
	select {
	case err := <-l.decided:
		return wait.StopIf(err != nil, err)
	case err := <-failed:
		return err
	case <-time.After(lookTime):
		return fmt.Errorf("%s does not greet as SSH servers do", address)
	}
}

// notSSHError reports that the server at the address of a VM is no SSH server.
type notSSHError struct{ address string }

func (e *notSSHError) Error() string { return e.address + " is no SSH server" }

// greets returns nil if an SSH server greets at an address. A forwarded port accepts
// connections before the guest does, so only the greeting counts.
func greets(ctx context.Context, address string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	// Debian 12's passt answers the guest's SYN-ACK only with data, so a server that greets first would never do so.
	_, _ = io.WriteString(conn, "SSH-2.0-swdt\r\n") // the read reports a broken connection
	greeting := make([]byte, 4)
	if _, err := io.ReadFull(conn, greeting); err != nil {
		return fmt.Errorf("%s does not greet as SSH servers do: %w", address, err)
	}
	if !bytes.Equal(greeting, []byte("SSH-")) {
		return &notSSHError{address}
	}
	return nil
}
