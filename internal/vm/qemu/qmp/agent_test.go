package qmp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/testing/deadline"
)

// guest answers at a socket; the answer to guest-sync-delimited is right unless the
// function is given the command itself.
func guest(t *testing.T, answer func(command string, id int64, out io.Writer)) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "ga")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "qga.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn, answer)
		}
	}()
	return path
}

func serve(conn net.Conn, answer func(string, int64, io.Writer)) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var request struct {
			Execute   string         `json:"execute"`
			Arguments map[string]any `json:"arguments"`
		}
		if json.Unmarshal(bytes.TrimPrefix(lines.Bytes(), []byte{0xff}), &request) != nil {
			return
		}
		id, _ := request.Arguments["id"].(float64)
		answer(request.Execute, int64(id), conn)
	}
}

// synced answers the synchronisation, and everything else by a text.
func synced(reply string) func(string, int64, io.Writer) {
	return func(command string, id int64, out io.Writer) {
		if command == "guest-sync-delimited" {
			_, _ = fmt.Fprintf(out, `{"return": 1}`+"\n\xff{\"return\": %d}\n", id) // a late reply first
			return
		}
		_, _ = io.WriteString(out, reply+"\n")
	}
}

func addresses(t *testing.T, reply string) ([]netip.Addr, error) {
	t.Helper()
	a, err := DialAgent(t.Context(), guest(t, synced(reply)))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	return a.Addresses(t.Context(), "52:54:00:00:00:01")
}

