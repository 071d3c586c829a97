package windows

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/Microsoft/go-winio"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/platformtest"
)

func TestContract(t *testing.T) {
	platformtest.Run(t, func(t *testing.T) platformtest.Fixture {
		return platformtest.Fixture{
			Platform:       New(),
			Folder:         tempFolder(t),
			Program:        executable(t),
			ProgramArgs:    []string{"program"},
			InstallService: install,
			ServeHTTP: func(t *testing.T, handler http.Handler) string {
				server := httptest.NewServer(handler)
				t.Cleanup(server.Close)
				return server.URL
			},
			ServePipe: servePipe,
			Feature:   "TelnetClient",
			Has:       capabilities(),
		}
	})
}

// capabilities: Windows has all of them. Tests of those that Wine lacks need
// Windows.
func capabilities() platformtest.Capabilities {
	onWindows := simulated() == ""
	return platformtest.Capabilities{
		ACL:                onWindows,
		Inheritance:        onWindows,
		Recovery:           onWindows,
		Restarts:           onWindows,
		StartDependencies:  true,
		ServiceEnvironment: onWindows, // the SCM of Wine 8 does not read the value
		DeletePending:      true,
		Features:           onWindows,
		Firewall:           onWindows,
		ParentPID:          true,
		RunningReplace:     true,
		SpecificExit:       true,
		Respelling:         onWindows,
		Terminal:           onWindows, // Wine's programs do not open the streams of a pseudoconsole
		PortOwner:          onWindows,
		Holders:            true, // Wine's Restart Manager finds none; the sandbox's recipe has another
		PlantedHNS:         !onWindows,
	}
}

// install registers the test binary as a service that is deleted, and its
// process killed, when the test ends.
func install(t *testing.T, config platform.ServiceConfig, b platformtest.Behaviour) {
	t.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	config.CommandLine = fmt.Sprintf("%s service %s %s",
		syscall.EscapeArg(executable(t)), syscall.EscapeArg(config.Name), syscall.EscapeArg(string(text)))
	if err := scm().Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, config.Name) })
}

func servePipe(t *testing.T) string {
	const path = `\\.\pipe\swdt-test`
	listener, err := winio.ListenPipe(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	if simulated() == "wine" {
		// Its first instance accepts a client that the server never sees.
		first, err := network{}.DialPipe(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { first.Close() })
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed: the test has ended
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return path
}
