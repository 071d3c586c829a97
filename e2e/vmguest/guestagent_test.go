//go:build linux

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

func TestGuestAgent(t *testing.T) {
	windows := simulated.New(simulated.Options{Hostname: "vm", Preset: simulated.Minimal})
	defer windows.Close()
	a := &guestAgent{
		guest:   &guest{windows: windows, console: &console{}},
		results: map[int]execResult{}, files: map[int]*bytes.Reader{},
	}
	windows.WriteFile(`C:\ProgramData\ssh\ssh_host_ed25519_key.pub`, []byte("ssh key"))
	requests := strings.Join([]string{
		`{"execute": "guest-ping"}`,
		"half a request\xff" + `{"execute": "guest-sync-delimited", "arguments": {"id": 18446744073709551615}}`,
		`{"execute": "guest-sync", "arguments": {"id": 7}}`,
		`{"execute": "guest-exec", "arguments": {"path": "hostname.exe", "capture-output": true}}`,
		`{"execute": "guest-exec", "arguments": {"path": "C:\\Windows\\System32\\hostname.exe", "capture-output": true}}`,
		`{"execute": "guest-exec-status", "arguments": {"pid": 1}}`,
		`{"execute": "guest-exec-status", "arguments": {"pid": 1}}`,
		`{"execute": "guest-file-open", "arguments": {"path": "C:\\ProgramData\\ssh\\none.pub"}}`,
		`{"execute": "guest-file-open", "arguments": {"path": "C:\\ProgramData\\ssh\\ssh_host_ed25519_key.pub"}}`,
		`{"execute": "guest-file-read", "arguments": {"handle": 1, "count": 3}}`,
		`{"execute": "guest-file-read", "arguments": {"handle": 1, "count": 9}}`,
		`{"execute": "guest-file-close", "arguments": {"handle": 1}}`,
		`{"execute": "guest-file-close", "arguments": {"handle": 1}}`,
		`{"execute": "guest-set-time"}`,
		`{"execute": "guest-shutdown", "arguments": {"mode": "explode"}}`,
		`not JSON`,
	}, "\n") + "\n"
	var replies bytes.Buffer
	a.serve(t.Context(), strings.NewReader(requests), &replies)
	want := []string{
		`{"return":{}}`,
		"\xff" + `{"return":18446744073709551615}`,
		`{"return":7}`,
		`{"return":{"pid":1}}`,
		`{"return":{"pid":2}}`,
		`{"return":{"exited":true,"exitcode":0,"out-data":"dm0NCg=="}}`,
		`{"error":{"class":"GenericError","desc":"guest-exec-status: no process 1"}}`,
		`{"error":{"class":"GenericError",` +
			`"desc":"guest-file-open: open: C:\\ProgramData\\ssh\\none.pub: file does not exist"}}`,
		`{"return":1}`,
		`{"return":{"count":3,"buf-b64":"c3No","eof":false}}`,
		`{"return":{"count":4,"buf-b64":"IGtleQ==","eof":true}}`,
		`{"return":{}}`,
		`{"error":{"class":"GenericError","desc":"guest-file-close: no handle 1"}}`,
		`{"error":{"class":"CommandNotFound","desc":"The command guest-set-time has not been found"}}`,
		`{"error":{"class":"GenericError","desc":"guest-shutdown: mode \"explode\""}}`,
		`{"error":{"class":"GenericError","desc":"invalid JSON"}}`,
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(replies.String(), "\n"), "\n")); diff != "" {
		t.Errorf("replies (-want +got)\n%s", diff)
	}
}
