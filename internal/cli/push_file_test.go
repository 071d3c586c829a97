package cli_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/swdt-dev/swdt/internal/config"
)

// sshHost HOST NODEFILE appends a Host to ~/.ssh/config that leads to the sandbox of a node file, whose host key is
// not known yet.
func sshHost(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ssh-host HOST NODEFILE")
	}
	documents, err := config.Load([]string{ts.MkAbs(args[1])}, nil)
	ts.Check(err)
	credentials := documents[0].Node.Spec.Credentials
	host, port, err := net.SplitHostPort(credentials.Hostname)
	ts.Check(err)
	folder := filepath.Join(ts.Getenv("HOME"), ".ssh")
	ts.Check(os.MkdirAll(folder, 0o700))
	file, err := os.OpenFile(filepath.Join(folder, "config"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	ts.Check(err)
	_, err = fmt.Fprintf(file, "Host %s\n  HostName %s\n  Port %s\n  User %s\n  IdentityFile %q\n", args[0], host, port,
		credentials.Username, filepath.ToSlash(credentials.PrivateKey))
	ts.Check(err)
	ts.Check(file.Close())
	ts.Setenv("ADDRESS", credentials.Hostname)
}