func TestAddresses(t *testing.T) {
	const other = `{"name": "vEthernet", "hardware-address": "00:15:5d:00:00:01", "ip-addresses": [
		{"ip-address": "172.31.0.1", "ip-address-type": "ipv4", "prefix": 20}]}`
	const ours = `{"name": "Ethernet", "hardware-address": "52:54:00:00:00:01", "ip-addresses": [
		{"ip-address": "172.18.255.10"}, {"ip-address": "fe80::1%5"}, {"ip-address": "fd00::10"},
		{"ip-address": "127.0.0.1"}]}`
	for reply, expected := range map[string][]string{
		`{"return": [` + other + `,` + ours + `]}`: {"172.18.255.10", "fd00::10"},
		`{"return": [` + other + `]}`:              {"172.31.0.1"},
		`{"return": []}`:                           nil,
		`{"return": [{"name": "lo"}]}`:             nil,
	} {
		got, err := addresses(t, strings.ReplaceAll(strings.ReplaceAll(reply, "\n", ""), "\t", ""))
		var text []string
		for _, ip := range got {
			text = append(text, ip.String())
		}
		if diff := cmp.Diff(expected, text); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

// A hostile guest can answer anything. It gets neither memory nor time nor an address that
// leads elsewhere than to a machine.
func TestAHostileGuest(t *testing.T) {
	many := strings.Repeat(`{"ip-address": "10.0.0.1"},`, 10*maxAddresses) + `{"ip-address": "10.0.0.2"}`
	for name, reply := range map[string]string{
		"no JSON":      "hello",
		"another type": `{"return": "172.18.0.1"}`,
		"deep":         `{"return": ` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}`,
		"long":         `{"return": [{"name": "` + strings.Repeat("x", maxReply) + `"}]}`,
		"an error":     `{"error": {"class": "x", "desc": "` + strings.Repeat("\x1b[2J", 1000) + `"}}`,
		"nothing":      `{}`,
	} {
		got, err := addresses(t, reply)
		if err == nil {
			t.Errorf("%s: %v", name, got)
		}
		if err != nil && len(err.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
	got, err := addresses(t, `{"return": [{"ip-addresses": [`+many+`]}]}`)
	if err != nil || len(got) != maxAddresses {
		t.Errorf("%d addresses, %v", len(got), err)
	}
	got, err = addresses(t, `{"return": [{"ip-addresses": [{"ip-address": "0.0.0.0"}, {"ip-address": "255.255.255.255"},
		{"ip-address": "224.0.0.1"}, {"ip-address": "::"}, {"ip-address": "::1"}, {"ip-address": "::ffff:127.0.0.1"},
		{"ip-address": "169.254.1.1"}, {"ip-address": "evil.example"}, {"ip-address": ""}]}]}`)
	if err == nil { // the line was split by its newlines, so join it
		t.Errorf("a reply of several lines: %v", got)
	}
	got, err = addresses(t, `{"return": [{"ip-addresses": [{"ip-address": "0.0.0.0"}, {"ip-address": "255.255.255.255"},`+
		`{"ip-address": "224.0.0.1"}, {"ip-address": "::"}, {"ip-address": "::1"}, {"ip-address": "::ffff:127.0.0.1"},`+
		`{"ip-address": "169.254.1.1"}, {"ip-address": "evil.example"}, {"ip-address": ""},`+
		`{"ip-address": "1.2.3.4; rm"}]}]}`)
	if err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// A guest without an agent, or with one that hangs or never stops, is given up.
func TestASilentGuest(t *testing.T) {
	for name, answer := range map[string]func(string, int64, io.Writer){
		"silent":   func(string, int64, io.Writer) {},
		"wrong id": func(_ string, id int64, out io.Writer) { _, _ = fmt.Fprintf(out, "\xff{\"return\": %d}\n", id+1) },
		"endless": func(_ string, _ int64, out io.Writer) {
			for {
				if _, err := io.WriteString(out, strings.Repeat("x", 4096)); err != nil {
					return
				}
			}
		},
		"endless line": func(_ string, _ int64, out io.Writer) {
			_, _ = io.WriteString(out, "\xff")
			for {
				if _, err := io.WriteString(out, strings.Repeat("x", 4096)); err != nil {
					return
				}
			}
		},
		"endless sentinels": func(_ string, _ int64, out io.Writer) {
			for {
				if _, err := io.WriteString(out, "\xff{}\n"); err != nil {
					return
				}
			}
		},
	} {
		// A guest that sends too many bytes is given up for that, the others when the deadline passes.
		ctx, pass := deadline.Context(t.Context())
		_, err := DialAgent(ctx, guest(t, func(command string, id int64, out io.Writer) {
			if name == "endless sentinels" {
				out = passing{out, pass}
			}
			answer(command, id, out)
			pass()
		}))
		if !errors.Is(err, ErrSilent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := DialAgent(t.Context(), filepath.Join(t.TempDir(), "absent")); !errors.Is(err, ErrSilent) {
		t.Errorf("no socket: %v", err)
	}
}

// passing is a writer that has the deadline pass once something was written.
type passing struct {
	io.Writer
	pass func()
}

func (p passing) Write(text []byte) (int, error) {
	defer p.pass()
	return p.Writer.Write(text)
}

func TestShutdown(t *testing.T) {
	asked := make(chan string, 1)
	path := guest(t, func(command string, id int64, out io.Writer) {
		if command == "guest-sync-delimited" {
			_, _ = fmt.Fprintf(out, "\xff{\"return\": %d}\n", id)
			return
		}
		asked <- command
	})
	a, err := DialAgent(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != "guest-shutdown" {
		t.Errorf("asked for %s", got)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"return": [{"hardware-address": "52:54:00:00:00:01", ` +
		`"ip-addresses": [{"ip-address": "10.0.0.1"}]}]}` + "\n"))
	f.Add([]byte("\xff{\"return\": 5}\n"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		go func() {
			defer theirs.Close()
			_, _ = bufio.NewReader(theirs).ReadString('\n')
			_, _ = theirs.Write(reply)
		}()
		a := &Agent{newLines(ours, maxReply)}
		got, err := a.Addresses(t.Context(), "52:54:00:00:00:01")
		if err != nil && got != nil || len(got) > maxAddresses {
			t.Errorf("%v, %v", got, err)
		}
		for _, ip := range got {
			if !Plausible(ip) || ip.Zone() != "" {
				t.Errorf("%v", ip)
			}
		}
	})
}
