package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
)

// removedInterval is the time between two checks that the state folder still exists.
const removedInterval = time.Second

// RunBackground is the body of the hidden command `swdt sandbox serve --state DIR`, which Up
// starts. It serves until ctx ends or Down requests the end. As soon as it listens, it writes the
// Info to ready, as one line of JSON, and closes ready. agent is the one inside this swdt; its zero value means that there is none.
func RunBackground(ctx context.Context, stateDir string, agent agentbin.Agent, ready io.WriteCloser,
	log *slog.Logger) error {
	f := folder{path: stateDir}
	var asked request
	if err := readJSON(f.file(requestFile), &asked); err != nil {
		return fmt.Errorf("only `swdt sandbox up` may run this command: %w", err)
	}
	f.name = asked.Name
	lock := flock.New(f.file(lockFile))
	switch taken, err := lock.TryLock(); {
	case err != nil:
		return fmt.Errorf("take the lock of sandbox %s: %w", f.name, err)
	case !taken:
		return fmt.Errorf("take the lock of sandbox %s: another process holds it", f.name)
	}
	defer lock.Unlock()

	driver, err := driverNamed(asked.Driver)
	if err != nil {
		return err
	}
	hostKey, clientKey, err := f.readKeys()
	if err != nil {
		return err
	}
	running, err := driver.start(ctx, f, asked, agent, log)
	if err != nil {
		return err
	}
	defer running.close()
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(asked.Port)))
	if err != nil {
		return fmt.Errorf("listen for SSH: %w", err)
	}
	info := Info{
		Name: f.name, Driver: asked.Driver, Hostname: listener.Addr().String(), Config: f.file(nodeFile),
		Prefix: running.prefix, Kubeconfig: running.kubeconfig, Pods: asked.Pods, Shell: asked.Shell, PID: os.Getpid(),
		Started: time.Now().UTC().Truncate(time.Second), Log: f.file(logFile),
	}
	if err := f.publish(info, hostKey.PublicKey(), running.section); err != nil {
		listener.Close()
		return err
	}
	if err := json.NewEncoder(ready).Encode(info); err != nil {
		log.Warn("no process waits for the sandbox", "err", err)
	}
	ready.Close()
	log.Info("the sandbox listens", "address", info.Hostname, "driver", info.Driver)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go f.endWhenRemoved(ctx, stop)
	s := &server{
		machine: running.machine, hostKey: hostKey, authorizedKeys: []ssh.PublicKey{clientKey.PublicKey()},
		onStop: stop, log: log,
	}
	err = s.serve(ctx, listener)
	log.Info("the sandbox ends", "err", err)
	return err
}

// endWhenRemoved ends the sandbox when its folder has been deleted, because Status and Down can
// then no longer find the sandbox.
func (f folder) endWhenRemoved(ctx context.Context, stop func()) {
	tick := time.NewTicker(removedInterval)
	defer tick.Stop()
	for f.isSandbox() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	stop()
}

func (f folder) readKeys() (host, client ssh.Signer, err error) {
	if host, err = readKey(f.file(hostKeyFile)); err != nil {
		return nil, nil, err
	}
	client, err = readKey(f.file(clientKeyFile))
	return host, client, err
}

func readKey(path string) (ssh.Signer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's key %s: %w", path, err)
	}
	return key, nil
}

// publish writes the node file and then the Info. Once the Info exists, the sandbox is ready.
func (f folder) publish(info Info, hostKey ssh.PublicKey, section string) error {
	text := NodeFile(info.Name, info.Hostname, f.file(clientKeyFile), hostKey) + section
	if err := os.WriteFile(f.file(nodeFile), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the sandbox's node file: %w", err)
	}
	return writeJSON(f.file(infoFile), info)
}
