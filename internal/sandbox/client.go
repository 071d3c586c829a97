package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// answerTimeout bounds the SSH handshake with a sandbox that listens.
	answerTimeout = 10 * time.Second
	// stopTimeout bounds an orderly end; after that time, the process is killed.
	stopTimeout = 20 * time.Second
)

// answers returns nil if a client can log in to the sandbox, and otherwise the error of the
// attempt.
func (f folder) answers(ctx context.Context, info Info) error {
	client, err := f.dial(ctx, info)
	if err != nil {
		return fmt.Errorf("sandbox %s does not answer: %w; see %s", f.name, err, info.Log)
	}
	return client.Close()
}

func (f folder) dial(ctx context.Context, info Info) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	hostKey, clientKey, err := f.readKeys()
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", info.Hostname)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	c, channels, requests, err := ssh.NewClientConn(conn, info.Hostname, &ssh.ClientConfig{
		User:            Administrator,
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(clientKey)},
		HostKeyCallback: ssh.FixedHostKey(hostKey.PublicKey()),
	})
	if err != nil {
		conn.Close()
		return nil, errors.Join(err, ctx.Err())
	}
	return ssh.NewClient(c, channels, requests), nil
}

// stop ends the background process, unless that process has ended already. stop first sends a
// request. If the process does not answer, stop kills the process by its ID. That ID cannot belong
// to another process as long as the background process holds the server's lock.
func (f folder) stop(ctx context.Context) error {
	info, err := f.running(ctx)
	if errors.Is(err, ErrNotRunning) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.ask(ctx, info); err == nil {
		return nil
	} else if ctx.Err() != nil {
		return err
	}
	process, err := os.FindProcess(info.PID)
	if err != nil {
		return fmt.Errorf("end sandbox %s: %w", f.name, err)
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end sandbox %s (process %d): %w", f.name, info.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return f.awaitEnd(ctx)
}

// ask requests the end of the sandbox and waits for it.
func (f folder) ask(ctx context.Context, info Info) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	client, err := f.dial(ctx, info)
	if err != nil {
		return err
	}
	defer client.Close()
	stop := context.AfterFunc(ctx, func() { client.Close() })
	defer stop()
	// The connection may be cut before the answer arrives; only the end of the
	// process matters.
	_, _, _ = client.SendRequest(stopRequest, true, nil)
	return f.awaitEnd(ctx)
}
