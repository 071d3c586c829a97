//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// sshKeys are the keys of the clients and servers of one run.
type sshKeys struct {
	folder, host, client, fingerprint string
}

func newSSHKeys(ctx context.Context, folder string) (sshKeys, error) {
	k := sshKeys{folder: folder, host: filepath.Join(folder, "host"), client: filepath.Join(folder, "client")}
	for _, key := range []string{k.host, k.client} {
		if _, err := output(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key); err != nil {
			return k, err
		}
	}
	if err := copyFile(k.client+".pub", filepath.Join(folder, "authorized_keys")); err != nil {
		return k, err
	}
	line, err := output(ctx, "ssh-keygen", "-l", "-f", k.host+".pub")
	if err != nil {
		return k, err
	}
	k.fingerprint = strings.Fields(line)[1]
	public, err := os.ReadFile(k.host + ".pub")
	if err != nil {
		return k, err
	}
	// Clients check the key under this one name, whatever port a proxy has.
	known := []byte("bench " + string(public))
	return k, os.WriteFile(filepath.Join(folder, "known_hosts"), known, 0o600)
}

// clientOptions returns the options of ssh, scp and rsync's ssh.
func (k sshKeys) clientOptions() []string {
	return []string{"-F", "none", "-i", k.client, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
		"-o", "UserKnownHostsFile=" + filepath.Join(k.folder, "known_hosts"), "-o", "HostKeyAlias=bench",
		"-o", "StrictHostKeyChecking=yes", "-o", "LogLevel=ERROR"}
}

// sshd is Debian's sshd on a port of loopback.
type sshd struct {
	address string
	server  *exec.Cmd
	log     logBuffer
}

// logBuffer is a buffer that the goroutine of exec.Cmd may write to.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startSSHD starts an SSH server on the loopback address of this machine. extra has further lines of
// the server's configuration, such as its SFTP subsystem.
func startSSHD(ctx context.Context, keys sshKeys, extra ...string) (*sshd, error) {
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		return nil, fmt.Errorf("%w: sshd needs root", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	lines := append([]string{
		"ListenAddress 127.0.0.1:" + port,
		"HostKey " + keys.host,
		"PidFile none",
		"AuthorizedKeysFile " + filepath.Join(keys.folder, "authorized_keys"),
		"StrictModes no",
		"PermitRootLogin yes",
		"KbdInteractiveAuthentication no",
		"PasswordAuthentication no",
		"UsePAM no",
		"UseDNS no",
	}, extra...)
	config := filepath.Join(keys.folder, "sshd_config_"+port)
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	s := &sshd{address: "127.0.0.1:" + port}
	s.server = exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
	s.server.Stderr = &s.log
	if err := s.server.Start(); err != nil {
		return nil, err
	}
	if err := s.awaitListening(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *sshd) stop() {
	_ = s.server.Process.Kill()
	_ = s.server.Wait()
}

func (s *sshd) awaitListening(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp", s.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("sshd does not listen on %s: %w\n%s", s.address, err, s.log.String())
		case <-tick.C:
		}
	}
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, err
}
