package qemu_test

import (
	"bytes"
	"crypto/des" //nolint:gosec // VNC's
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm"
)

// viewer logs in at a VNC server (RFC 6143, 7.1 and 7.2) with a password, and returns the
// server's result; 0: it lets the viewer in.
func viewer(t *testing.T, address, password string) uint32 {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, time.Minute)
	check(t, err)
	defer conn.Close()
	check(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	greeting := make([]byte, 12)
	_, err = io.ReadFull(conn, greeting)
	check(t, err)
	_, err = conn.Write([]byte("RFB 003.008\n"))
	check(t, err)
	count := make([]byte, 1)
	_, err = io.ReadFull(conn, count)
	check(t, err)
	types := make([]byte, count[0])
	_, err = io.ReadFull(conn, types)
	check(t, err)
	if want := []byte{2}; !bytes.Equal(types, want) { // VNC authentication, and nothing else
		t.Fatalf("the server offers the security types %v, want %v", types, want)
	}
	_, err = conn.Write(types)
	check(t, err)
	challenge := make([]byte, 2*des.BlockSize)
	_, err = io.ReadFull(conn, challenge)
	check(t, err)
	key := make([]byte, 8)
	copy(key, password)
	for i := range key {
		key[i] = bits.Reverse8(key[i]) // as VNC has it
	}
	block, err := des.NewCipher(key) //nolint:gosec // VNC's
	check(t, err)
	for i := 0; i < len(challenge); i += des.BlockSize {
		block.Encrypt(challenge[i:], challenge[i:])
	}
	_, err = conn.Write(challenge)
	check(t, err)
	result := make([]byte, 4)
	_, err = io.ReadFull(conn, result)
	check(t, err)
	return binary.BigEndian.Uint32(result)
}

// A screen on a port of 127.0.0.1, which all users of this machine can reach, lets only those in who
// can read the password's file, which only the VM's user can. Each start has another password.
func TestAScreenOnAPortNeedsItsPassword(t *testing.T) {
	d := driver(t)
	m := record(t, d, "port")
	m.Display = vm.DisplayPort
	check(t, d.Create(t.Context(), m))
	seen := map[string]bool{}
	for range 2 {
		check(t, d.Start(t.Context(), m))
		consoles, err := d.Consoles(t.Context(), m)
		check(t, err)
		if len(consoles) != 2 || consoles[0].Kind != "vnc" {
			t.Fatalf("%+v, want two consoles, vnc first", consoles)
		}
		if got := consoles[0].Address; !strings.HasPrefix(got, "127.0.0.1:59") {
			t.Fatalf("the address is %s, want a VNC port of loopback", got)
		}
		info, err := os.Stat(consoles[0].PasswordFile)
		check(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the password's file has mode %v", info.Mode())
		}
		content, err := os.ReadFile(consoles[0].PasswordFile)
		check(t, err)
		password := strings.TrimSpace(string(content))
		if seen[password] || len(password) != 8 {
			t.Errorf("the password has %d characters, and was used before: %t", len(password), seen[password])
		}
		seen[password] = true
		if result := viewer(t, consoles[0].Address, password); result != 0 {
			t.Errorf("the password is refused: %d", result)
		}
		for _, wrong := range []string{"", "AAAAAAAA", strings.ToLower(password)} {
			if viewer(t, consoles[0].Address, wrong) == 0 {
				t.Errorf("%q is let in", wrong)
			}
		}
		withoutPassword(t, d.CommandLine, m, password)
		check(t, d.Kill(t.Context(), m))
		if _, err := os.Stat(consoles[0].PasswordFile); err == nil {
			t.Error("the password's file is left")
		}
	}
}

// withoutPassword checks that only the password's file has the password.
func withoutPassword(t *testing.T, commandLine func(vm.Machine) ([]string, error), m vm.Machine, password string) {
	t.Helper()
	line, err := commandLine(m)
	check(t, err)
	if strings.Contains(strings.Join(line, " "), password) {
		t.Error("the command line has the password")
	}
	var with []string
	check(t, filepath.WalkDir(m.Folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, ".qcow2") {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(password)) {
			with = append(with, filepath.Base(path))
		}
		return err
	}))
	if diff := cmp.Diff([]string{"vnc-password"}, with); diff != "" {
		t.Errorf("files with the password (-want +got):\n%s", diff)
	}
}

// A VM without a screen for people still has screenshots, and only the serial port as a console.
func TestNoScreen(t *testing.T) {
	d := driver(t)
	m := record(t, d, "none")
	m.Display = vm.NoDisplay
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	consoles, err := d.Consoles(t.Context(), m)
	check(t, err)
	if len(consoles) != 1 || consoles[0].Kind != "serial" {
		t.Errorf("%+v", consoles)
	}
	var screen bytes.Buffer
	check(t, d.Screenshot(t.Context(), m, &screen))
	if screen.Len() == 0 {
		t.Error("the screenshot is empty")
	}
}

// A VM whose screen cannot be protected does not run.
func TestAScreenWithoutAPasswordIsRefused(t *testing.T) {
	for _, script := range []string{"set_password error", "set_password die"} {
		d, fail := fakeDriver(t)
		m := fakeRecord(t, d, strings.Fields(script)[1])
		m.Display = vm.DisplayPort
		check(t, d.Create(t.Context(), m))
		fail(script)
		if err := d.Start(t.Context(), m); err == nil || !strings.Contains(fmt.Sprint(err), "password of the screen") {
			t.Errorf("%s: %v", script, err)
		}
		if got := state(t, d, m); got != vm.Stopped {
			t.Errorf("%s: the VM is %s", script, got)
		}
		leaksNothing(t, m)
	}
}
