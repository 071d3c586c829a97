//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	account "os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fronts returns the SSH servers that a Wine node can be behind.
func fronts() []front {
	return []front{
		{"sandbox", func(t *testing.T) string { return credentialsOf(t, wineSandbox(t)) }},
		{"OpenSSH key", opensshKey},
		{"OpenSSH password", opensshPassword},
	}
}

type front struct {
	name        string
	credentials func(t *testing.T) string // starts a Wine node behind it, and returns the credentials for a node file
}

func opensshKey(t *testing.T) string {
	return openssh(t).credentials()
}

// credentials returns root's credentials, with a key.
func (s opensshServer) credentials() string {
	return fmt.Sprintf("    username: root\n    hostname: %s\n    privateKey: %s\n    hostKey: %s\n",
		s.address, s.clientKey, s.fingerprint)
}

func opensshPassword(t *testing.T) string {
	server := openssh(t)
	const user, password = "swdt-e2e", "correct horse battery staple"
	addUser(t, user, password, server.folder)
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("    username: %s\n    hostname: %s\n    passwordFrom: {file: %s}\n    hostKey: %s\n",
		user, server.address, secret, server.fingerprint)
}

type opensshServer struct {
	address, clientKey, fingerprint, folder string
}

// openssh runs Debian's sshd in front of a sandbox's prefix: `swdt sandbox shell` runs every
// command, and the SFTP server too, as the default shell of Windows' sshd does.
func openssh(t *testing.T) opensshServer {
	t.Helper()
	return opensshFor(t, wineSandbox(t))
}

func opensshFor(t *testing.T, info sandboxInfo, shell ...string) opensshServer {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("sshd with password login needs root")
	}
	folder := t.TempDir()
	hostKey, clientKey := filepath.Join(folder, "host"), filepath.Join(folder, "client")
	for _, key := range []string{hostKey, clientKey} {
		run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	}
	authorized, err := os.ReadFile(clientKey + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "authorized_keys"), authorized, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	swdt := environment(t, "SWDT_BIN")
	command := filepath.Join(folder, "command")
	words := append([]string{swdt, "sandbox", "shell", "--prefix", info.Prefix}, shell...)
	script := "#!/bin/sh\nexec '" + strings.Join(words, "' '") + "'\n"
	if err := os.WriteFile(command, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	config := filepath.Join(folder, "sshd_config")
	text := strings.Join([]string{
		"ListenAddress 127.0.0.1:" + port,
		"HostKey " + hostKey,
		"PidFile none",
		"AuthorizedKeysFile " + filepath.Join(folder, "authorized_keys"),
		"StrictModes no",
		"PermitRootLogin yes",
		"PasswordAuthentication yes",
		"KbdInteractiveAuthentication no",
		"UsePAM no",
		"Subsystem sftp sftp-server.exe",
		"ForceCommand " + command,
		"",
	}, "\n")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
	var log strings.Builder
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Logf("sshd:\n%s", log.String())
		}
	})
	address := "127.0.0.1:" + port
	awaitListener(t, address)
	fingerprint := strings.Fields(run(t, "ssh-keygen", "-l", "-f", hostKey+".pub"))[1]
	return opensshServer{address, clientKey, fingerprint, folder}
}

// A node of Wine behind a real sshd is reached through other default shells than cmd, with a profile that prints and
// moves to a folder in which ordinary users may write.
func TestFirstContactThroughOtherDefaultShells(t *testing.T) {
	info := wineSandbox(t)
	for _, shell := range []string{"powershell", "bash"} {
		t.Run(shell, func(t *testing.T) {
			server := opensshFor(t, info, "--shell", shell, "--profile", "echo Welcome to win-1\ncd C:/Users/Public")
			config := nodeFile(t, server.credentials(),
				"    - {name: tool, sourceURL: /tool.exe, destination: 'C:\\k\\tool.exe'}\n")
			for range 2 { // the first contact, and one that finds the agent
				ok(t, "exec", "-c", config, "--", "cmd", "/c", "ver")
			}
		})
	}
}

// addUser creates an account that can log in with a password, and removes the account at the test's
// end. The account is another name for root, since Wine serves a prefix only to the prefix's owner.
func addUser(t *testing.T, user, password, home string) {
	t.Helper()
	if _, err := account.Lookup(user); err == nil { // of a run that was killed
		run(t, "userdel", "--force", user)
	}
	run(t, "useradd", "--non-unique", "--uid", "0", "--gid", "0", "--home-dir", home, "--no-create-home",
		"--shell", "/bin/sh", user)
	t.Cleanup(func() { run(t, "userdel", "--force", user) })
	set := exec.Command("chpasswd")
	set.Stdin = strings.NewReader(user + ":" + password + "\n")
	if out, err := set.CombinedOutput(); err != nil {
		t.Fatalf("chpasswd: %v\n%s", err, out)
	}
}

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func awaitListener(t *testing.T, address string) {
	t.Helper()
	within(t, 10*time.Second, "sshd listens on "+address, func() error {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
